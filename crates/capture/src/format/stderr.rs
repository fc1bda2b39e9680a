//! stderr's format: lines with a prefix. A text of several lines goes on in lines that begin with a tab, and DETAIL,
//! CONTEXT and STATEMENT are lines with a prefix of their own (`send_message_to_server_log` in `elog.c`). They come as they are,
//! or in [frames](super::frame).

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::io;

use super::found::{Found, Sink};
use super::frame::Piece;
use super::prefix::Prefix;
use crate::entry::{Entry, beginning};

/// Lines of an entry behind its first may have this much together; an entry with more is cut there.
const ADDED_BYTES_MAX: usize = 64 << 20;
/// Entries of several processes whose lines come mixed: so many are open, or have so many bytes, and the eldest is ended for a new one.
const OPEN_MAX: usize = 4096;
/// What they have together: with more, the eldest is cut and ended.
const OPEN_BYTES_MAX: usize = 128 << 20;
/// What is kept of a line that is too long, or no text: its prefix and the beginning of its message.
const KEPT_BYTES: usize = 4096;
/// Syslog's lines are cut at 900 bytes, between words; longer parts than this may have been.
const PART_BYTES_LEAST: usize = 400;
/// Where they are cut (`PG_SYSLOG_LIMIT`).
const PART_BYTES: usize = 900;

/// What an entry's next line goes on with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Message,
    Detail,
    Context,
    Statement,
    Unused,
}

/// An entry that may not be whole yet.
struct Open {
    entry: Entry<'static>,
    at: Place,
    /// Bytes of its lines behind the first.
    added_bytes: usize,
    /// It has a LOCATION line, as `log_error_verbosity = verbose` writes them.
    located: bool,
    /// The part of a message to syslog that was last, and its length.
    part: Option<(u64, u32)>,
    part_bytes: usize,
    /// When it began, in lines.
    since: u64,
}

/// Makes entries of lines.
pub(super) struct Lines<'f> {
    prefix: &'f Prefix,
    /// Lines end in CR LF.
    crlf: bool,
    /// By process, where what is around a line says it: their lines may be mixed. One for all otherwise.
    open: HashMap<u32, Open, BuildHasherDefault<Plain>>,
    count: u64,
    /// Bytes of the lines of what is open.
    bytes: usize,
    /// When a line was received that goes on with nothing: it may be of an entry of the same time that comes behind it.
    orphan_us: Option<i64>,
    /// The message to syslog of each process that was last.
    numbers: HashMap<u32, u64>,
}

/// Spreads numbers of processes, which nobody chooses, and of which there are few.
#[derive(Default)]
struct Plain(u64);

impl Hasher for Plain {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u32(u32::from(*byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = (self.0 ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl<'f> Lines<'f> {
    pub(super) fn new(prefix: &'f Prefix, crlf: bool) -> Self {
        Self { prefix, crlf, open: HashMap::default(), count: 0, bytes: 0, orphan_us: None, numbers: HashMap::new() }
    }

    /// Takes a piece, which is a line, or an entry of several. `whole` is false of one whose rest is not here.
    pub(super) fn piece<E: From<io::Error>>(
        &mut self,
        piece: &Piece<'_>,
        whole: bool,
        sink: &mut Sink<'_, E>,
    ) -> Result<(), E> {
        let bytes = piece.text.strip_suffix(b"\n").unwrap_or(&piece.text);
        let bytes = if self.crlf { bytes.strip_suffix(b"\r").unwrap_or(bytes) } else { bytes };
        let read = std::str::from_utf8(bytes);
        let (text, whole) = match read {
            Ok(text) => (Cow::Borrowed(text), whole && !piece.is_unsure),
            Err(_) => {
                sink(Found::LineNotText)?;
                (String::from_utf8_lossy(&bytes[..bytes.len().min(KEPT_BYTES)]), false)
            }
        };
        self.count += 1;
        let mut lines = text.split('\n');
        let first = lines.next().unwrap_or("");
        self.line(first, piece, whole, true, sink)?;
        for line in lines {
            let line = if self.crlf { line.strip_suffix('\r').unwrap_or(line) } else { line };
            self.line(line, piece, whole, false, sink)?;
        }
        self.also(piece);
        self.bytes += piece.text.len();
        if self.bytes > OPEN_BYTES_MAX {
            self.bytes = self.open.values().map(|open| open.added_bytes).sum();
            if self.bytes > OPEN_BYTES_MAX {
                self.lost();
                self.end_eldest(sink)?;
            }
        }
        Ok(())
    }

    /// Takes a line. One that is not the first of its piece belongs to the entry, with its tab or without it.
    fn line<E: From<io::Error>>(
        &mut self,
        text: &str,
        piece: &Piece<'_>,
        whole: bool,
        first: bool,
        sink: &mut Sink<'_, E>,
    ) -> Result<(), E> {
        let key = piece.pid.unwrap_or(0);
        if let Some(rest) = text.strip_prefix('\t') {
            return self.go_on(key, rest, piece, whole, sink);
        }
        let Some(line) = self.prefix.read(text) else {
            return self.other(key, text, piece, whole, first, sink);
        };
        if line.addition {
            let Some(open) = self.open.get_mut(&key) else { return sink(Found::Torn) };
            let is_same = line.entry.pid.is_none() || open.entry.pid == line.entry.pid || piece.pid.is_some();
            if !is_same {
                // It is of another process, whose entry is lost.
                return sink(Found::Torn);
            }
            open.follow(piece);
            open.add(&line.entry, whole);
            return open.limit(text.len(), sink);
        }
        if let Some(before) = self.open.remove(&key) {
            before.finish(sink)?;
        } else if self.open.len() >= OPEN_MAX {
            self.end_eldest(sink)?;
        }
        self.number(key, piece, sink)?;
        let mut entry = line.entry.into_owned();
        let is_orphaned = piece.received_us.is_some() && self.orphan_us.take() == piece.received_us;
        entry.cut = !whole || is_orphaned || piece.part.is_some_and(|(_, part)| part > 1);
        entry.received_us = piece.received_us;
        entry.pid = entry.pid.or(piece.pid);
        if let (Some(us), false) = (piece.written_us, self.prefix.has_time()) {
            (entry.time_us, entry.zone) = (us, piece.zone);
        }
        let open = Open {
            entry,
            at: Place::Message,
            added_bytes: 0,
            located: false,
            part: piece.part,
            part_bytes: piece.text.len(),
            since: self.count,
        };
        self.open.insert(key, open);
        Ok(())
    }

    /// A line that begins with a tab.
    fn go_on<E>(
        &mut self,
        key: u32,
        rest: &str,
        piece: &Piece<'_>,
        whole: bool,
        sink: &mut Sink<'_, E>,
    ) -> Result<(), E> {
        let Some(open) = self.open.get_mut(&key) else {
            self.orphan_us = piece.received_us;
            return sink(Found::Torn);
        };
        let bytes_before = open.part_bytes;
        open.follow(piece);
        // A line that syslog has cut at a tab looks like a new one.
        let word = rest.find([' ', '\t']).unwrap_or(rest.len());
        open.entry.cut |= !whole || piece.is_syslog && bytes_before + word >= PART_BYTES;
        open.append("\n", rest);
        open.limit(rest.len(), sink)
    }

    /// A line without a prefix and without a tab.
    fn other<E>(
        &mut self,
        key: u32,
        text: &str,
        piece: &Piece<'_>,
        whole: bool,
        first: bool,
        sink: &mut Sink<'_, E>,
    ) -> Result<(), E> {
        let Some(open) = self.open.get_mut(&key) else {
            return if text.is_empty() { Ok(()) } else { sink(Found::Foreign) };
        };
        if !first {
            // Some take the tabs away, and leave the lines together.
            open.entry.cut |= !whole;
            open.append("\n", text);
            return open.limit(text.len(), sink);
        }
        if piece.is_syslog {
            let is_next = match (open.part, piece.part) {
                (Some((message, part)), Some((same, next))) => message == same && next > 1 && next == part + 1,
                (None, None) => open.part_bytes >= PART_BYTES_LEAST,
                _ => false,
            };
            if is_next {
                open.follow(piece);
                open.entry.cut |= !whole;
                open.append("", text);
                return open.limit(text.len(), sink);
            }
        }
        if text.is_empty() {
            // An empty line of a statement has its tab too: this is none of ours.
            return Ok(());
        }
        // It may be the rest of the entry without its tab, and it may be another program's.
        open.entry.cut = true;
        sink(Found::Foreign)
    }

    /// What came with a piece, beside its text.
    fn also(&mut self, piece: &Piece<'_>) {
        if piece.detail.is_none() && piece.state.is_none() {
            return;
        }
        let Some(open) = self.open.get_mut(&piece.pid.unwrap_or(0)) else { return };
        let entry = &mut open.entry;
        if let Some(detail) = &piece.detail {
            entry.detail = Some(Cow::Owned(detail.clone().into_owned()));
        }
        if let (None, Some(state)) = (&entry.sqlstate, &piece.state) {
            entry.sqlstate = Some(Cow::Owned(state.clone().into_owned()));
        }
    }

    /// Tells the messages of a process that are missing by syslog's numbers.
    fn number<E>(&mut self, key: u32, piece: &Piece<'_>, sink: &mut Sink<'_, E>) -> Result<(), E> {
        let Some((message, _)) = piece.part.filter(|_| piece.pid.is_some()) else { return Ok(()) };
        if self.numbers.len() >= OPEN_MAX * 16 {
            self.numbers.clear();
        }
        match self.numbers.insert(key, message) {
            // The process id may have been given to another session.
            Some(last) if message > last + 1 && message - last < 1_000_000 => sink(Found::Missing(message - last - 1)),
            _ => Ok(()),
        }
    }

    /// A line is gone that may have been of the entry before: of which process is not known.
    pub(super) fn lost(&mut self) {
        for open in self.open.values_mut() {
            open.entry.cut = true;
        }
    }

    fn end_eldest<E>(&mut self, sink: &mut Sink<'_, E>) -> Result<(), E> {
        let eldest = self.open.iter().min_by_key(|(_, open)| open.since).map(|(key, _)| *key);
        eldest.and_then(|key| self.open.remove(&key)).map_or(Ok(()), |open| open.finish(sink))
    }

    /// Ends what is open.
    pub(super) fn finish<E>(&mut self, sink: &mut Sink<'_, E>) -> Result<(), E> {
        while !self.open.is_empty() {
            self.end_eldest(sink)?;
        }
        Ok(())
    }
}

impl Open {
    /// Notes that a part of syslog follows the one before.
    fn follow(&mut self, piece: &Piece<'_>) {
        if let Some((message, part)) = piece.part {
            let is_next = self.part.is_some_and(|(same, last)| message == same && part == last.max(1) + 1);
            self.entry.cut |= !is_next;
        }
        (self.part, self.part_bytes) = (piece.part, piece.text.len());
    }

    /// Cuts an entry whose lines behind the first are too long with these bytes.
    fn limit<E>(&mut self, bytes: usize, sink: &mut Sink<'_, E>) -> Result<(), E> {
        let before = self.added_bytes;
        self.added_bytes += bytes;
        if before > ADDED_BYTES_MAX || self.added_bytes <= ADDED_BYTES_MAX {
            return Ok(());
        }
        let entry = &mut self.entry;
        (entry.cut, self.at) = (true, Place::Unused);
        entry.message = Cow::Owned(beginning(&entry.message, KEPT_BYTES).to_owned());
        (entry.detail, entry.context, entry.statement) = (None, None, None);
        sink(Found::TooLong)
    }

    /// More of what came last.
    fn append(&mut self, between: &str, text: &str) {
        let entry = &mut self.entry;
        let to = match self.at {
            Place::Message => entry.message.to_mut(),
            Place::Detail => entry.detail.get_or_insert_default().to_mut(),
            Place::Context => entry.context.get_or_insert_default().to_mut(),
            Place::Statement => entry.statement.get_or_insert_default().to_mut(),
            Place::Unused => return,
        };
        to.push_str(between);
        to.push_str(text);
    }

    /// A part of the entry.
    fn add(&mut self, addition: &Entry<'_>, whole: bool) {
        let entry = &mut self.entry;
        let text = Some(Cow::Owned(addition.message.clone().into_owned()));
        // `%l` counts each line with a prefix.
        entry.additions += 1;
        entry.cut |= !whole;
        self.at = match addition.severity.as_ref() {
            _ if self.added_bytes > ADDED_BYTES_MAX => Place::Unused,
            "DETAIL" => {
                entry.detail = text;
                Place::Detail
            }
            "CONTEXT" => {
                entry.context = text;
                Place::Context
            }
            "STATEMENT" => {
                entry.statement = text;
                Place::Statement
            }
            severity => {
                self.located |= severity == "LOCATION";
                Place::Unused
            }
        };
    }

    fn finish<E>(mut self, sink: &mut Sink<'_, E>) -> Result<(), E> {
        if let Some(state) = state_before(&self.entry.message, self.located).map(str::to_owned) {
            self.entry.message.to_mut().drain(..state.len() + 2);
            self.entry.sqlstate = Some(Cow::Owned(state));
        }
        sink(Found::Entry(&self.entry))
    }
}

/// The SQLSTATE that `log_error_verbosity = verbose` puts before a message. Those that begin with a digit are told by it alone.
fn state_before(message: &str, located: bool) -> Option<&str> {
    let (state, _) = message.split_at_checked(5)?;
    let is_state = state.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase());
    let is_sure = located || state.as_bytes()[0].is_ascii_digit();
    (is_state && is_sure && message[5..].starts_with(": ")).then_some(state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_before_a_message_is_told_by_its_letters() {
        for (message, located, state) in [
            ("00000: duration: 1 ms", false, Some("00000")),
            ("XX000: cache lookup failed", true, Some("XX000")),
            ("XX000: cache lookup failed", false, None),
            ("ERROR: x", true, Some("ERROR")),
            ("duration: 1.000 ms", true, None),
            ("ünicode", true, None),
            ("", true, None),
        ] {
            assert_eq!(state_before(message, located), state, "{message}");
        }
    }
}
