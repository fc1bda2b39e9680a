//! What logs are wrapped in on their way: by a container's runtime, the journal, syslog, or a provider's store. Each line, or document, has
//! a line of the log or a whole entry in it.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::json::Number;
use crate::time::{SECOND_US, Zone, days, instant, year_of};

/// What is around each line of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Frame {
    /// A document of Google's Logging for each line or entry, with `textPayload`.
    CloudSql,
    /// A document of Azure for each entry, without CONTEXT and STATEMENT.
    Azure,
    /// A document with `message` and a time: CloudWatch, Filebeat, Cloud Logging's agents.
    Message,
    /// Docker's json-file: a document with `log`, in which a line ends with its end of line, or goes on in the next one.
    Docker,
    /// What Fluent Bit makes of it: a document with `log`, a line without its end.
    FluentBit,
    /// `journalctl -o json`: a document with `MESSAGE`.
    Journal,
    /// Loki's: a document with `line`.
    Loki,
    /// The Kubernetes log format: time, stream, `F` or `P`, text.
    Kubernetes,
    /// So many words before each line, a time among them: `kubectl logs --timestamps`, an export or `tail` of CloudWatch, Docker Compose.
    Words(usize),
    /// Syslog as RFC 3164 or RFC 5424 has it, or as `journalctl` prints the journal; the program that writes the log.
    Syslog { program: String, year: Year },
    /// Each line as COPY writes a column in text format.
    Copy,
}

/// The year of times that have none: that of the first line, and the next one from January on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Year {
    year: i64,
    first_month: i64,
}

impl Year {
    /// By a first line, and by when the file was written, which is not before it.
    pub(super) fn of(line: &[u8], written_us: i64) -> Self {
        let today = written_us.div_euclid(86_400 * SECOND_US);
        let year = year_of(today);
        let Some((us, _)) = bsd_time(without_priority(line), Self { year, first_month: 1 }) else {
            return Self { year, first_month: 1 };
        };
        let day = us.div_euclid(86_400 * SECOND_US);
        let first_month = (1..=12).rev().find(|month| days(year, *month, 1) <= day).unwrap_or(1);
        // A day of slack for zones.
        Self { year: year - i64::from(day > today + 1), first_month }
    }

    fn of_month(self, month: i64) -> i64 {
        self.year + i64::from(month < self.first_month)
    }
}

fn without_priority(line: &[u8]) -> &[u8] {
    let inner =
        line.strip_prefix(b"<").and_then(|rest| Some(&rest[rest.iter().take(4).position(|byte| *byte == b'>')? + 1..]));
    inner.unwrap_or(line)
}

/// A line of a log, or an entry, without what was around it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Piece<'a> {
    /// As the server writes it to stderr.
    #[serde(with = "text_or_bytes")]
    pub text: Cow<'a, [u8]>,
    /// When it was received, in UTC.
    pub received_us: Option<i64>,
    /// When it was written, as syslog has it, with its zone: the time of an entry whose prefix has none.
    pub written_us: Option<i64>,
    pub zone: Zone,
    /// Who wrote it, by what was around.
    pub pid: Option<u32>,
    /// The line goes on in the next piece.
    pub goes_on: bool,
    /// What syslog counts: messages of the process, and parts of a message from 1; 0 of one that is whole.
    pub part: Option<(u64, u32)>,
    /// It is of syslog, which cuts long lines.
    pub is_syslog: bool,
    /// It may have been another text: rsyslog writes a tab as `#011`, and so may a statement.
    pub is_unsure: bool,
    pub detail: Option<Cow<'a, str>>,
    pub state: Option<Cow<'a, str>>,
}

/// Texts are nearly always UTF-8.
mod text_or_bytes {
    use std::borrow::Cow;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    enum Stored {
        Text(String),
        Bytes(Vec<u8>),
    }

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        let stored = match std::str::from_utf8(bytes) {
            Ok(text) => Stored::Text(text.to_owned()),
            Err(_) => Stored::Bytes(bytes.to_owned()),
        };
        stored.serialize(to)
    }

    pub(super) fn deserialize<'de, 'a, D: Deserializer<'de>>(from: D) -> Result<Cow<'a, [u8]>, D::Error> {
        Ok(Cow::Owned(match Stored::deserialize(from)? {
            Stored::Text(text) => text.into_bytes(),
            Stored::Bytes(bytes) => bytes,
        }))
    }
}

impl<'a> Piece<'a> {
    fn of(text: Cow<'a, str>) -> Self {
        let text = match text {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        };
        Self { text, ..Self::default() }
    }

    pub(super) fn raw(text: &'a [u8]) -> Self {
        Self { text: Cow::Borrowed(text), ..Self::default() }
    }

    pub(crate) fn into_owned(self) -> Piece<'static> {
        let own = |text: Option<Cow<'_, str>>| text.map(|text| Cow::Owned(text.into_owned()));
        Piece {
            text: Cow::Owned(self.text.into_owned()),
            received_us: self.received_us,
            written_us: self.written_us,
            zone: self.zone,
            pid: self.pid,
            goes_on: self.goes_on,
            part: self.part,
            is_syslog: self.is_syslog,
            is_unsure: self.is_unsure,
            detail: own(self.detail),
            state: own(self.state),
        }
    }

    /// The same with what is known of a frame around this one.
    fn inside(self, outer: &Self) -> Self {
        Self {
            received_us: self.received_us.or(outer.received_us),
            pid: self.pid.or(outer.pid),
            goes_on: self.goes_on || outer.goes_on,
            ..self
        }
    }
}

/// What a file has, one after the other.
pub(crate) enum Piecewise<'p, 'a> {
    /// A line, or an entry, and whether it is whole.
    Piece(&'p Piece<'a>, bool),
    /// One that is not whole.
    Torn,
    /// One that is longer than one may be.
    TooLong,
    /// A line of another program.
    Foreign,
}

/// What a line of a wrapped log is.
#[derive(Debug)]
pub(super) enum Taken<'a> {
    Piece(Piece<'a>),
    /// It has something else in it.
    Foreign,
    /// It is not whole, or nothing of this kind.
    Torn,
}

/// What providers write into a document, as far as it is used.
#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow, rename = "textPayload")]
    text_payload: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "jsonPayload")]
    json_payload: Option<Payload<'a>>,
    #[serde(borrow)]
    properties: Option<Properties<'a>>,
    #[serde(borrow)]
    message: Option<Cow<'a, str>>,
    #[serde(borrow)]
    log: Option<Cow<'a, str>>,
    #[serde(rename = "MESSAGE")]
    journal: Option<JournalText>,
    #[serde(borrow)]
    line: Option<Cow<'a, str>>,
    timestamp: Option<Number>,
    #[serde(rename = "@timestamp")]
    at_timestamp: Option<Number>,
    #[serde(rename = "__REALTIME_TIMESTAMP")]
    realtime: Option<Number>,
    time: Option<Number>,
    #[serde(rename = "_PID")]
    pid: Option<Number>,
    #[serde(rename = "SYSLOG_PID")]
    syslog_pid: Option<Number>,
    #[serde(rename = "_TRANSPORT")]
    transport: Option<String>,
}

#[derive(Deserialize)]
struct Payload<'a> {
    #[serde(borrow)]
    message: Option<Cow<'a, str>>,
}

/// A flexible server has prefix and severity in its message; a single server and its successors may have them apart.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Properties<'a> {
    #[serde(borrow)]
    message: Cow<'a, str>,
    #[serde(borrow, default)]
    error_level: Cow<'a, str>,
    #[serde(borrow, default)]
    prefix: Cow<'a, str>,
    #[serde(borrow, default)]
    detail: Cow<'a, str>,
    #[serde(borrow, rename = "sqlerrcode")]
    state: Option<Cow<'a, str>>,
}

/// The journal writes what is no printable text as a list of bytes.
#[derive(Deserialize)]
#[serde(untagged)]
enum JournalText {
    Text(String),
    Bytes(Vec<u8>),
}

/// All frames of documents.
pub(super) const OF_DOCUMENTS: [Frame; 7] =
    [Frame::CloudSql, Frame::Azure, Frame::Journal, Frame::Docker, Frame::FluentBit, Frame::Loki, Frame::Message];

impl Frame {
    /// Its name in accounts.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::CloudSql => "Cloud SQL",
            Self::Azure => "Azure",
            Self::Message => "CloudWatch",
            Self::Docker => "Docker",
            Self::FluentBit => "Fluent Bit",
            Self::Journal => "journald",
            Self::Loki => "Loki",
            Self::Kubernetes => "Kubernetes",
            Self::Words(_) => "lines with a time before them",
            Self::Syslog { .. } => "syslog",
            Self::Copy => "COPY",
        }
    }

    /// Whether its lines are documents.
    pub(super) fn is_of_documents(&self) -> bool {
        OF_DOCUMENTS.contains(self)
    }

    /// Whether what writes it keeps the order of the lines. A store gives them out by the time when they arrived, newest first, or in parts.
    pub(super) fn keeps_order(&self) -> bool {
        matches!(
            self,
            Self::Docker | Self::FluentBit | Self::Journal | Self::Kubernetes | Self::Syslog { .. } | Self::Copy
        )
    }

    /// Whether it says when a line was written, and who wrote it, so that a prefix needs not.
    pub(super) fn says_time_and_process(&self) -> bool {
        matches!(self, Self::Syslog { .. } | Self::Journal)
    }

    /// Takes a line out.
    pub(super) fn take_out<'a>(&self, line: &'a [u8]) -> Taken<'a> {
        if self.is_of_documents() {
            return self.of_document(line);
        }
        let found = match self {
            Self::Kubernetes => kubernetes(line),
            Self::Words(count) => words(line, *count),
            Self::Syslog { program, year } => return syslog(line, program, *year),
            _ => std::str::from_utf8(line).ok().map(unescaped),
        };
        found.map_or(Taken::Foreign, Taken::Piece)
    }

    fn of_document<'a>(&self, line: &'a [u8]) -> Taken<'a> {
        let line = document_of(line);
        if line.is_empty() {
            return Taken::Foreign;
        }
        let Ok(found) = serde_json::from_slice::<Document<'a>>(line) else { return Taken::Torn };
        let time = |number: &Option<Number>| number.as_ref().and_then(time_of);
        let received_us = time(&found.timestamp)
            .or_else(|| time(&found.at_timestamp))
            .or_else(|| time(&found.realtime))
            .or_else(|| time(&found.time));
        let text = match self {
            Self::CloudSql => found.text_payload.or_else(|| found.json_payload?.message),
            Self::Azure => return found.properties.map_or(Taken::Foreign, |found| azure(found, received_us)),
            Self::Message => found.message.filter(|_| received_us.is_some()),
            Self::Docker | Self::FluentBit => found.log,
            Self::Loki => found.line,
            _ => {
                let Some(text) = found.journal else { return Taken::Foreign };
                let (text, pid) = match text {
                    JournalText::Text(text) => (text.into_bytes(), found.syslog_pid.or(found.pid)),
                    JournalText::Bytes(text) => (text, found.syslog_pid.or(found.pid)),
                };
                let is_syslog = found.transport.as_deref() == Some("syslog");
                return journal(text, pid.and_then(|pid| pid.value()?.try_into().ok()), received_us, is_syslog);
            }
        };
        let Some(text) = text else { return Taken::Foreign };
        let mut piece = Piece { received_us, ..Piece::of(text) };
        if *self == Self::Docker && !piece.text.ends_with(b"\n") {
            // It cuts lines of more than 16 KiB.
            piece.goes_on = true;
        }
        Taken::Piece(piece)
    }
}

/// Takes a line out of all that is around it.
pub(super) fn take_out<'a>(frames: &[Frame], line: &'a [u8]) -> Taken<'a> {
    let Some((outer, inner)) = frames.split_first() else { return Taken::Piece(Piece::raw(line)) };
    let taken = outer.take_out(line);
    let Taken::Piece(piece) = taken else { return taken };
    let Some(frame) = inner.first() else { return Taken::Piece(piece) };
    let text = piece.text.strip_suffix(b"\n").unwrap_or(&piece.text);
    match frame.take_out(text) {
        Taken::Piece(found) => Taken::Piece(found.into_owned().inside(&piece)),
        Taken::Foreign => Taken::Foreign,
        Taken::Torn => Taken::Torn,
    }
}

/// A document without the brackets and commas of a list around it.
fn document_of(line: &[u8]) -> &[u8] {
    let line = line.trim_ascii();
    let line = line.strip_prefix(b"[").filter(|rest| !rest.ends_with(b"]")).unwrap_or(line).trim_ascii_start();
    let line = line.strip_prefix(b",").unwrap_or(line).trim_ascii_start();
    let line = line.strip_suffix(b",").unwrap_or(line);
    let line = line.strip_suffix(b"}]").map_or(line, |_| &line[..line.len() - 1]);
    if line == b"[" || line == b"]" { &[] } else { line }
}

/// An instant as texts and numbers have it: seconds, milliseconds, microseconds and nanoseconds are told apart by their size.
fn time_of(number: &Number) -> Option<i64> {
    let plain = match number {
        Number::Text(text) if text.contains('T') || text.contains(' ') => return instant(text).map(|found| found.us),
        number => number.value()?,
    };
    match plain {
        0..100_000_000_000 => plain.checked_mul(SECOND_US),
        100_000_000_000..100_000_000_000_000 => plain.checked_mul(1000),
        100_000_000_000_000..100_000_000_000_000_000 => Some(plain),
        _ => Some(plain / 1000),
    }
}

fn azure(found: Properties<'_>, received_us: Option<i64>) -> Taken<'_> {
    let text = if found.prefix.is_empty() {
        found.message
    } else {
        Cow::Owned(format!("{}{}:  {}", found.prefix, found.error_level, found.message))
    };
    let detail = Some(found.detail).filter(|text| !text.is_empty());
    Taken::Piece(Piece { detail, state: found.state, received_us, ..Piece::of(text) })
}

fn journal<'a>(text: Vec<u8>, pid: Option<u32>, received_us: Option<i64>, is_syslog: bool) -> Taken<'a> {
    let piece =
        Piece { text: Cow::Owned(text), received_us, written_us: received_us, pid, is_syslog, ..Piece::default() };
    Taken::Piece(numbered(piece))
}

/// `2026-11-25T07:04:40.123456789Z stderr F text`.
fn kubernetes(line: &[u8]) -> Option<Piece<'_>> {
    let (time, rest) = word(line)?;
    let received_us = iso(time)?;
    let (stream, rest) = word(rest)?;
    let (tag, text) = rest.split_at_checked(memchr::memchr(b' ', rest).unwrap_or(rest.len()))?;
    let is_stream = matches!(stream, b"stdout" | b"stderr");
    let tag = tag.split(|byte| *byte == b':').next()?;
    if !is_stream || !matches!(tag, b"F" | b"P") {
        return None;
    }
    let text = text.strip_prefix(b" ").unwrap_or(text);
    Some(Piece { received_us: Some(received_us), goes_on: tag == b"P", ..Piece::raw(text) })
}

/// What is behind so many words, one of which is a time, a bar, or in brackets.
fn words(line: &[u8], count: usize) -> Option<Piece<'_>> {
    let mut rest = line;
    let (mut received_us, mut is_frame) = (None, false);
    for number in 0..count {
        let begin = rest;
        let (found, after) = word(begin)?;
        received_us = received_us.or_else(|| iso(found));
        is_frame |=
            received_us.is_some() || found == b"|" || found.starts_with(b"[pod/") || found.starts_with(b"/aws/");
        // Words may be padded, but the line that they are before begins behind one blank.
        rest = if number + 1 < count { after.trim_ascii_start() } else { after };
    }
    is_frame.then(|| Piece { received_us, ..Piece::raw(rest) })
}

fn word(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr::memchr(b' ', line)?;
    (end > 0 && !line[..end].contains(&b'\t')).then(|| (&line[..end], &line[end + 1..]))
}

/// A time with `T` and a zone, alone.
fn iso(word: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(word).ok().filter(|text| text.as_bytes().get(10) == Some(&b'T'))?;
    let found = instant(text)?;
    found.rest.is_empty().then_some(found.us)
}

/// A line of syslog in parts: when, by which program, and what is behind its colon.
struct Head<'a> {
    us: i64,
    zone: Zone,
    program: &'a str,
    pid: Option<u32>,
    text: &'a [u8],
}

fn syslog<'a>(line: &'a [u8], program: &str, year: Year) -> Taken<'a> {
    let Some(head) = head_of(line, year) else { return Taken::Foreign };
    if head.program != program {
        return Taken::Foreign;
    }
    let piece = Piece {
        received_us: (head.zone == Zone::Known).then_some(head.us),
        written_us: Some(head.us),
        zone: head.zone,
        pid: head.pid,
        is_syslog: true,
        ..Piece::raw(head.text)
    };
    Taken::Piece(numbered(piece))
}

/// The program that a line of syslog is of.
pub(super) fn program_of(line: &[u8]) -> Option<&str> {
    let program = head_of(line, Year { year: 1970, first_month: 1 })?.program;
    program.starts_with(|letter: char| letter.is_ascii_alphabetic()).then_some(program)
}

fn head_of(line: &[u8], year: Year) -> Option<Head<'_>> {
    let mut rest = line;
    if let Some(priority) = rest.strip_prefix(b"<") {
        let end = priority.iter().take(4).position(|byte| *byte == b'>')?;
        rest = &priority[end + 1..];
        if let Some(versioned) = rest.strip_prefix(b"1 ") {
            return of_rfc_5424(versioned);
        }
    }
    let own = bsd_time(rest, year).map(|(us, rest)| (us, Zone::lacking(), rest));
    let (us, zone, rest) = own.or_else(|| {
        let (time, rest) = word(rest)?;
        Some((iso(time)?, Zone::Known, rest))
    })?;
    let (_, rest) = word(rest)?;
    let colon = memchr::memchr(b':', rest)?;
    let tag = std::str::from_utf8(&rest[..colon]).ok().filter(|tag| !tag.contains(' '))?;
    let (program, pid) = match tag.strip_suffix(']').and_then(|tag| tag.split_once('[')) {
        Some((program, pid)) => (program, Some(pid.parse().ok()?)),
        None => (tag, None),
    };
    let text = &rest[colon + 1..];
    Some(Head { us, zone, program, pid, text: text.strip_prefix(b" ").unwrap_or(text) })
}

/// `TIME HOST APP PROCID MSGID STRUCTURED-DATA MSG`.
fn of_rfc_5424(line: &[u8]) -> Option<Head<'_>> {
    let (time, rest) = word(line)?;
    let us = iso(time)?;
    let (_, rest) = word(rest)?;
    let (program, rest) = word(rest)?;
    let (pid, rest) = word(rest)?;
    let (_, rest) = word(rest)?;
    let mut text = if let Some(rest) = rest.strip_prefix(b"-") {
        rest
    } else {
        // `[id key="value"]`, several of them without anything between; `]` in a value has a backslash before it.
        let mut at = 0;
        while rest.get(at) == Some(&b'[') {
            loop {
                at += 1;
                match rest.get(at)? {
                    b'\\' => at += 1,
                    b']' => break,
                    _ => (),
                }
            }
            at += 1;
        }
        rest.get(at..)?
    };
    text = text.strip_prefix(b" ").unwrap_or(text);
    text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
    let pid = std::str::from_utf8(pid).ok()?.parse().ok();
    Some(Head { us, zone: Zone::Known, program: std::str::from_utf8(program).ok()?, pid, text })
}

/// `Nov 25 07:04:40 `, with a year from elsewhere; also `Nov  5` and fractions, as `journalctl -o short-precise` has them.
fn bsd_time(line: &[u8], year: Year) -> Option<(i64, &[u8])> {
    const MONTHS: [&[u8]; 12] =
        [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];
    let month = MONTHS.iter().position(|name| line.starts_with(name))?;
    let (day, rest) = word(line.get(3..)?.trim_ascii_start())?;
    let (clock, rest) = word(rest)?;
    let (day, clock) = (std::str::from_utf8(day).ok()?, std::str::from_utf8(clock).ok()?);
    let month = i64::try_from(month).ok()? + 1;
    // Its own reading of a time of day, with a date around it.
    let clock = format!("2000-01-01 {clock}");
    let found = instant(&clock).filter(|found| found.rest.is_empty())?;
    let of_day = found.us - days(2000, 1, 1) * 86_400 * SECOND_US;
    let day: i64 = day.parse().ok().filter(|day| (1..=31).contains(day))?;
    Some((days(year.of_month(month), month, day) * 86_400 * SECOND_US + of_day, rest))
}

/// Takes `[900-2] ` or `[900] ` away, which PostgreSQL puts before messages to syslog, and rsyslog's `#011`.
pub(super) fn numbered(mut piece: Piece<'_>) -> Piece<'_> {
    let part = part_of(&piece.text);
    if let Some((part, length)) = part {
        piece.part = Some(part);
        piece.is_syslog = true;
        piece.text = match piece.text {
            Cow::Borrowed(text) => Cow::Borrowed(&text[length..]),
            Cow::Owned(text) => Cow::Owned(text[length..].to_vec()),
        };
    }
    let tabs = piece.text.chunks(4).take_while(|part| *part == b"#011").count();
    if tabs > 0 {
        let mut text = vec![b'\t'; tabs];
        text.extend_from_slice(&piece.text[4 * tabs..]);
        piece.text = Cow::Owned(text);
    }
    piece.is_unsure = memchr::memmem::find(&piece.text, b"#011").is_some();
    piece
}

/// The numbers of a part, and how long they are.
fn part_of(text: &[u8]) -> Option<((u64, u32), usize)> {
    let inner = text.strip_prefix(b"[")?;
    let end = inner.iter().take(24).position(|byte| *byte == b']')?;
    let numbers = std::str::from_utf8(&inner[..end]).ok()?;
    let (message, part) = numbers.split_once('-').unwrap_or((numbers, "0"));
    let part = (message.parse().ok()?, part.parse().ok()?);
    let blank = usize::from(inner.get(end + 1) == Some(&b' '));
    Some((part, end + 2 + blank))
}

/// A column of COPY's text format.
fn unescaped(line: &str) -> Piece<'_> {
    if !line.contains('\\') {
        return Piece::raw(line.as_bytes());
    }
    let mut text = String::with_capacity(line.len());
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            text.push(letter);
            continue;
        }
        match letters.next() {
            Some('t') => text.push('\t'),
            Some('n') => text.push('\n'),
            Some('r') => text.push('\r'),
            Some(other) => text.push(other),
            None => text.push('\\'),
        }
    }
    Piece::of(Cow::Owned(text))
}
