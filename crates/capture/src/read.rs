//! Reads logs into a capture.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
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

/// How often it is said how far it is.
const TELL: Duration = Duration::from_secs(1);
/// Entries between two looks at the clock.
const ENTRIES_A_LOOK: u64 = 4096;
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

/// What ends a reading: the user's, or of the file that is written.
enum Stop {
    Refused(CaptureError),
    Failed(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
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
    let logs = logs(spec)?;
    let mut reader = Reader {
        assembler: Assembler::new(Writer::create(&spec.output)?),
        signalled: &signalled,
        expected: logs.iter().map(|log| log.stored_bytes).sum::<u64>().max(1),
        read: 0,
        position: None,
        told: Instant::now(),
        looked: 0,
        last_us: i64::MIN,
        spread: Spread::default(),
        out,
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
    say(out, &json!({"summary": account}));
    Ok(())
}

fn overlap(path: &std::path::Path, log: &Log, last_us: i64) -> CaptureError {
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
fn logs(spec: &ReadSpec) -> Result<Vec<Log>, CaptureError> {
    let prefix =
        spec.prefix.as_deref().map(Prefix::parse).transpose().map_err(|why| {
            CaptureError::new(format!("--prefix: {why}"), "give it as `SHOW log_line_prefix` prints it")
        })?;
    let mut logs = Vec::new();
    for path in &spec.logs {
        let unreadable = |error: io::Error| CaptureError::unreadable(path, &error);
        let stored_bytes = File::open(path).and_then(|file| file.metadata()).map_err(unreadable)?.len();
        let (mut input, _) = Input::open(path).map_err(unreadable)?;
        let format = detect(&mut input, prefix.as_ref()).map_err(unreadable)?.ok_or_else(|| {
            CaptureError::new(
                format!("{} is no log of PostgreSQL that can be read: csvlog, jsonlog, or stderr", path.display()),
                "for a log in stderr's format give its prefix: --prefix, as `SHOW log_line_prefix` prints it",
            )
        })?;
        // Its first instant, by reading until there is one.
        let mut first_us = None;
        let ended: Result<(), Stop> = format.read(&mut input, &mut |found| match found {
            Found::Entry(entry) => {
                first_us = Some(entry.time_us);
                Err(Stop::Failed(io::ErrorKind::Interrupted.into()))
            }
            _ => Ok(()),
        });
        let first_us = match (first_us, ended) {
            (Some(first_us), _) => first_us,
            (None, Err(Stop::Failed(error))) => return Err(unreadable(error)),
            (None, Err(Stop::Refused(error))) => return Err(error),
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
    let (why, remedy) = if !account.unknown_severities.is_empty() {
        ("it is in another language than English", "set lc_messages = 'C' and log again")
    } else if account.lone_durations > 0 {
        (
            "it has durations without statements",
            "set log_statement = 'all' beside log_duration, or log_min_duration_statement = 0",
        )
    } else {
        (
            "statements were not logged",
            "set log_statement = 'all' and log_duration = on, or log_min_duration_statement = 0",
        )
    };
    CaptureError::new(format!("the log has no statement that could be sent again: {why}"), remedy)
}

struct Reader<'a, W: Write> {
    assembler: Assembler,
    signalled: &'a OwnedFd,
    expected: u64,
    /// Stored bytes of the logs that were read.
    read: u64,
    /// How far the one is that is being read.
    position: Option<Position>,
    told: Instant,
    looked: u64,
    last_us: i64,
    spread: Spread,
    out: &'a mut W,
}

impl<W: Write> Reader<'_, W> {
    fn log(&mut self, log: &Log) -> Result<(), CaptureError> {
        let unreadable = |error: io::Error| CaptureError::unreadable(&log.path, &error);
        let (mut input, position) = Input::open(&log.path).map_err(unreadable)?;
        self.position = Some(position);
        let name = log.path.display().to_string();
        self.assembler.account.files.push((name.clone(), log.format.name()));
        let mut place = 0;
        let result = log.format.read::<Stop>(&mut input, &mut |found| {
            place += 1;
            self.found(found, log.format.has_fractions(), (&name, place))
        });
        let ended = result.and_then(|()| self.spread.flush(&mut self.assembler).map_err(Stop::Failed));
        self.assembler.account.bytes += input.bytes;
        self.position = None;
        self.read += log.stored_bytes;
        match ended {
            Ok(()) => Ok(()),
            Err(Stop::Refused(error)) => Err(error),
            Err(Stop::Failed(error)) => Err(unreadable(error)),
        }
    }

    fn found(&mut self, found: Found<'_>, fractions: bool, place: (&str, u64)) -> Result<(), Stop> {
        self.looked += 1;
        if self.looked.is_multiple_of(ENTRIES_A_LOOK) {
            self.look()?;
        }
        let account = &mut self.assembler.account;
        match found {
            Found::Entry(entry) => {
                self.last_us = self.last_us.max(entry.time_us);
                if fractions {
                    self.assembler.entry(entry)?;
                } else {
                    self.spread.entry(entry.clone().into_owned(), &mut self.assembler)?;
                }
                return Ok(());
            }
            Found::Torn => account.torn += 1,
            Found::NotText => account.not_text += 1,
            Found::Foreign => {
                account.foreign += 1;
                return Ok(());
            }
        }
        account.first_unreadable.get_or_insert_with(|| (place.0.to_owned(), place.1));
        Ok(())
    }

    fn look(&mut self) -> Result<(), Stop> {
        let mut watched = [PollFd::new(self.signalled, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        if poll(&mut watched, Some(&now)).is_ok() && !watched[0].revents().is_empty() {
            return Err(Stop::Refused(CaptureError::new("interrupted", "run the command again")));
        }
        if self.told.elapsed() >= TELL {
            self.told = Instant::now();
            let account = &self.assembler.account;
            let read = self.read + self.position.as_mut().map_or(0, Position::stored_bytes);
            let share = (read as f64 / self.expected as f64).min(1.0);
            say(self.out, &json!({"progress": {"share": share, "entries": account.entries, "calls": account.calls}}));
        }
        Ok(())
    }
}

/// Spreads the entries of a second over it, in order, where a log has whole seconds.
#[derive(Default)]
struct Spread {
    entries: Vec<Entry<'static>>,
}

impl Spread {
    fn entry(&mut self, entry: Entry<'static>, to: &mut Assembler) -> io::Result<()> {
        if self.entries.first().is_some_and(|first| first.time_us != entry.time_us) {
            self.flush(to)?;
        }
        self.entries.push(entry);
        Ok(())
    }

    fn flush(&mut self, to: &mut Assembler) -> io::Result<()> {
        let count = i64::try_from(self.entries.len()).unwrap_or(i64::MAX).max(1);
        for (index, mut entry) in std::mem::take(&mut self.entries).into_iter().enumerate() {
            entry.time_us += i64::try_from(index).unwrap_or(0) * 1_000_000 / count;
            to.entry(&entry)?;
        }
        Ok(())
    }
}

/// Writes a line, and sees that it leaves. A reader that is gone is no error.
fn say(out: &mut impl Write, line: &serde_json::Value) {
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
