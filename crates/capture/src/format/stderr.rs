//! stderr's format: lines with a prefix. A text of several lines goes on in lines that begin with a tab, and DETAIL,
//! CONTEXT and STATEMENT are lines with a prefix of their own (`send_message_to_server_log` in `elog.c`). Two providers export it
//! as JSON: Cloud SQL a document for each line, Azure one for each entry.

use std::borrow::Cow;
use std::io;

use serde::Deserialize;

use super::found::{Found, Sink};
use super::prefix::Prefix;
use crate::entry::Entry;
use crate::input::{End, Input, line_length};

/// Lines of an entry behind its first may have this much together; an entry with more is counted and not kept.
const ADDED_BYTES_MAX: usize = 64 << 20;

/// What the lines of a log are wrapped in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrapping {
    /// Nothing.
    None,
    /// A document of Cloud SQL for each line.
    CloudSql,
    /// A document of Azure for each entry, without CONTEXT and STATEMENT.
    Azure,
}

/// What Cloud SQL writes for each line, as far as it is used (Logging's `LogEntry`).
#[derive(Deserialize)]
struct CloudSql<'a> {
    #[serde(borrow, rename = "textPayload")]
    text: Cow<'a, str>,
}

/// What Azure writes for each entry, as far as it is used (category `PostgreSQLLogs` of its resource logs).
#[derive(Deserialize)]
struct Azure<'a> {
    #[serde(borrow)]
    properties: Properties<'a>,
}

/// A flexible server has prefix and severity in its message; a single server and its successors may have them apart.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Properties<'a> {
    #[serde(borrow)]
    message: Cow<'a, str>,
    #[serde(borrow)]
    error_level: Cow<'a, str>,
    #[serde(borrow, default)]
    prefix: Cow<'a, str>,
    #[serde(borrow, default)]
    detail: Cow<'a, str>,
    #[serde(borrow, rename = "sqlerrcode")]
    state: Option<Cow<'a, str>>,
}

/// A line without what it is wrapped in.
#[derive(Debug)]
pub(super) struct Unwrapped<'a> {
    /// As PostgreSQL writes it to stderr; of Azure the whole message, which may have several lines.
    pub text: Cow<'a, str>,
    detail: Option<Cow<'a, str>>,
    state: Option<Cow<'a, str>>,
}

impl Wrapping {
    /// Takes a line out; none if it is wrapped in something else.
    pub(super) fn take_out(self, line: &[u8]) -> Option<Unwrapped<'_>> {
        let bare = |text| Unwrapped { text, detail: None, state: None };
        match self {
            Self::None => std::str::from_utf8(line).ok().map(Cow::Borrowed).map(bare),
            Self::CloudSql => serde_json::from_slice::<CloudSql<'_>>(line).ok().map(|found| bare(found.text)),
            Self::Azure => {
                let found = serde_json::from_slice::<Azure<'_>>(line).ok()?.properties;
                let text = if found.prefix.is_empty() {
                    found.message
                } else {
                    Cow::Owned(format!("{}{}:  {}", found.prefix, found.error_level, found.message))
                };
                Some(Unwrapped { text, detail: Some(found.detail).filter(|text| !text.is_empty()), state: found.state })
            }
        }
    }
}

/// What an entry's next line goes on with.
#[derive(Clone, Copy)]
enum Place {
    Message,
    Detail,
    Context,
    Statement,
    Unused,
}

/// An entry that may not be whole yet.
#[derive(Default)]
struct Open {
    entry: Option<Entry<'static>>,
    at: Option<Place>,
    /// Bytes of its lines behind the first.
    added_bytes: usize,
    /// They were too many: the entry is gone, and its further lines are passed over.
    too_long: bool,
}

pub(super) fn read<E: From<io::Error>>(
    input: &mut Input<'_>,
    prefix: &Prefix,
    wrapping: Wrapping,
    sink: &mut Sink<'_, E>,
) -> Result<(), E> {
    let mut open = Open::default();
    while let Some(next) = input.next(line_length)? {
        if next.end == End::TooFar {
            open.finish(sink)?;
            sink(Found::TooLong)?;
            input.skip_line()?;
            continue;
        }
        let line = &input.seen()[..next.length];
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        match wrapping.take_out(line) {
            None => sink(if wrapping == Wrapping::None { Found::NotText } else { Found::Torn })?,
            Some(found) => {
                open.line(&found.text, prefix, sink)?;
                open.also(found);
            }
        }
        input.take(next.length);
    }
    open.finish(sink)
}

impl Open {
    fn line<E>(&mut self, text: &str, prefix: &Prefix, sink: &mut Sink<'_, E>) -> Result<(), E> {
        if let Some(rest) = text.strip_prefix('\t') {
            if !self.too_long && !self.append(rest) {
                return sink(Found::Torn);
            }
            return self.limit(rest.len(), sink);
        }
        let Some(line) = prefix.read(text) else {
            // An empty line of a statement has its tab too: this is none of ours.
            return if text.is_empty() { Ok(()) } else { sink(Found::Foreign) };
        };
        if line.addition {
            if !self.too_long && !self.add(&line.entry) {
                return sink(Found::Torn);
            }
            return self.limit(text.len(), sink);
        }
        self.finish(sink)?;
        (self.added_bytes, self.too_long) = (0, false);
        self.entry = Some(line.entry.into_owned());
        self.at = Some(Place::Message);
        Ok(())
    }

    /// Drops an entry whose lines behind the first are too long with these bytes.
    fn limit<E>(&mut self, bytes: usize, sink: &mut Sink<'_, E>) -> Result<(), E> {
        self.added_bytes += bytes;
        if self.too_long || self.added_bytes <= ADDED_BYTES_MAX {
            return Ok(());
        }
        (self.entry, self.at, self.too_long) = (None, None, true);
        sink(Found::TooLong)
    }

    /// What came with a line, beside it.
    fn also(&mut self, found: Unwrapped<'_>) {
        let Some(entry) = self.entry.as_mut().filter(|_| matches!(self.at, Some(Place::Message))) else { return };
        if let Some(detail) = found.detail {
            entry.detail = Some(Cow::Owned(detail.into_owned()));
        }
        if let (None, Some(state)) = (&entry.sqlstate, found.state) {
            entry.sqlstate = Some(Cow::Owned(state.into_owned()));
        }
    }

    /// Another line of what came last.
    fn append(&mut self, text: &str) -> bool {
        let (Some(entry), Some(at)) = (&mut self.entry, self.at) else { return false };
        let to = match at {
            Place::Message => entry.message.to_mut(),
            Place::Detail => entry.detail.get_or_insert_default().to_mut(),
            Place::Context => entry.context.get_or_insert_default().to_mut(),
            Place::Statement => entry.statement.get_or_insert_default().to_mut(),
            Place::Unused => return true,
        };
        to.push('\n');
        to.push_str(text);
        true
    }

    /// A part of the entry; false if it is that of another process, whose entry is lost.
    fn add(&mut self, addition: &Entry<'_>) -> bool {
        let Some(entry) = self.entry.as_mut().filter(|entry| entry.pid == addition.pid) else { return false };
        let text = Some(Cow::Owned(addition.message.clone().into_owned()));
        // `%l` counts each line with a prefix.
        entry.additions += 1;
        let place = match addition.severity.as_ref() {
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
            _ => Place::Unused,
        };
        self.at = Some(place);
        true
    }

    fn finish<E>(&mut self, sink: &mut Sink<'_, E>) -> Result<(), E> {
        self.at = None;
        self.entry.take().map_or(Ok(()), |entry| sink(Found::Entry(&entry)))
    }
}
