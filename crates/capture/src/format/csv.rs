//! csvlog: 23 columns until PostgreSQL 12, 24 in 13, 26 from 14 on (documentation, "Using CSV-Format Log Output").

use std::borrow::Cow;
use std::io;

use super::found::{Found, Sink, skip_to};
use crate::entry::{Entry, host_and_port, transaction_of};
use crate::input::{End, Input};
use crate::time::instant;

const COLUMNS: [usize; 3] = [23, 24, 26];
/// A table of entries may have some of its own.
const COLUMNS_MAX: usize = 64;
/// Columns that a line is known by (`csvlog.c`): numbers and instants, and the message, which is the first that may have several lines.
const TIME: usize = 0;
const PID: usize = 3;
const SESSION: usize = 5;
const LINE: usize = 6;
const SESSION_BEGIN: usize = 8;
const SEVERITY: usize = 11;
const STATE: usize = 12;
const MESSAGE: usize = 13;
/// Within so many bytes are all columns before the message: names have 63 bytes, hosts 255.
const BEFORE_MESSAGE_BYTES: usize = 1024;
/// Longer than any beginning of an entry: instant and zone.
const HEAD_BYTES: usize = 40;

/// A column as it is written, without its quotes.
#[derive(Clone, Copy)]
struct Column<'a> {
    raw: &'a str,
    /// Whether it has doubled quotes.
    doubled: bool,
}

/// Names of the columns, in the order of a csvlog. A table of them may have any others, and any order.
const NAMES: [&str; 26] = [
    "log_time",
    "user_name",
    "database_name",
    "process_id",
    "connection_from",
    "session_id",
    "session_line_num",
    "command_tag",
    "session_start_time",
    "virtual_transaction_id",
    "transaction_id",
    "error_severity",
    "sql_state_code",
    "message",
    "detail",
    "hint",
    "internal_query",
    "internal_query_pos",
    "context",
    "query",
    "query_pos",
    "location",
    "application_name",
    "backend_type",
    "leader_pid",
    "query_id",
];

/// How the records of a file are written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Where each column of a csvlog is, by a header; none without one.
    pub header: Option<Vec<Option<usize>>>,
    /// Lines end in CR LF, as on Windows: those of texts too.
    pub crlf: bool,
}

impl Layout {
    /// The layout of a file that begins with these lines, if it is a csvlog, or was one before it went through a table.
    pub(super) fn of(lines: &[&str]) -> Option<Self> {
        let header = lines.first().and_then(|line| header(line));
        if header.is_none() && !lines.iter().any(|line| is_entry(line.as_bytes()) || begins_record(line.as_bytes())) {
            return None;
        }
        Some(Self { header, crlf: false })
    }

    /// Whether a line begins a record. Of one with a header it is not known.
    fn begins(&self, line: &[u8]) -> bool {
        self.header.is_none() && begins_record(line)
    }

    /// Where a column is.
    fn place(&self, column: usize, columns: usize) -> Option<usize> {
        let place = match &self.header {
            Some(places) => places[column],
            None => Some(column),
        };
        place.filter(|place| *place < columns)
    }
}

/// The places of the columns by a first line with their names.
fn header(line: &str) -> Option<Vec<Option<usize>>> {
    let line = line.trim_start_matches('\u{feff}').trim_end();
    let found: Vec<&str> = line.split(',').map(|name| name.trim_matches('"')).collect();
    let places: Vec<Option<usize>> = NAMES.iter().map(|name| found.iter().position(|column| column == name)).collect();
    // Without these there is no session with statements.
    let is_enough = [TIME, SEVERITY, MESSAGE].iter().all(|column| places[*column].is_some())
        && [PID, SESSION].iter().any(|column| places[*column].is_some());
    is_enough.then_some(places)
}

/// Whether a line begins an entry.
fn is_entry(line: &[u8]) -> bool {
    let head = &line[..line.len().min(HEAD_BYTES)];
    let head = std::str::from_utf8(head).or_else(|error| std::str::from_utf8(&head[..error.valid_up_to()]));
    head.ok().and_then(instant).is_some_and(|found| found.fractions && found.rest.starts_with(','))
}

/// Whether a line begins a record: by its columns up to the message, which no line inside of a quoted text has, as its own quotes are doubled there.
/// `line` needs not be whole.
fn begins_record(line: &[u8]) -> bool {
    if line.get(4) != Some(&b'-') {
        return false;
    }
    let mut columns = [&[][..]; MESSAGE];
    let mut rest = &line[..line.len().min(BEFORE_MESSAGE_BYTES)];
    for column in &mut columns {
        let Some((found, after)) = short_column(rest) else { return false };
        (*column, rest) = (found, after);
    }
    let digits = |column: &[u8]| !column.is_empty() && column.iter().all(u8::is_ascii_digit);
    let is_session = columns[SESSION].iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'.');
    let is_instant = |column: usize| {
        let found = std::str::from_utf8(columns[column]).ok().and_then(instant);
        found.is_some_and(|found| found.rest.is_empty())
    };
    // The message is empty or in quotes; doubled ones are those of a text around it.
    let message =
        matches!(rest, [b',', ..] | [b'"', b'"', b',', ..]) || matches!(rest, [b'"', next, ..] if *next != b'"');
    let plain =
        digits(columns[PID]) && digits(columns[LINE]) && is_session && is_instant(TIME) && is_instant(SESSION_BEGIN);
    plain && !columns[SEVERITY].is_empty() && columns[STATE].len() == 5 && message
}

/// The first column of a line, if it ends there with a comma, and what is behind it.
fn short_column(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = if line.first() == Some(&b'"') {
        let mut at = 1;
        loop {
            at += memchr::memchr2(b'"', b'\n', line.get(at..)?)?;
            match (line[at], line.get(at + 1)) {
                (b'"', Some(b'"')) => at += 2,
                (b'"', _) => break at + 1,
                _ => return None,
            }
        }
    } else {
        memchr::memchr3(b',', b'"', b'\n', line)?
    };
    line[length..].strip_prefix(b",").map(|after| (&line[..length], after))
}

pub(super) fn read<E: From<io::Error>>(
    input: &mut Input<'_>,
    layout: &Layout,
    sink: &mut Sink<'_, E>,
) -> Result<(), E> {
    let mut first = layout.header.is_some();
    loop {
        let mut scan = Scan::new(layout);
        let Some(next) = input.next(|seen, looked| scan.record_length(seen, looked))? else { return Ok(()) };
        if std::mem::take(&mut first) {
            input.take(next.length);
            continue;
        }
        let record = &input.seen()[..next.length];
        let whole = next.end == End::Found;
        // Once for all of it: for each column it took 7 % of the reading.
        let text = std::str::from_utf8(record);
        let read = text.ok().filter(|_| whole).and_then(|text| entry_of(text, layout));
        let found = match &read {
            Some(entry) => Found::Entry(entry),
            None if next.end == End::TooFar => Found::TooLong,
            None if text.is_err() && whole && split(&String::from_utf8_lossy(record)).is_some() => Found::NotText,
            None => Found::Torn,
        };
        let lost = matches!(found, Found::Torn | Found::TooLong);
        sink(found)?;
        if lost {
            skip_to(input, |line| layout.begins(line) || layout.header.is_some())?;
        } else {
            input.take(next.length);
        }
    }
}

/// The entry of a whole record.
pub(super) fn entry_of<'a>(record: &'a str, layout: &Layout) -> Option<Entry<'a>> {
    let columns = split(record)?;
    if layout.header.is_none() && !COLUMNS.contains(&columns.len()) {
        return None;
    }
    entry(&columns, layout)
}

/// How far a record was looked for.
struct Scan<'l> {
    layout: &'l Layout,
    quoted: bool,
    /// Where a line inside of quotes begins that was not seen far enough to tell whether a record begins with it.
    unsure: Option<usize>,
}

impl<'l> Scan<'l> {
    fn new(layout: &'l Layout) -> Self {
        Self { layout, quoted: false, unsure: None }
    }

    /// Length of the first record: up to the first end of a line that is outside of quotes, or before a record. In the second case it is torn.
    fn record_length(&mut self, seen: &[u8], looked: usize) -> Option<usize> {
        if let Some(at) = self.unsure {
            if !is_far_enough(seen, at) {
                return self.scan(seen, looked);
            }
            self.unsure = None;
            if self.layout.begins(&seen[at..]) {
                return Some(at);
            }
        }
        self.scan(seen, looked)
    }

    fn scan(&mut self, seen: &[u8], looked: usize) -> Option<usize> {
        for at in memchr::memchr2_iter(b'"', b'\n', &seen[looked..]).map(|at| looked + at) {
            if seen[at] == b'"' {
                self.quoted = !self.quoted;
            } else if !self.quoted {
                return Some(at + 1);
            } else if is_far_enough(seen, at + 1) {
                if self.layout.begins(&seen[at + 1..]) {
                    return Some(at + 1);
                }
            } else {
                self.unsure.get_or_insert(at + 1);
            }
        }
        None
    }
}

/// Whether enough of the line is there to tell what begins with it.
fn is_far_enough(seen: &[u8], at: usize) -> bool {
    let line = &seen[at..];
    line.len() >= BEFORE_MESSAGE_BYTES + HEAD_BYTES || memchr::memchr(b'\n', line).is_some()
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
        if columns.len() > COLUMNS_MAX {
            return None;
        }
        match bytes.get(at) {
            None => return Some(columns),
            Some(b',') => at += 1,
            Some(_) => return None,
        }
    }
}

/// The entry of a record; none if it has no instant.
fn entry<'a>(columns: &[Column<'a>], layout: &Layout) -> Option<Entry<'a>> {
    let plain = |column: usize| layout.place(column, columns.len()).map_or("", |place| columns[place].raw);
    let text = |column: usize| {
        let Some(Column { raw, doubled }) = layout.place(column, columns.len()).map(|place| columns[place]) else {
            return Cow::Borrowed("");
        };
        let text = if doubled { Cow::Owned(raw.replace("\"\"", "\"")) } else { Cow::Borrowed(raw) };
        if layout.crlf && text.contains("\r\n") { Cow::Owned(text.replace("\r\n", "\n")) } else { text }
    };
    let some = |column: usize| (!plain(column).is_empty()).then(|| text(column));
    let time = instant(plain(TIME))?;
    let (host, port) = host_and_port(plain(4));
    let begin = instant(plain(SESSION_BEGIN));
    Some(Entry {
        time_us: time.us,
        zone: time.zone,
        received_us: None,
        cut: false,
        pid: plain(PID).parse().ok(),
        session: some(SESSION),
        line: plain(LINE).parse().ok(),
        additions: 0,
        session_begin_us: begin.map(|begin| begin.us),
        user: some(1),
        database: some(2),
        host: (!host.is_empty()).then_some(Cow::Borrowed(host)),
        port,
        application: some(22),
        transaction: transaction_of(plain(9)),
        tag: some(7),
        severity: text(SEVERITY),
        sqlstate: some(STATE),
        message: text(MESSAGE),
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
        read::<io::Error>(&mut input, &Layout::default(), &mut |one| {
            found.push(match one {
                Found::Entry(entry) => entry.message.to_string(),
                Found::Torn => "(torn)".to_owned(),
                Found::NotText | Found::LineNotText => "(not text)".to_owned(),
                Found::Foreign => "(foreign)".to_owned(),
                Found::TooLong => "(too long)".to_owned(),
                Found::Missing(_) => "(missing)".to_owned(),
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
        read::<io::Error>(&mut input, &Layout::default(), &mut |one| {
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
        read::<io::Error>(&mut input, &Layout::default(), &mut |one| {
            kinds.push(matches!(one, Found::NotText));
            Ok(())
        })
        .unwrap();
        assert_eq!(kinds, [true, false]);
    }

    /// A record torn inside of its quoted message, and behind it more than a record may have.
    #[test]
    fn a_torn_quote_costs_its_record_alone_and_is_not_read_to_the_end() {
        let (torn, good) = (line("statement: SELECT 1", ""), line("good", ""));
        let inside = torn.find("SELECT 1").unwrap() + 3;
        for (cut, glue) in [(inside, "\n"), (inside, ""), (torn.len() - 30, "\n")] {
            let text = format!("{good}{}{glue}{}", &torn[..cut], good.repeat(400));
            let mut input = Input::of(Box::new(io::Cursor::new(text))).limited(4096);
            let (mut entries, mut torn) = (0, 0);
            read::<io::Error>(&mut input, &Layout::default(), &mut |one| {
                match one {
                    Found::Entry(_) => entries += 1,
                    Found::Torn => torn += 1,
                    _ => panic!("it is of no other kind"),
                }
                Ok(())
            })
            .unwrap();
            // One that follows without an end of the line is lost with it.
            assert_eq!((entries, torn), (if glue.is_empty() { 400 } else { 401 }, 1), "cut at {cut}");
        }
    }

    #[test]
    fn an_entry_inside_of_a_quoted_text_is_no_record() {
        let inner = line("statement: SELECT 1", "").replace('"', "\"\"");
        let of_server = inner.replace("\"\"app\"\",\"\"shop\"\"", ",");
        for inner in [inner, of_server] {
            let text = line(&format!("statement: INSERT INTO logs VALUES ('\n{inner}')"), "");
            let found = found(&text);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].contains("INSERT INTO logs"), "{found:?}");
        }
    }

    #[test]
    fn a_record_that_is_too_long_is_said_and_costs_itself_alone() {
        let (long, good) = (line(&"x\n".repeat(100_000), ""), line("good", ""));
        let text = format!("{good}{long}{good}");
        let mut input = Input::of(Box::new(io::Cursor::new(text))).limited(50_000);
        let mut kinds = Vec::new();
        read::<io::Error>(&mut input, &Layout::default(), &mut |one| {
            kinds.push(match one {
                Found::Entry(_) => "entry",
                Found::TooLong => "too long",
                _ => "other",
            });
            Ok(())
        })
        .unwrap();
        assert_eq!(kinds, ["entry", "too long", "entry"]);
    }

    /// A source that gives little at a time, as one that inflates does.
    struct Slow<'a>(&'a [u8]);

    impl io::Read for Slow<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let count = self.0.len().min(into.len()).min(100);
            into[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    #[test]
    fn no_byte_of_a_record_is_looked_at_twice_however_it_comes() {
        let text: &'static str = line(&"x\n".repeat(50_000), "").leak();
        let layout = Layout::default();
        let (mut scan, mut bytes) = (Scan::new(&layout), 0);
        let mut input = Input::of(Box::new(Slow(text.as_bytes())));
        let next = input.next(|seen, looked| {
            bytes += seen.len() - looked;
            scan.record_length(seen, looked)
        });
        assert_eq!(next.unwrap().unwrap().length, text.len());
        assert_eq!(bytes, text.len());
    }
}
