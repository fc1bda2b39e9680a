//! The formats of PostgreSQL's log, each of which makes entries.

mod csv;
mod found;
mod json;
mod prefix;
mod stderr;

use std::borrow::Cow;
use std::io;

use crate::input::Input;
pub(crate) use found::{Found, Sink};
pub(crate) use prefix::Prefix;
pub(crate) use stderr::Wrapping;

/// Lines that are looked at to tell a format.
const LINES_LOOKED_AT: usize = 200;
/// And no more than this of them.
const BYTES_LOOKED_AT: usize = 4 << 20;
/// Of those, the share that a prefix must fit: the others are lines of other programs and of long statements.
const FITTING_LEAST: f64 = 0.5;
/// Prefixes that are tried where none is given: PostgreSQL's default, Debian's, those of RDS, Cloud SQL and Azure, and
/// those that documents advise (pgBadger, pgreplay, pganalyze).
const KNOWN_PREFIXES: [&str; 12] = [
    "%m [%p] %q%u@%d ",
    "%m [%p] ",
    "%t:%r:%u@%d:[%p]:",
    "%m:%r:%u@%d:[%p]:%l:%e:%s:%v:%x:%c:%q%a:",
    "%m [%p]: [%l-1] db=%d,user=%u ",
    "%t [%p]: [%l-1] user=%u,db=%d,app=%a,client=%h ",
    "%t [%p]: [%l-1] user=%u,db=%d ",
    "%t [%p]: user=%u,db=%d,app=%a,client=%h ",
    "%t [%p]: ",
    "%m|%u|%d|%c|",
    "%t-%c-",
    "%m [%p] [user=%u,db=%d,app=%a] ",
];

/// A format, as it was told from the beginning of a file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Format {
    Csv,
    Json,
    /// With a prefix, and wrapped in JSON where a provider exports it so.
    Stderr {
        prefix: Prefix,
        wrapping: Wrapping,
    },
}

impl Format {
    /// Its name in accounts.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Csv => "csvlog".to_owned(),
            Self::Json => "jsonlog".to_owned(),
            Self::Stderr { prefix, wrapping } => {
                let what = match wrapping {
                    Wrapping::None => "stderr",
                    Wrapping::CloudSql => "Cloud SQL",
                    Wrapping::Azure => "Azure",
                };
                format!("{what} with log_line_prefix = '{}'", prefix.text())
            }
        }
    }

    /// Whether its times have fractions of seconds.
    pub(crate) fn has_fractions(&self) -> bool {
        match self {
            Self::Csv | Self::Json => true,
            Self::Stderr { prefix, .. } => prefix.has_fractions(),
        }
    }

    /// Whether an entry is told when the next one begins: its end is known by that alone.
    pub(crate) fn says_entries_behind(&self) -> bool {
        matches!(self, Self::Stderr { .. })
    }

    /// Reads a file to its end.
    pub(crate) fn read<E: From<io::Error>>(&self, input: &mut Input<'_>, sink: &mut Sink<'_, E>) -> Result<(), E> {
        match self {
            Self::Csv => csv::read(input, sink),
            Self::Json => json::read(input, sink),
            Self::Stderr { prefix, wrapping } => stderr::read(input, prefix, *wrapping, sink),
        }
    }
}

/// Tells the format of a file from its first lines; `given` is the prefix of a log in stderr's format. None if it is none
/// of PostgreSQL's.
pub(crate) fn detect(input: &mut Input<'_>, given: Option<&Prefix>) -> io::Result<Option<Format>> {
    let is_enough = |seen: &[u8]| {
        seen.len() >= BYTES_LOOKED_AT
            || memchr::memchr_iter(b'\n', seen).take(LINES_LOOKED_AT).count() == LINES_LOOKED_AT
    };
    while !is_enough(input.seen()) && input.more()? {}
    let head = String::from_utf8_lossy(&input.seen()[..input.seen().len().min(BYTES_LOOKED_AT)]);
    let lines: Vec<&str> = head.lines().take(LINES_LOOKED_AT).collect();
    let (wrapping, texts) = taken_out(&lines);
    if let Some(given) = given {
        let strict = texts.iter().any(|line| given.read(line).is_some());
        let prefix = if strict { given.clone() } else { given.clone().of_any_language() };
        return Ok(Some(Format::Stderr { prefix, wrapping }));
    }
    if lines.iter().any(|line| json::is_entry(line)) {
        return Ok(Some(Format::Json));
    }
    if lines.iter().any(|line| csv::is_entry(line.as_bytes())) {
        return Ok(Some(Format::Csv));
    }
    let texts: Vec<&str> = texts.iter().map(AsRef::as_ref).collect();
    let found = known_prefix(&texts, |prefix| prefix);
    let found = found.or_else(|| known_prefix(&texts, Prefix::of_any_language));
    Ok(found.map(|prefix| Format::Stderr { prefix, wrapping }))
}

/// What lines are wrapped in, and what they are without it.
fn taken_out<'a>(lines: &[&'a str]) -> (Wrapping, Vec<Cow<'a, str>>) {
    let out = |wrapping: Wrapping| -> Vec<Cow<'a, str>> {
        lines.iter().filter_map(|line| wrapping.take_out(line.as_bytes())).map(|found| found.text).collect()
    };
    for wrapping in [Wrapping::CloudSql, Wrapping::Azure] {
        let texts = out(wrapping);
        if !texts.is_empty() {
            return (wrapping, texts);
        }
    }
    (Wrapping::None, out(Wrapping::None))
}

/// The known prefix that fits the most lines; of several, the first.
fn known_prefix(lines: &[&str], variant: fn(Prefix) -> Prefix) -> Option<Prefix> {
    let candidates: Vec<&&str> = lines.iter().filter(|line| !line.starts_with('\t') && !line.is_empty()).collect();
    let prefixes = KNOWN_PREFIXES.iter().filter_map(|text| Prefix::parse(text).ok()).map(variant);
    let fitting = |prefix: &Prefix| candidates.iter().filter(|line| prefix.read(line).is_some()).count();
    let mut best: Option<(usize, Prefix)> = None;
    for prefix in prefixes {
        let fits = fitting(&prefix);
        if best.as_ref().is_none_or(|(most, _)| fits > *most) {
            best = Some((fits, prefix));
        }
    }
    let (fits, prefix) = best?;
    (fits > 0 && fits as f64 >= candidates.len() as f64 * FITTING_LEAST).then_some(prefix)
}
