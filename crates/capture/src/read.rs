//! Reads logs into a capture.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Deserialize;
use serde_json::json;

use crate::account::Account;
use crate::assemble::Assembler;
use crate::entry::Entry;
use crate::error::CaptureError;
use crate::file::Writer;
use crate::format::{Format, Found, Prefix, detect};
use crate::input::{Input, Position};
use crate::time::{PLAUSIBLE_US, SECOND_US};

/// How often it is said how far it is.
const TELL: Duration = Duration::from_secs(1);
/// Entries of one second that are spread over it: with more than this much text in them the later ones are at its end.
const SPREAD_BYTES_MAX: usize = 64 << 20;
/// Logs of one server follow each other; entries of several processes are not in the order of their times.
const OVERLAP_US_MAX: i64 = 1_000_000;

/// What to read.
#[derive(Debug, Clone, Deserialize)]
pub struct ReadSpec {
    /// The logs, in any order.
    pub logs: Vec<PathBuf>,
    /// The capture.
    pub output: PathBuf,
    /// `log_line_prefix` of logs in stderr's format; found if omitted.
    pub prefix: Option<String>,
}

/// A log with what its beginning says.
struct Log {
    path: PathBuf,
    format: Format,
    first_us: i64,
    stored_bytes: u64,
}

/// What a signal makes of a reading; it passes through readers as an error of the file.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
struct Interrupted;

/// The error of a log: of its file, or the signal that came meanwhile.
fn failed(path: &Path, error: &io::Error) -> CaptureError {
    if error.get_ref().is_some_and(|inner| inner.is::<Interrupted>()) {
        return CaptureError::new("interrupted", "run the command again").coded("capture.read.interrupted", json!({}));
    }
    CaptureError::unreadable(path, error)
}

/// What ends a reading: an error of the log, or of the capture.
enum Stop {
    Unread(io::Error),
    Unwritten(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Unread(error)
    }
}

/// Reads logs into a capture. Writes JSON lines to `out`: `progress` about once a second, `summary` at the end.
///
/// # Errors
/// Logs that cannot be read or hold nothing of use, and a capture that cannot be written; SIGTERM and SIGINT. Nothing is left
/// then.
pub fn read(spec: &ReadSpec, out: &mut impl Write) -> Result<(), CaptureError> {
    let signalled = pgdyno_signals::block().map_err(|error| {
        CaptureError::new(format!("signals cannot be watched: {error}"), "raise the limit of files")
    })?;
    let watch = Watch::new(&signalled, out);
    let logs = logs(spec, &watch)?;
    watch.expected.set(logs.iter().map(|log| log.stored_bytes).sum::<u64>().max(1));
    let mut reader = Reader {
        assembler: Assembler::new(Writer::create(&spec.output)?),
        output: &spec.output,
        watch: &watch,
        last_us: i64::MIN,
        spread: Spread::default(),
    };
    let mut last: Option<(PathBuf, i64)> = None;
    for log in &logs {
        if let Some((path, last_us)) = last.filter(|(_, last_us)| log.first_us < last_us - OVERLAP_US_MAX) {
            return Err(overlap(&path, log, last_us));
        }
        reader.log(log)?;
        last = Some((log.path.clone(), reader.last_us));
    }
    let written = |error: io::Error| CaptureError::unwritable(&spec.output, &error);
    let (mut account, writer) = reader.assembler.finish().map_err(written)?;
    account.fractions = logs.iter().all(|log| log.format.has_fractions());
    if account.calls == 0 {
        return Err(useless(&account));
    }
    writer.finish(&account)?;
    watch.say(&json!({"summary": account, "reading": account.left_out(0)}));
    Ok(())
}

fn overlap(path: &Path, log: &Log, last_us: i64) -> CaptureError {
    let by_s = (last_us - log.first_us) / 1_000_000;
    CaptureError::new(
        format!(
            "{} begins {by_s} s before {} ends: they are of two servers, or one log twice",
            log.path.display(),
            path.display()
        ),
        "give the logs of one server in one format",
    )
}

/// The logs in the order of their times.
fn logs<W: Write>(spec: &ReadSpec, watch: &Watch<'_, W>) -> Result<Vec<Log>, CaptureError> {
    let prefix =
        spec.prefix.as_deref().map(Prefix::parse).transpose().map_err(|why| {
            CaptureError::new(format!("--prefix: {why}"), "give it as `SHOW log_line_prefix` prints it")
        })?;
    let mut logs = Vec::new();
    for path in &spec.logs {
        let unreadable = |error: io::Error| failed(path, &error);
        let pulse = || watch.look();
        let stored_bytes = File::open(path).and_then(|file| file.metadata()).map_err(unreadable)?.len();
        let (input, _) = Input::open(path).map_err(unreadable)?;
        let mut input = input.pulsed(&pulse);
        let format = detect(&mut input, prefix.as_ref()).map_err(unreadable)?.ok_or_else(|| {
            CaptureError::new(
                format!("{} is no log of PostgreSQL that can be read: csvlog, jsonlog, or stderr", path.display()),
                "for a log in stderr's format give its prefix: --prefix, as `SHOW log_line_prefix` prints it",
            )
        })?;
        // Its first instant, by reading until there is one.
        let mut first_us = None;
        let ended: io::Result<()> = format.read(&mut input, &mut |found| match found {
            Found::Entry(entry) if PLAUSIBLE_US.contains(&entry.time_us) => {
                first_us = Some(entry.time_us);
                Err(io::ErrorKind::Interrupted.into())
            }
            _ => Ok(()),
        });
        let first_us = match (first_us, ended) {
            (Some(first_us), _) => first_us,
            (None, Err(error)) => return Err(unreadable(error)),
            (None, Ok(())) => {
                let format = format.name();
                let message = format!("{} has no entry in the format {format}", path.display());
                return Err(CaptureError::new(
                    message,
                    "give the prefix as `SHOW log_line_prefix` prints it, or omit the file",
                ));
            }
        };
        logs.push(Log { path: path.clone(), format, first_us, stored_bytes });
    }
    logs.sort_by(|one, other| (one.first_us, &one.path).cmp(&(other.first_us, &other.path)));
    Ok(logs)
}

/// What a log without statements lacks.
fn useless(account: &Account) -> CaptureError {
    let (code, why, remedy) = if !account.unknown_severities.is_empty() {
        ("capture.log.language", "it is in another language than English", "set lc_messages = 'C' and log again")
    } else if account.lone_durations > 0 {
        (
            "capture.log.without_statements",
            "it has durations without statements",
            "set log_statement = 'all' beside log_duration, or log_min_duration_statement = 0",
        )
    } else {
        (
            "capture.log.without_statements",
            "statements were not logged",
            "set log_statement = 'all' and log_duration = on, or log_min_duration_statement = 0",
        )
    };
    CaptureError::new(format!("the log has no statement that could be sent again: {why}"), remedy)
        .coded(code, json!({"entries": account.entries, "severities": account.unknown_severities}))
}

/// Says how far a reading is, and notices when it is to end.
struct Watch<'a, W: Write> {
    signalled: &'a OwnedFd,
    /// Stored bytes of all logs; 0 while they are not known.
    expected: Cell<u64>,
    /// Stored bytes of the logs that were read.
    read: Cell<u64>,
    /// How far the one is that is being read.
    position: RefCell<Option<Position>>,
    told: Cell<Instant>,
    entries: Cell<u64>,
    calls: Cell<u64>,
    out: RefCell<&'a mut W>,
}

impl<'a, W: Write> Watch<'a, W> {
    fn new(signalled: &'a OwnedFd, out: &'a mut W) -> Self {
        Self {
            signalled,
            expected: Cell::new(0),
            read: Cell::new(0),
            position: RefCell::new(None),
            told: Cell::new(Instant::now()),
            entries: Cell::new(0),
            calls: Cell::new(0),
            out: RefCell::new(out),
        }
    }

    /// Is called after each part that was read.
    fn look(&self) -> io::Result<()> {
        let mut watched = [PollFd::new(self.signalled, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        if poll(&mut watched, Some(&now)).is_ok() && !watched[0].revents().is_empty() {
            return Err(io::Error::other(Interrupted));
        }
        if self.told.get().elapsed() >= TELL {
            self.told.set(Instant::now());
            let here = self.position.borrow_mut().as_mut().map_or(0, Position::stored_bytes);
            let share = (self.read.get() + here) as f64 / self.expected.get().max(1) as f64;
            let share = if self.expected.get() == 0 { 0.0 } else { share.min(1.0) };
            let counts = json!({"share": share, "entries": self.entries.get(), "calls": self.calls.get()});
            self.say(&json!({"progress": counts}));
        }
        Ok(())
    }

    /// Writes a line, and sees that it leaves. A reader that is gone is no error.
    fn say(&self, line: &serde_json::Value) {
        let mut out = self.out.borrow_mut();
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    }
}

struct Reader<'a, 'w, W: Write> {
    assembler: Assembler,
    output: &'a Path,
    watch: &'a Watch<'w, W>,
    last_us: i64,
    spread: Spread,
}

impl<W: Write> Reader<'_, '_, W> {
    fn log(&mut self, log: &Log) -> Result<(), CaptureError> {
        let unreadable = |error: io::Error| failed(&log.path, &error);
        let (watch, pulse) = (self.watch, || self.watch.look());
        let (input, position) = Input::open(&log.path).map_err(unreadable)?;
        let mut input = input.pulsed(&pulse);
        *watch.position.borrow_mut() = Some(position);
        let name = log.path.display().to_string();
        self.assembler.account.files.push((name.clone(), log.format.name()));
        self.assembler.place = (name, 1);
        let lines = Rc::clone(&input.line);
        let (fractions, follows) = (log.format.has_fractions(), log.format.says_entries_behind());
        let result = log.format.read::<Stop>(&mut input, &mut |found| {
            // An entry that is told at its end ends with the line before.
            let behind = follows && matches!(found, Found::Entry(_));
            self.assembler.place.1 = lines.get() + u64::from(!behind);
            self.found(found, fractions)
        });
        let ended = result.and_then(|()| self.spread.flush(&mut self.assembler).map_err(Stop::Unwritten));
        self.assembler.account.bytes += input.bytes;
        watch.position.replace(None);
        watch.read.set(watch.read.get() + log.stored_bytes);
        match ended {
            Ok(()) => Ok(()),
            Err(Stop::Unread(error)) => Err(unreadable(error)),
            Err(Stop::Unwritten(error)) => Err(CaptureError::unwritable(self.output, &error)),
        }
    }

    fn found(&mut self, found: Found<'_>, fractions: bool) -> Result<(), Stop> {
        let account = &mut self.assembler.account;
        match found {
            Found::Entry(entry) => {
                self.watch.entries.set(account.entries);
                self.watch.calls.set(account.calls);
                if !PLAUSIBLE_US.contains(&entry.time_us) {
                    self.assembler.implausible("time");
                    return Ok(());
                }
                self.last_us = self.last_us.max(entry.time_us);
                let taken = if fractions {
                    self.assembler.entry(entry)
                } else {
                    self.spread.entry(entry.clone().into_owned(), &mut self.assembler)
                };
                return taken.map_err(Stop::Unwritten);
            }
            Found::Torn => account.torn += 1,
            Found::NotText => account.not_text += 1,
            Found::TooLong => account.too_long += 1,
            Found::Foreign => {
                account.foreign += 1;
                return Ok(());
            }
        }
        let place = &self.assembler.place;
        account.first_unreadable.get_or_insert_with(|| place.clone());
        Ok(())
    }
}

/// Spreads the entries of a second over it, in order, where a log has whole seconds.
#[derive(Default)]
struct Spread {
    entries: Vec<Entry<'static>>,
    bytes: usize,
    /// The second whose entries were too many to be kept.
    over_us: Option<i64>,
}

impl Spread {
    fn entry(&mut self, mut entry: Entry<'static>, to: &mut Assembler) -> io::Result<()> {
        if self.over_us == Some(entry.time_us) {
            entry.time_us += SECOND_US - 1;
            return to.entry(&entry);
        }
        self.over_us = None;
        if self.entries.first().is_some_and(|first| first.time_us != entry.time_us) {
            self.flush(to)?;
        }
        self.bytes += entry.kept_bytes();
        let second_us = entry.time_us;
        self.entries.push(entry);
        if self.bytes > SPREAD_BYTES_MAX {
            self.over_us = Some(second_us);
            self.flush(to)?;
        }
        Ok(())
    }

    fn flush(&mut self, to: &mut Assembler) -> io::Result<()> {
        self.bytes = 0;
        let count = i64::try_from(self.entries.len()).unwrap_or(i64::MAX).max(1);
        for (index, mut entry) in std::mem::take(&mut self.entries).into_iter().enumerate() {
            entry.time_us += i64::try_from(index).unwrap_or(0) * SECOND_US / count;
            to.entry(&entry)?;
        }
        Ok(())
    }
}
