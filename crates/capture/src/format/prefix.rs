//! `log_line_prefix`: what stands before each line of a log in stderr's format (documentation, "What to Log").

use std::borrow::Cow;

use crate::entry::{Entry, host_of, transaction_of};
use crate::time::instant;

/// What may follow a prefix, from `elog.c`. The first begin an entry, the others belong to the one before.
const SEVERITIES: [&str; 12] =
    ["LOG", "ERROR", "FATAL", "PANIC", "WARNING", "NOTICE", "INFO", "DEBUG", "DEBUG1", "DEBUG2", "DEBUG3", "DEBUG4"];
const ADDITIONS: [&str; 7] = ["DETAIL", "HINT", "QUERY", "CONTEXT", "LOCATION", "STATEMENT", "BACKTRACE"];

/// A part of a prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    /// An escape by its letter.
    Escape(char),
}

/// A prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Prefix {
    text: String,
    parts: Vec<Part>,
}

/// A line behind its prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    /// What the prefix says; severity and message too.
    pub entry: Entry<'a>,
    /// Whether it belongs to the entry before, and is not one.
    pub addition: bool,
}

impl Prefix {
    /// Reads a setting. An error says what of it is not known.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut parts: Vec<Part> = Vec::new();
        let mut letters = text.chars();
        let literal = |parts: &mut Vec<Part>, letter: char| match parts.last_mut() {
            Some(Part::Text(text)) => text.push(letter),
            _ => parts.push(Part::Text(letter.to_string())),
        };
        while let Some(letter) = letters.next() {
            if letter != '%' {
                literal(&mut parts, letter);
                continue;
            }
            // A width pads with blanks, which are no part of the value.
            match letters.find(|letter| !(letter.is_ascii_digit() || *letter == '-')) {
                Some('%') => literal(&mut parts, '%'),
                Some(escape) if "abcdehilmnpqrstuvxPQL".contains(escape) => parts.push(Part::Escape(escape)),
                Some(escape) => return Err(format!("`%{escape}` is no escape of log_line_prefix")),
                None => return Err("it ends with a lone `%`".to_owned()),
            }
        }
        if !parts.iter().any(|part| matches!(part, Part::Escape('t' | 'm' | 'n'))) {
            return Err("it has no time (`%m`, `%n` or `%t`)".to_owned());
        }
        if !parts.iter().any(|part| matches!(part, Part::Escape('p' | 'c'))) {
            return Err("it has no process (`%p`) and no session (`%c`)".to_owned());
        }
        Ok(Self { text: text.to_owned(), parts })
    }

    /// As it is set.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether its time has fractions of seconds.
    pub(crate) fn has_fractions(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Escape('m' | 'n')))
    }

    /// Reads a line. None if it does not begin with this prefix and a severity.
    pub(crate) fn read<'a>(&self, line: &'a str) -> Option<Line<'a>> {
        parts(&self.parts, line, Entry::default())
    }
}

/// Reads the rest of a line by the rest of a prefix. A text may hold what follows it, so each place is tried.
fn parts<'a>(left: &[Part], line: &'a str, mut entry: Entry<'a>) -> Option<Line<'a>> {
    let Some((part, after)) = left.split_first() else { return severity(line, entry) };
    match part {
        Part::Text(text) => {
            if let Some(rest) = line.strip_prefix(text.as_str()) {
                return parts(after, rest, entry);
            }
            // Blanks before and behind a value that is padded.
            let rest = line.trim_start_matches(' ').strip_prefix(text.trim_start_matches(' '))?;
            parts(after, rest, entry)
        }
        // Processes without a session end the prefix here.
        Part::Escape('q') => parts(after, line, entry.clone()).or_else(|| severity(line, entry)),
        Part::Escape('t' | 'm') => {
            let (us, _, rest) = instant(line.trim_start_matches(' '))?;
            entry.time_us = us;
            parts(after, rest, entry)
        }
        Part::Escape('s') => {
            if let Some((us, _, rest)) = instant(line.trim_start_matches(' ')) {
                entry.session_begin_us = Some(us);
                return parts(after, rest, entry);
            }
            parts(after, line, entry)
        }
        Part::Escape(escape) => {
            let ends = places(after, line);
            ends.into_iter().find_map(|end| {
                let mut tried = entry.clone();
                take(*escape, line[..end].trim_matches(' '), &mut tried)?;
                parts(after, &line[end..], tried)
            })
        }
    }
}

/// Where a value may end: before each occurrence of the text that follows, or before a severity.
fn places(after: &[Part], line: &str) -> Vec<usize> {
    let next = after.iter().find_map(|part| match part {
        Part::Text(text) => Some(text.trim_start_matches(' ')).map(|inner| if inner.is_empty() { text } else { inner }),
        Part::Escape('q') => None,
        Part::Escape(_) => Some(""),
    });
    match next {
        Some("") => (0..=line.len()).filter(|at| line.is_char_boundary(*at)).collect(),
        Some(text) => line.match_indices(text).map(|(at, _)| at).collect(),
        None => SEVERITIES
            .iter()
            .chain(&ADDITIONS)
            .filter_map(|severity| line.find(&format!("{severity}:  ")))
            .collect::<std::collections::BTreeSet<_>>()
            .into_iter()
            .collect(),
    }
}

/// Puts a value where it belongs. None if it cannot be one.
fn take<'a>(escape: char, value: &'a str, entry: &mut Entry<'a>) -> Option<()> {
    let some = |value: &'a str| (!value.is_empty() && value != "[unknown]").then_some(Cow::Borrowed(value));
    match escape {
        'p' => entry.pid = Some(value.parse().ok()?),
        'l' => entry.line = Some(value.parse().ok()?),
        'n' => {
            let (seconds, fraction) = value.split_once('.').unwrap_or((value, "0"));
            let fraction_us = format!("{fraction:0<6}").get(..6)?.parse::<i64>().ok()?;
            entry.time_us = seconds.parse::<i64>().ok()?.checked_mul(1_000_000)?.checked_add(fraction_us)?;
        }
        'c' => {
            let (begin, pid) = value.split_once('.')?;
            u64::from_str_radix(begin, 16).ok()?;
            entry.pid = Some(u32::from_str_radix(pid, 16).ok()?);
            entry.session = some(value);
        }
        'u' => entry.user = some(value),
        'd' => entry.database = some(value),
        'a' => entry.application = some(value),
        'h' => entry.host = some(value),
        'r' => entry.host = some(host_of(value)),
        'v' => entry.transaction = transaction_of(value),
        'i' => entry.tag = some(value),
        'e' => entry.sqlstate = (value.len() == 5).then_some(Cow::Borrowed(value)),
        _ => (),
    }
    Some(())
}

fn severity<'a>(line: &'a str, mut entry: Entry<'a>) -> Option<Line<'a>> {
    let (word, message) = line.split_once(":  ")?;
    let word = word.trim_start_matches(' ');
    let addition = ADDITIONS.contains(&word);
    if !addition && !SEVERITIES.contains(&word) && word != "DEBUG5" {
        return None;
    }
    entry.severity = Cow::Borrowed(word);
    entry.message = Cow::Borrowed(message);
    Some(Line { entry, addition })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<'a>(prefix: &str, line: &'a str) -> Entry<'a> {
        let found = Prefix::parse(prefix).unwrap().read(line);
        found.unwrap_or_else(|| panic!("{prefix} reads {line}")).entry
    }

    #[test]
    fn prefixes_are_read_with_what_they_have() {
        let entry = read("%m [%p] %q%u@%d ", "2026-11-25 07:04:42.123 UTC [41] app@shop LOG:  statement: SELECT 1");
        assert_eq!(
            (entry.pid, entry.user.as_deref(), entry.database.as_deref()),
            (Some(41), Some("app"), Some("shop"))
        );
        assert_eq!(entry.message, "statement: SELECT 1");
        let entry = read("%m [%p] %q%u@%d ", "2026-11-25 07:04:42.123 UTC [41] LOG:  checkpoint starting: time");
        assert_eq!((entry.user, entry.message.as_ref()), (None, "checkpoint starting: time"));
        let entry =
            read("%t:%r:%u@%d:[%p]:", "2026-11-25 07:04:42 UTC:10.0.0.1(4355):app@shop:[7]:LOG:  execute s: a:b");
        assert_eq!((entry.host.as_deref(), entry.pid), (Some("10.0.0.1"), Some(7)));
        let entry = read("%t:%r:%u@%d:[%p]:", "2026-11-25 07:04:42 UTC::@:[7]:LOG:  checkpoint complete");
        assert_eq!((entry.host, entry.user, entry.pid), (None, None, Some(7)));
        let entry = read("%n %c %l %v %a|", "1795590282.123 6563a1.2f 17 4/12 my app: x|ERROR:  division by zero");
        assert_eq!((entry.time_us, entry.pid, entry.line), (1_795_590_282_123_000, Some(47), Some(17)));
        assert_eq!((entry.transaction, entry.application.as_deref()), (Some(12), Some("my app: x")));
        let entry = read("%m %-8p %10u ", "2026-11-25 07:04:42.123 UTC 41             app LOG:  x");
        assert_eq!((entry.pid, entry.user.as_deref()), (Some(41), Some("app")));
    }

    #[test]
    fn additions_belong_to_the_entry_before_and_other_lines_are_none() {
        let prefix = Prefix::parse("%m [%p] ").unwrap();
        assert!(prefix.read("2026-11-25 07:04:42.123 UTC [41] DETAIL:  parameters: $1 = 'x'").unwrap().addition);
        for line in ["", "\tFROM t", "pg_ctl: done", "2026-11-25 07:04:42.123 UTC [41] SELECT:  1"] {
            assert_eq!(prefix.read(line), None, "{line}");
        }
    }

    #[test]
    fn settings_that_cannot_be_used_are_said() {
        for (text, why) in [("%u ", "no time"), ("%m ", "no process"), ("%m %p %k", "`%k`"), ("%m %p %", "lone")] {
            let error = Prefix::parse(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
