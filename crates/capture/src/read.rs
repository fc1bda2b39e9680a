//! Reads logs into a capture: as they come, and if that is not the order of their times, once more in that order.

use std::collections::{HashSet, VecDeque};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::rc::Rc;
use std::time::UNIX_EPOCH;

use serde_json::json;

use crate::account::Account;
use crate::assemble::{Assembler, DISORDER_SURE, Taking, glance};
use crate::entry::Entry;
use crate::error::CaptureError;
use crate::file::Writer;
use crate::format::{Found, Prefix, Undetected, detect};
use crate::input::Input;
use crate::log::{Log, OVERLAP_US_MAX, ReadSpec, Stop, failed};
use crate::sorted;
use crate::spread::Spread;
use crate::time::{PLAUSIBLE_US, SECOND_US};
use crate::watch::Watch;
use crate::zones::Zones;

/// Entries at the beginning of a log that say which order it has.
const ENTRIES_LOOKED_AT: u64 = 200;
/// And what the name of its zone means, where that is a question.
const ENTRIES_LOOKED_AT_FOR_ZONE: u64 = 20_000;
/// The last entries of a log, by which it is told that the next log begins with them. Those of a second are seldom more.
const ENTRIES_REMEMBERED: usize = 1 << 16;
/// Of so many entries one may be before one that it follows, in a log that keeps the order of what it was given.
const ORDERLY: u64 = 1000;

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
    let mut zones = Zones::new(&spec.zones);
    let logs = logs(spec, &mut zones, &watch)?;
    watch.expected.set(logs.iter().map(|log| log.stored_bytes).sum::<u64>().max(1));
    let (mut account, writer) = match streamed(spec, &logs, &mut zones, &watch)? {
        Some(found) => found,
        None => sorted::read(spec, &logs, &mut zones, &watch)?,
    };
    account.fractions = logs.iter().all(|log| log.format.has_fractions());
    account.zones = zones.account();
    if account.calls == 0 {
        return Err(useless(&account));
    }
    writer.finish(&account)?;
    watch.say(&json!({"summary": account, "reading": account.left_out(0)}));
    Ok(())
}

/// Reads logs as they come. None if their entries are not in the order of their times.
fn streamed<W: Write>(
    spec: &ReadSpec,
    logs: &[Log],
    zones: &mut Zones,
    watch: &Watch<'_, W>,
) -> Result<Option<(Account, Writer)>, CaptureError> {
    if logs.iter().any(|log| log.is_descending) {
        return Ok(None);
    }
    let mut reader = Reader {
        assembler: Assembler::new(Writer::create(&spec.output)?, Taking::Streamed),
        zones,
        watch,
        first_us: None,
        last_us: i64::MIN,
        spread: Spread::default(),
        tail: Tail { wanted: logs.len() > 1, ..Tail::default() },
    };
    let mut last_us = i64::MIN;
    for (number, log) in logs.iter().enumerate() {
        if log.first_us < last_us.saturating_sub(OVERLAP_US_MAX) {
            return Ok(None);
        }
        reader.assembler.file = number;
        reader.tail.next_log(last_us);
        match reader.log(log) {
            Ok(()) => last_us = reader.last_us,
            Err(Stop::Disordered | Stop::Enough) => return Ok(None),
            Err(Stop::Unread(error)) => return Err(failed(&log.path, &error)),
            Err(Stop::Unwritten(error)) => return Err(CaptureError::unwritable(&spec.output, &error)),
        }
    }
    let finished = reader.assembler.finish();
    finished.map(Some).map_err(|error| CaptureError::unwritable(&spec.output, &error))
}

/// The logs in the order of their times.
fn logs<W: Write>(spec: &ReadSpec, zones: &mut Zones, watch: &Watch<'_, W>) -> Result<Vec<Log>, CaptureError> {
    let prefix = spec.prefix.as_deref().map(parsed).transpose()?;
    let mut logs = Vec::new();
    for path in &spec.logs {
        logs.push(log(path, prefix.as_ref(), zones, watch)?);
    }
    zones.decide();
    logs.sort_by(|one, other| (one.first_us, &one.path).cmp(&(other.first_us, &other.path)));
    Ok(logs)
}

fn parsed(text: &str) -> Result<Prefix, CaptureError> {
    let prefix = Prefix::parse(text).map_err(|why| {
        CaptureError::new(format!("--prefix: {why}"), "give it as `SHOW log_line_prefix` prints it")
            .coded("capture.prefix.unknown", json!({"prefix": text}))
    })?;
    if let Some((first, second)) = prefix.touching() {
        return Err(CaptureError::new(
            format!(
                "--prefix: %{first} is followed by %{second} with nothing between them, so that nothing tells where one ends \
                 and the other begins"
            ),
            "log again with something between them, as `%p-%l`, or read a csvlog",
        )
        .coded("capture.prefix.touching", json!({"prefix": text, "first": first, "second": second})));
    }
    Ok(prefix)
}

/// A log by its beginning.
fn log<W: Write>(
    path: &Path,
    prefix: Option<&Prefix>,
    zones: &mut Zones,
    watch: &Watch<'_, W>,
) -> Result<Log, CaptureError> {
    let unreadable = |error: io::Error| failed(path, &error);
    let pulse = || watch.look();
    let about = File::open(path).and_then(|file| file.metadata()).map_err(unreadable)?;
    let written = about.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let written_us = written.and_then(|at| i64::try_from(at.as_micros()).ok()).unwrap_or(0);
    let (input, _) = Input::open(path).map_err(unreadable)?;
    let mut input = input.pulsed(&pulse);
    let detected = detect(&mut input, prefix, written_us).map_err(unreadable)?;
    let format = detected.map_err(|why| undetected(path, &why))?;
    let mut beginning = Beginning::default();
    let ended = format.read::<Stop>(&mut input, &mut |found| beginning.take(&found, zones));
    if let Err(Stop::Unread(error)) = ended {
        return Err(unreadable(error));
    }
    let Some(first_us) = beginning.first_us else {
        let (name, path) = (format.name(), path.display());
        return Err(CaptureError::new(
            format!("{path} has no entry in the format {name}"),
            "give the prefix as `SHOW log_line_prefix` prints it, or omit the file",
        )
        .coded("capture.log.no_entry", json!({"format": name})));
    };
    let is_descending = beginning.is_descending(format.keeps_order());
    Ok(Log { path: path.to_owned(), format, first_us, stored_bytes: about.len(), is_descending })
}

/// What the first entries of a log say.
#[derive(Default)]
struct Beginning {
    first_us: Option<i64>,
    last_us: Option<i64>,
    rises: u64,
    falls: u64,
    /// How far it fell in all.
    fallen_us: i64,
    entries: u64,
}

impl Beginning {
    /// Entries of several processes are not quite in order where the log keeps the order in which they were written.
    fn is_descending(&self, keeps_order: bool) -> bool {
        let is_sure = !keeps_order || self.falls >= DISORDER_SURE || self.fallen_us > SECOND_US;
        self.falls > self.rises && is_sure
    }

    fn take(&mut self, found: &Found<'_>, zones: &mut Zones) -> Result<(), Stop> {
        let Found::Entry(entry) = found else { return Ok(()) };
        let wants_more = zones.learn(entry);
        if !PLAUSIBLE_US.contains(&entry.time_us) {
            return Ok(());
        }
        let time_us = entry.time_us.saturating_sub(zones.ahead_us_so_far(entry));
        let order_us = entry.received_us.unwrap_or(time_us);
        if let Some(last_us) = self.last_us.replace(order_us) {
            self.rises += u64::from(order_us > last_us);
            self.falls += u64::from(order_us < last_us);
            self.fallen_us = self.fallen_us.saturating_add(last_us.saturating_sub(order_us).max(0));
        }
        self.first_us = Some(self.first_us.map_or(time_us, |first_us| first_us.min(time_us)));
        self.entries += 1;
        let enough = if wants_more { ENTRIES_LOOKED_AT_FOR_ZONE } else { ENTRIES_LOOKED_AT };
        if self.entries >= enough { Err(Stop::Enough) } else { Ok(()) }
    }
}

/// What to do about a file whose format is not known.
fn undetected(path: &Path, why: &Undetected) -> CaptureError {
    let shown = path.display();
    let error = |message: String, remedy: &str, code| {
        CaptureError::new(message, remedy).coded(code, json!({"path": path.to_string_lossy()}))
    };
    match why {
        Undetected::Unknown => error(
            format!("{shown} is no log of PostgreSQL that can be read: csvlog, jsonlog, or stderr"),
            "for a log in stderr's format give its prefix: --prefix, as `SHOW log_line_prefix` prints it",
            "capture.log.unknown",
        ),
        Undetected::Psql => error(
            format!("{shown} is a table that psql has printed, which has blanks in place of tabs"),
            "take the log itself, or print it by `psql -At`",
            "capture.log.printed",
        ),
        Undetected::Utf16 => error(
            format!("{shown} is in UTF-16, as PowerShell writes what is redirected"),
            "convert it: iconv -f UTF-16 -t UTF-8",
            "capture.log.utf16",
        ),
        Undetected::Lacking(why) => error(
            format!("--prefix: {why}"),
            "set log_line_prefix so that it has both, as '%m [%p] %q%u@%d ', and log again",
            "capture.prefix.lacking",
        ),
    }
}

/// What a log without statements lacks.
fn useless(account: &Account) -> CaptureError {
    let languages: Vec<&str> = account.other_languages.keys().map(String::as_str).collect();
    let (code, why, remedy) = if !account.other_languages.is_empty() || !account.unknown_severities.is_empty() {
        let named = if languages.is_empty() { String::new() } else { format!(" ({})", languages.join(", ")) };
        let why = format!("its messages are in another language than English{named}: lc_messages");
        (
            "capture.log.language",
            why,
            "set lc_messages = 'C' on the server, reload, and log again: ALTER SYSTEM SET lc_messages = 'C'",
        )
    } else if account.cut_entries > 0 {
        let why = "all were cut: lines of them are not UTF-8, not whole, or missing".to_owned();
        ("capture.log.cut", why, "copy the log again; convert one in another encoding by iconv -f LATIN1 -t UTF-8")
    } else if account.lone_durations > 0 {
        (
            "capture.log.without_statements",
            "it has durations without statements".to_owned(),
            "set log_statement = 'all' beside log_duration, or log_min_duration_statement = 0",
        )
    } else {
        (
            "capture.log.without_statements",
            "statements were not logged".to_owned(),
            "set log_statement = 'all' and log_duration = on, or log_min_duration_statement = 0",
        )
    };
    let data = json!({
        "entries": account.entries,
        "severities": account.unknown_severities,
        "languages": languages,
        "cut": account.cut_entries,
    });
    CaptureError::new(format!("the log has no statement that could be sent again: {why}"), remedy).coded(code, data)
}

/// Reads logs as they come.
struct Reader<'a, 'w, W: Write> {
    assembler: Assembler,
    zones: &'a mut Zones,
    watch: &'a Watch<'w, W>,
    first_us: Option<i64>,
    last_us: i64,
    spread: Spread,
    tail: Tail,
}

/// The last entries of the logs before, of those whose lines have no numbers.
#[derive(Default)]
struct Tail {
    wanted: bool,
    entries: VecDeque<(i64, u64)>,
    before: HashSet<(i64, u64)>,
    until_us: i64,
}

impl Tail {
    fn next_log(&mut self, last_us: i64) {
        self.until_us = last_us;
        self.before = self.entries.drain(..).collect();
    }

    /// Notes an entry. Whether the log before has it too.
    fn has(&mut self, entry: &Entry<'_>) -> bool {
        if !self.wanted || entry.line.is_some() {
            return false;
        }
        let known = (entry.time_us, glance(entry));
        if self.entries.len() == ENTRIES_REMEMBERED {
            self.entries.pop_front();
        }
        self.entries.push_back(known);
        entry.time_us <= self.until_us && self.before.contains(&known)
    }
}

impl<W: Write> Reader<'_, '_, W> {
    fn log(&mut self, log: &Log) -> Result<(), Stop> {
        let (watch, pulse) = (self.watch, || self.watch.look());
        let (input, position) = Input::open(&log.path)?;
        let mut input = input.pulsed(&pulse);
        *watch.position.borrow_mut() = Some(position);
        let name = log.path.display().to_string();
        self.assembler.account.files.push((name.clone(), log.format.name()));
        self.assembler.place = (name, 1);
        let lines = Rc::clone(&input.line);
        let (fractions, follows) = (log.format.has_fractions(), log.format.says_entries_behind());
        // What a store gives out is in no order that it promises.
        let orderly = if log.format.keeps_order() { ORDERLY } else { u64::MAX };
        let mut received_us = i64::MIN;
        let ended = log.format.read::<Stop>(&mut input, &mut |found| {
            // An entry that is told at its end ends with the line before.
            let behind = follows && matches!(found, Found::Entry(_));
            self.assembler.place.1 = lines.get() + u64::from(!behind);
            if let (Found::Entry(Entry { received_us: Some(us), .. }), u64::MAX) = (&found, orderly) {
                if *us < received_us {
                    return Err(Stop::Disordered);
                }
                received_us = *us;
            }
            self.found(found, fractions)?;
            let disorder = self.assembler.disorder;
            let least =
                if orderly == u64::MAX { 1 } else { DISORDER_SURE.max(self.assembler.account.entries / orderly) };
            if disorder >= least { Err(Stop::Disordered) } else { Ok(()) }
        });
        let ended = ended.and_then(|()| self.spread.flush(&mut self.assembler).map_err(Stop::Unwritten));
        self.assembler.account.bytes += input.bytes;
        watch.position.replace(None);
        watch.read.set(watch.read.get() + log.stored_bytes);
        ended?;
        // The later half is before the earlier one.
        let is_turned = self.assembler.account.time_went_back > 0
            && self.first_us.is_some_and(|first_us| self.assembler.time_us() < first_us.saturating_sub(SECOND_US));
        if is_turned { Err(Stop::Disordered) } else { Ok(()) }
    }

    fn found(&mut self, found: Found<'_>, fractions: bool) -> Result<(), Stop> {
        let Found::Entry(entry) = found else {
            sorted::count(&found, &mut self.assembler);
            return Ok(());
        };
        let account = &mut self.assembler.account;
        self.watch.entries.set(account.entries);
        self.watch.calls.set(account.calls);
        let ahead_us = self.zones.ahead_us(entry);
        let shifted = (ahead_us != 0).then(|| entry.clone().earlier(ahead_us));
        let entry = shifted.as_ref().unwrap_or(entry);
        if !PLAUSIBLE_US.contains(&entry.time_us) {
            self.assembler.implausible("time");
            return Ok(());
        }
        if self.tail.has(entry) {
            return Err(Stop::Disordered);
        }
        self.first_us.get_or_insert(entry.time_us);
        self.last_us = self.last_us.max(entry.time_us);
        let taken = if fractions {
            self.assembler.entry(entry)
        } else {
            self.spread.entry(entry.clone().into_owned(), &mut self.assembler)
        };
        taken.map_err(Stop::Unwritten)
    }
}
