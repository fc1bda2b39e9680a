//! stderr's format: lines with a prefix. A text of several lines goes on in lines that begin with a tab, and DETAIL,
//! CONTEXT and STATEMENT are lines with a prefix of their own (`send_message_to_server_log` in `elog.c`).

use std::borrow::Cow;
use std::io;

use serde::Deserialize;

use super::found::{Found, Sink};
use super::prefix::Prefix;
use crate::entry::Entry;
use crate::input::{Input, line_length};

/// What Cloud SQL writes for each line, as far as it is used (Logging's `LogEntry`).
#[derive(Deserialize)]
struct Wrapped<'a> {
    #[serde(borrow, rename = "textPayload")]
    text: Cow<'a, str>,
}

/// The line in a document of Cloud SQL; none if it is anything else.
pub(super) fn unwrap(line: &[u8]) -> Option<Cow<'_, str>> {
    serde_json::from_slice::<Wrapped<'_>>(line).ok().map(|wrapped| wrapped.text)
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
}

pub(super) fn read<E: From<io::Error>>(
    input: &mut Input,
    prefix: &Prefix,
    wrapped: bool,
    sink: &mut Sink<'_, E>,
) -> Result<(), E> {
    let mut open = Open::default();
    while let Some(next) = input.next(line_length)? {
        let line = &input.seen()[..next.length];
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let text = if wrapped { unwrap(line) } else { std::str::from_utf8(line).ok().map(Cow::Borrowed) };
        match text {
            None => sink(if wrapped { Found::Torn } else { Found::NotText })?,
            Some(text) => open.line(&text, prefix, sink)?,
        }
        input.take(next.length);
    }
    open.finish(sink)
}

impl Open {
    fn line<E>(&mut self, text: &str, prefix: &Prefix, sink: &mut Sink<'_, E>) -> Result<(), E> {
        if let Some(rest) = text.strip_prefix('\t') {
            return if self.append(rest) { Ok(()) } else { sink(Found::Torn) };
        }
        let Some(line) = prefix.read(text) else {
            // An empty line of a statement has its tab too: this is none of ours.
            return if text.is_empty() { Ok(()) } else { sink(Found::Foreign) };
        };
        if line.addition {
            return if self.add(&line.entry) { Ok(()) } else { sink(Found::Torn) };
        }
        self.finish(sink)?;
        self.entry = Some(line.entry.into_owned());
        self.at = Some(Place::Message);
        Ok(())
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
