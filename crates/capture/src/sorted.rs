//! Reads logs in the order of their times, whatever the order of their entries: newest first, in parts that overlap, streams of one server.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::account::Account;
use crate::assemble::{Assembler, Taking, digest};
use crate::entry::Entry;
use crate::error::CaptureError;
use crate::file::Writer;
use crate::format::{Found, Kept, Piecewise};
use crate::input::Input;
use crate::log::{Log, OVERLAP_US_MAX, ReadSpec, Stop, failed};
use crate::sort::Sorter;
use crate::spread::Spread;
use crate::time::PLAUSIBLE_US;
use crate::watch::Watch;
use crate::zones::Zones;

/// An entry with where it was.
#[derive(Serialize, Deserialize)]
struct Placed {
    file: usize,
    line: u64,
    entry: Entry<'static>,
}

/// Counts what is no entry.
pub(crate) fn count(found: &Found<'_>, assembler: &mut Assembler) {
    let account = &mut assembler.account;
    match found {
        Found::Entry(_) => return,
        Found::Torn => account.torn += 1,
        Found::NotText => account.not_text += 1,
        Found::LineNotText => {
            account.not_text += 1;
            account.lines_not_text += 1;
        }
        Found::TooLong => account.too_long += 1,
        Found::Missing(count) => {
            account.missing = account.missing.saturating_add(*count);
            return;
        }
        Found::Foreign => {
            account.foreign += 1;
            return;
        }
    }
    let place = &assembler.place;
    account.first_unreadable.get_or_insert_with(|| place.clone());
}

/// Reads logs, sorts them, and makes a capture of what they have.
pub(crate) fn read<W: Write>(
    spec: &ReadSpec,
    logs: &[Log],
    zones: &mut Zones,
    watch: &Watch<'_, W>,
) -> Result<(Account, Writer), CaptureError> {
    watch.read.set(0);
    let folder = spec.output.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut pass = Pass {
        assembler: Assembler::new(Writer::create(&spec.output)?, Taking::Sorted { merged: false }),
        zones,
        watch,
        entries: Sorter::new(folder),
        count: 0,
        spans: vec![None; logs.len()],
    };
    let unwritable = |error: &io::Error| CaptureError::unwritable(&spec.output, error);
    let stopped = |log: &Log, stop: Stop| match stop {
        Stop::Unwritten(error) => unwritable(&error),
        Stop::Unread(error) => failed(&log.path, &error),
        Stop::Disordered | Stop::Enough => failed(&log.path, &io::ErrorKind::InvalidData.into()),
    };
    for (number, log) in logs.iter().enumerate().filter(|(_, log)| !log.format.is_in_parts()) {
        pass.log(number, log).map_err(|stop| stopped(log, stop))?;
    }
    let mut in_parts: Vec<(usize, &Log)> =
        logs.iter().enumerate().filter(|(_, log)| log.format.is_in_parts()).collect();
    while let Some((_, first)) = in_parts.first().copied() {
        let (group, rest) = in_parts.into_iter().partition(|(_, log)| log.format == first.format);
        in_parts = rest;
        pass.parts(&group, folder).map_err(|stop| stopped(first, stop))?;
    }
    let merged = overlapping(logs, &pass.spans)?;
    let Pass { mut assembler, entries, .. } = pass;
    assembler.taking(Taking::Sorted { merged });
    assembler.account.sorted = true;
    feed(&mut assembler, entries, logs, merged).map_err(|error| unwritable(&error))?;
    if let Some(session) = assembler.conflict.take() {
        return Err(CaptureError::new(
            format!("the logs have different entries of session {session} under one number: they are of two servers"),
            "give the logs of one server",
        )
        .coded("capture.logs.two_servers", json!({"session": session})));
    }
    assembler.finish().map_err(|error| unwritable(&error))
}

/// Whether logs overlap in time. Those of different formats are then two logs of the same statements.
fn overlapping(logs: &[Log], spans: &[Option<(i64, i64)>]) -> Result<bool, CaptureError> {
    let mut found: Vec<(i64, i64, &Log)> = logs
        .iter()
        .zip(spans)
        .filter_map(|(log, span)| span.map(|(first_us, last_us)| (first_us, last_us, log)))
        .collect();
    found.sort_by_key(|(first_us, last_us, _)| (*first_us, *last_us));
    let mut merged = false;
    let mut latest: Option<(i64, &Log)> = None;
    for (first_us, last_us, log) in found {
        if let Some((until_us, before)) = latest.filter(|(until_us, _)| first_us <= *until_us) {
            merged = true;
            if first_us < until_us - OVERLAP_US_MAX && before.format.name() != log.format.name() {
                let by_s = (until_us - first_us) / 1_000_000;
                return Err(CaptureError::new(
                    format!(
                        "{} begins {by_s} s before {} ends, and is in another format: they are two logs of the same time",
                        log.path.display(),
                        before.path.display()
                    ),
                    "give the logs of one server in one format",
                )
                .coded("capture.logs.overlap", json!({"overlap_s": by_s})));
            }
        }
        if latest.is_none_or(|(until_us, _)| last_us > until_us) {
            latest = Some((last_us, log));
        }
    }
    Ok(merged)
}

/// Gives the entries to the assembler in order.
fn feed(assembler: &mut Assembler, entries: Sorter<Placed>, logs: &[Log], merged: bool) -> io::Result<()> {
    let mut spread = Spread::default();
    let mut twice = Twice::default();
    let mut file = None;
    for found in entries.finish()? {
        let (_, Placed { file: number, line, entry }) = found?;
        if file != Some(number) {
            // What is spread is of the file before.
            spread.flush(assembler)?;
            file = Some(number);
            (assembler.file, assembler.place.0) = (number, logs[number].path.display().to_string());
        }
        assembler.place.1 = line;
        if merged && entry.line.is_none() && twice.is_one(&entry, number) {
            assembler.account.duplicates += 1;
            continue;
        }
        if logs[number].format.has_fractions() {
            assembler.entry(&entry)?;
        } else {
            spread.entry(entry, assembler)?;
        }
    }
    spread.flush(assembler)
}

/// Tells entries that two files have, without numbers by which they could be told: of each instant as many are kept as one file has.
#[derive(Default)]
struct Twice {
    time_us: i64,
    counts: HashMap<u64, Vec<(usize, u64)>>,
}

impl Twice {
    fn is_one(&mut self, entry: &Entry<'_>, file: usize) -> bool {
        if self.time_us != entry.time_us {
            self.time_us = entry.time_us;
            self.counts.clear();
        }
        let counts = self.counts.entry(digest(entry)).or_default();
        let most = counts.iter().filter(|(of, _)| *of != file).map(|(_, count)| *count).max().unwrap_or(0);
        match counts.iter_mut().find(|(of, _)| *of == file) {
            Some((_, count)) => {
                *count += 1;
                *count <= most
            }
            None => {
                counts.push((file, 1));
                most >= 1
            }
        }
    }
}

struct Pass<'a, 'w, W: Write> {
    assembler: Assembler,
    zones: &'a mut Zones,
    watch: &'a Watch<'w, W>,
    entries: Sorter<Placed>,
    count: i64,
    /// The first and the last instant of each log.
    spans: Vec<Option<(i64, i64)>>,
}

impl<W: Write> Pass<'_, '_, W> {
    /// Takes the entries of a log.
    fn log(&mut self, number: usize, log: &Log) -> Result<(), Stop> {
        self.begin(log);
        let pulse = || self.watch.look();
        let (input, position) = Input::open(&log.path)?;
        let mut input = input.pulsed(&pulse);
        *self.watch.position.borrow_mut() = Some(position);
        let lines = std::rc::Rc::clone(&input.line);
        log.format.read::<Stop>(&mut input, &mut |found| {
            self.assembler.place.1 = lines.get() + 1;
            self.found(&found, number, lines.get() + 1, log.is_descending)
        })?;
        self.end(log, input.bytes);
        Ok(())
    }

    /// Puts the documents of logs of one format in order, and takes the entries that they make.
    fn parts(&mut self, logs: &[(usize, &Log)], folder: &Path) -> Result<(), Stop> {
        let mut pieces: Sorter<(usize, Kept)> = Sorter::new(folder);
        let mut count = 0;
        for (number, log) in logs {
            self.begin(log);
            let pulse = || self.watch.look();
            let (input, position) = Input::open(&log.path)?;
            let mut input = input.pulsed(&pulse);
            *self.watch.position.borrow_mut() = Some(position);
            let mut received_us = 0;
            log.format.pieces::<Stop>(&mut input, &mut |found| {
                let piece = match found {
                    Piecewise::Piece(piece, _) => piece,
                    Piecewise::Torn => return self.found(&Found::Torn, *number, 0, false),
                    Piecewise::TooLong => return self.found(&Found::TooLong, *number, 0, false),
                    Piecewise::Foreign => return self.found(&Found::Foreign, *number, 0, false),
                };
                received_us = piece.received_us.unwrap_or(received_us);
                count += 1;
                let place = if log.is_descending { -count } else { count };
                let kept = piece.clone().into_owned();
                let bytes = size_of_val(&kept) + kept.text.len();
                pieces.push((received_us, 0, place), (*number, kept), bytes).map_err(Stop::Unwritten)
            })?;
            self.end(log, input.bytes);
        }
        let Some((first, log)) = logs.first().copied() else { return Ok(()) };
        let sorted = pieces.finish().map_err(Stop::Unwritten)?;
        let file = std::cell::Cell::new(first);
        let pieces = sorted.map(|found| {
            let (_, (number, piece)) = found?;
            file.set(number);
            Ok(piece)
        });
        log.format.put_together::<Stop>(pieces, &mut |found| self.found(&found, file.get(), 0, false))
    }

    fn begin(&mut self, log: &Log) {
        let name = log.path.display().to_string();
        self.assembler.account.files.push((name.clone(), log.format.name()));
        self.assembler.place = (name, 1);
    }

    fn end(&mut self, log: &Log, bytes: u64) {
        self.assembler.account.bytes += bytes;
        self.watch.position.replace(None);
        self.watch.read.set(self.watch.read.get() + log.stored_bytes);
    }

    fn found(&mut self, found: &Found<'_>, file: usize, line: u64, is_descending: bool) -> Result<(), Stop> {
        let Found::Entry(entry) = found else {
            count(found, &mut self.assembler);
            return Ok(());
        };
        let ahead_us = self.zones.ahead_us(entry);
        let entry = (*entry).clone().earlier(ahead_us).into_owned();
        if !PLAUSIBLE_US.contains(&entry.time_us) {
            self.assembler.implausible("time");
            return Ok(());
        }
        let time_us = entry.time_us;
        let span = self.spans[file].get_or_insert((time_us, time_us));
        *span = (span.0.min(time_us), span.1.max(time_us));
        self.count += 1;
        self.watch.entries.set(self.count.unsigned_abs());
        let place = if is_descending { -self.count } else { self.count };
        let (order, bytes) = ((time_us, entry.line.unwrap_or(0), place), entry.kept_bytes());
        self.entries.push(order, Placed { file, line, entry }, bytes).map_err(Stop::Unwritten)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_entries_that_two_files_have_as_many_are_kept_as_one_has() {
        let entry = |time_us| Entry { time_us, message: "statement: BEGIN".into(), ..Entry::default() };
        let mut twice = Twice::default();
        let found: Vec<bool> = [(1, 0), (1, 0), (1, 1), (1, 1), (1, 1), (2, 1), (2, 0)]
            .into_iter()
            .map(|(time_us, file)| twice.is_one(&entry(time_us), file))
            .collect();
        assert_eq!(found, [false, false, true, true, false, false, true]);
    }
}
