//! csvlog: 23 columns until PostgreSQL 12, 24 in 13, 26 from 14 on (documentation, "Using CSV-Format Log Output").

use std::borrow::Cow;
use std::io;

use super::found::{Found, Sink, skip_to};
use crate::entry::{Entry, host_of, transaction_of};
use crate::input::Input;
use crate::time::instant;

const COLUMNS: [usize; 3] = [23, 24, 26];
/// Longer than any beginning of an entry: instant and zone.
const HEAD_BYTES: usize = 40;

/// A column as it is written, without its quotes.
#[derive(Clone, Copy)]
struct Column<'a> {
    raw: &'a str,
    /// Whether it has doubled quotes.
    doubled: bool,
}

/// Whether a line begins an entry.
pub(super) fn is_entry(line: &[u8]) -> bool {
    let head = &line[..line.len().min(HEAD_BYTES)];
    let head = std::str::from_utf8(head).or_else(|error| std::str::from_utf8(&head[..error.valid_up_to()]));
    head.ok().and_then(instant).is_some_and(|(_, fractions, rest)| fractions && rest.starts_with(','))
}

pub(super) fn read<E: From<io::Error>>(input: &mut Input, sink: &mut Sink<'_, E>) -> Result<(), E> {
    loop {
        let Some(next) = input.next(record_length)? else { return Ok(()) };
        let record = &input.seen()[..next.length];
        // Once for all of it: for each column it took 7 % of the reading.
        let text = std::str::from_utf8(record);
        let read = text.ok().filter(|_| next.whole).and_then(split).and_then(|columns| entry(&columns));
        let found = match &read {
            Some(entry) => Found::Entry(entry),
            None if text.is_err() && next.whole && split(&String::from_utf8_lossy(record)).is_some() => Found::NotText,
            None => Found::Torn,
        };
        let torn = matches!(found, Found::Torn);
        sink(found)?;
        if torn {
            skip_to(input, is_entry)?;
        } else {
            input.take(next.length);
        }
    }
}

/// Length of the first record: up to the first end of a line outside of quotes.
fn record_length(seen: &[u8]) -> Option<usize> {
    let mut quoted = false;
    for at in memchr::memchr2_iter(b'"', b'\n', seen) {
        if seen[at] == b'"' {
            quoted = !quoted;
        } else if !quoted {
            return Some(at + 1);
        }
    }
    None
}

/// Cuts a record into columns. None if quotes stand where none can: then its beginning is that of another one.
fn split(record: &str) -> Option<Vec<Column<'_>>> {
    let mut columns = Vec::with_capacity(COLUMNS[2]);
    let record = record.strip_suffix('\n').unwrap_or(record);
    let record = record.strip_suffix('\r').unwrap_or(record);
    let bytes = record.as_bytes();
    let mut at = 0;
    loop {
        if bytes.get(at) == Some(&b'"') {
            let begin = at + 1;
            let mut doubled = false;
            at = begin;
            loop {
                at += memchr::memchr(b'"', &bytes[at..])? + 1;
                if bytes.get(at) != Some(&b'"') {
                    break;
                }
                doubled = true;
                at += 1;
            }
            columns.push(Column { raw: &record[begin..at - 1], doubled });
        } else {
            let length = memchr::memchr2(b',', b'"', &bytes[at..]).unwrap_or(bytes.len() - at);
            columns.push(Column { raw: &record[at..at + length], doubled: false });
            at += length;
        }
        match bytes.get(at) {
            None => return COLUMNS.contains(&columns.len()).then_some(columns),
            Some(b',') => at += 1,
            Some(_) => return None,
        }
    }
}

/// The entry of a record; none if it has no instant.
fn entry<'a>(columns: &[Column<'a>]) -> Option<Entry<'a>> {
    let plain = |index: usize| columns[index].raw;
    let text = |index: usize| {
        let Column { raw, doubled } = columns[index];
        if doubled { Cow::Owned(raw.replace("\"\"", "\"")) } else { Cow::Borrowed(raw) }
    };
    let some = |index: usize| (!plain(index).is_empty()).then(|| text(index));
    let (time_us, _, _) = instant(plain(0))?;
    Some(Entry {
        time_us,
        pid: plain(3).parse().ok(),
        session: some(5),
        line: plain(6).parse().ok(),
        additions: 0,
        session_begin_us: instant(plain(8)).map(|(us, _, _)| us),
        user: some(1),
        database: some(2),
        host: (!plain(4).is_empty()).then(|| Cow::Borrowed(host_of(plain(4)))),
        application: some(22),
        transaction: transaction_of(plain(9)),
        tag: some(7),
        severity: text(11),
        sqlstate: some(12),
        message: text(13),
        detail: some(14),
        context: some(18),
        statement: some(19),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "2026-11-25 07:04:42.123 UTC";

    fn line(message: &str, detail: &str) -> String {
        format!(
            "{HEAD},\"app\",\"shop\",7,\"10.0.0.1:5000\",6563.7,3,\"SELECT\",2026-11-25 07:04:40 UTC,4/12,0,LOG,00000,\
             \"{message}\",\"{detail}\",,,,,,,,\"a b\",\"client backend\",,0\n"
        )
    }

    fn found(text: &str) -> Vec<String> {
        let mut input = Input::of(Box::new(io::Cursor::new(text.to_owned())));
        let mut found = Vec::new();
        read::<io::Error>(&mut input, &mut |one| {
            found.push(match one {
                Found::Entry(entry) => entry.message.to_string(),
                Found::Torn => "(torn)".to_owned(),
                Found::NotText => "(not text)".to_owned(),
                Found::Foreign => "(foreign)".to_owned(),
            });
            Ok(())
        })
        .unwrap();
        found
    }

    #[test]
    fn an_entry_has_what_the_columns_have() {
        let text = line("statement: SELECT \"\"a\"\",\n1", "$1 = 'x'");
        let mut input = Input::of(Box::new(io::Cursor::new(text)));
        let mut count = 0;
        read::<io::Error>(&mut input, &mut |one| {
            let Found::Entry(entry) = one else { panic!("it is whole") };
            count += 1;
            assert_eq!(entry.message, "statement: SELECT \"a\",\n1");
            assert_eq!((entry.pid, entry.line, entry.transaction), (Some(7), Some(3), Some(12)));
            assert_eq!((entry.host.as_deref(), entry.application.as_deref()), (Some("10.0.0.1"), Some("a b")));
            assert_eq!(entry.time_us - entry.session_begin_us.unwrap(), 2_123_000);
            Ok(())
        })
        .unwrap();
        assert_eq!(count, 1);
    }

    #[test]
    fn a_torn_record_costs_itself_alone() {
        let (one, two) = (line("one", ""), line("two", ""));
        let inside = one.find("one").unwrap() + 2;
        for cut in [5, 60, inside, one.len() - 1] {
            let text = format!("{}{two}{two}", &one[..cut]);
            let found = found(&text);
            assert_eq!(found.last().map(String::as_str), Some("two"), "cut at {cut}: {found:?}");
            assert!(found.iter().any(|one| one == "(torn)"), "cut at {cut}: {found:?}");
            let later = format!("{}\n{two}{two}", &one[..cut]);
            assert_eq!(self::found(&later)[1..], ["two", "two"], "cut at {cut} with an end of a line");
        }
        assert_eq!(found(&format!("{two}{}", &one[..inside])), ["two", "(torn)"], "at the end");
    }

    #[test]
    fn what_is_not_text_is_said() {
        let text = line("one", "").into_bytes();
        let mut bytes = text.clone();
        let at = text.windows(3).position(|part| part == b"one").unwrap();
        bytes[at] = 0xe9;
        bytes.extend_from_slice(&text);
        let mut input = Input::of(Box::new(io::Cursor::new(bytes)));
        let mut kinds = Vec::new();
        read::<io::Error>(&mut input, &mut |one| {
            kinds.push(matches!(one, Found::NotText));
            Ok(())
        })
        .unwrap();
        assert_eq!(kinds, [true, false]);
    }
}
