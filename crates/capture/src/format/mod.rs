//! The formats of PostgreSQL's log, each of which makes entries, and what they are wrapped in.

mod csv;
mod detect;
mod documents;
mod export;
mod form;
mod found;
mod frame;
mod json;
mod prefix;
mod stderr;

use std::io;

use crate::input::{End, Input, line_length};
pub(crate) use detect::{Undetected, detect};
pub(crate) use form::Format;
use form::{Division, Inner};
pub(crate) use found::{Found, Sink};
pub(crate) use frame::Piecewise;
use frame::{Frame, Piece, Taken, take_out};
use json::Documents;
pub(crate) use prefix::Prefix;
use stderr::Lines;

/// Parts of a line that a runtime has cut may have this much together.
const PARTS_BYTES_MAX: usize = 64 << 20;
/// What is looked at of a line that is too long.
const HEAD_BYTES: usize = 4096;

/// A piece that is kept: see [`Format::pieces`].
pub(crate) type Kept = Piece<'static>;

impl Format {
    /// Its name in accounts.
    pub(crate) fn name(&self) -> String {
        let inner = match &self.inner {
            Inner::Csv(_) => "csvlog".to_owned(),
            Inner::Json(Documents::Jsonlog) => "jsonlog".to_owned(),
            Inner::Json(Documents::CloudNativePg) => "CloudNativePG".to_owned(),
            Inner::Stderr { prefix, .. } => {
                let log = if self.frames.is_empty() { "stderr " } else { "" };
                format!("{log}with log_line_prefix = '{}'", prefix.text())
            }
        };
        let mut names: Vec<&str> = self.frames.iter().map(Frame::name).collect();
        names.push(&inner);
        names.join(" ")
    }

    /// Whether its times have fractions of seconds.
    pub(crate) fn has_fractions(&self) -> bool {
        match &self.inner {
            Inner::Stderr { prefix, .. } if !prefix.has_time() => {
                !self.frames.iter().any(|frame| matches!(frame, Frame::Syslog { .. }))
            }
            Inner::Stderr { prefix, .. } => prefix.has_fractions(),
            _ => true,
        }
    }

    /// Whether an entry is told when the next one begins: its end is known by that alone.
    pub(crate) fn says_entries_behind(&self) -> bool {
        matches!(self.inner, Inner::Stderr { .. })
    }

    /// Whether what wrote the file keeps the order of the entries.
    pub(crate) fn keeps_order(&self) -> bool {
        self.frames.iter().all(Frame::keeps_order)
    }

    /// Whether an entry may be in several documents, so that these must be in order before it can be put together.
    pub(crate) fn is_in_parts(&self) -> bool {
        !self.keeps_order() && self.frames.iter().any(Frame::is_of_documents) && self.says_entries_behind()
    }

    /// Reads a file to its end.
    pub(crate) fn read<E: From<io::Error>>(&self, input: &mut Input<'_>, sink: &mut Sink<'_, E>) -> Result<(), E> {
        match (&self.inner, self.frames.is_empty()) {
            (Inner::Csv(layout), true) => csv::read(input, layout, sink),
            (Inner::Stderr { prefix, crlf }, _) => {
                let mut lines = Lines::new(prefix, *crlf);
                self.pieces(input, &mut |piece| match piece {
                    Piecewise::Piece(piece, whole) => lines.piece(piece, whole, sink),
                    Piecewise::Torn => {
                        lines.lost();
                        sink(Found::Torn)
                    }
                    Piecewise::TooLong => {
                        lines.lost();
                        sink(Found::TooLong)
                    }
                    Piecewise::Foreign => sink(Found::Foreign),
                })?;
                lines.finish(sink)
            }
            (inner, _) => self.pieces(input, &mut |piece| match piece {
                Piecewise::Piece(piece, whole) => single(inner, piece, whole, sink),
                Piecewise::Torn => sink(Found::Torn),
                Piecewise::TooLong => sink(Found::TooLong),
                Piecewise::Foreign => sink(Found::Foreign),
            }),
        }
    }

    /// Makes entries of pieces that were put in order.
    pub(crate) fn put_together<E: From<io::Error>>(
        &self,
        pieces: impl Iterator<Item = io::Result<Kept>>,
        sink: &mut Sink<'_, E>,
    ) -> Result<(), E> {
        let Inner::Stderr { prefix, crlf } = &self.inner else { return Ok(()) };
        let mut lines = Lines::new(prefix, *crlf);
        for piece in pieces {
            lines.piece(&piece?, true, sink)?;
        }
        lines.finish(sink)
    }

    /// Reads a file's pieces to its end.
    pub(crate) fn pieces<E: From<io::Error>>(
        &self,
        input: &mut Input<'_>,
        to: &mut dyn FnMut(Piecewise<'_, '_>) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.division == Division::Export {
            return export::read(input, to);
        }
        let mut parts: Vec<u8> = Vec::new();
        loop {
            let (begin, next) = match self.division {
                Division::Documents => match documents::next(input)? {
                    Some(found) => found,
                    None => break,
                },
                _ => match input.next(line_length)? {
                    Some(next) => (0, next),
                    None => break,
                },
            };
            let bytes = &input.seen()[begin..next.length];
            let line = bytes.strip_suffix(b"\n").unwrap_or(bytes);
            // A document at the end of the file is whole if it can be read.
            let whole = next.end == End::Found
                || next.end == End::File && self.frames.first().is_some_and(Frame::is_of_documents);
            if next.end == End::TooFar {
                let head = &line[..line.len().min(HEAD_BYTES)];
                let length = std::str::from_utf8(head).map_or_else(|error| error.valid_up_to(), str::len);
                if let (true, Inner::Stderr { .. }) = (self.frames.is_empty(), &self.inner) {
                    // Its beginning says whose it is.
                    to(Piecewise::Piece(&Piece::raw(&head[..length]), false))?;
                    to(Piecewise::TooLong)?;
                } else {
                    to(Piecewise::TooLong)?;
                }
                parts.clear();
                input.skip_line()?;
                continue;
            }
            match self.taken(line) {
                Taken::Piece(piece) if piece.goes_on && parts.len() < PARTS_BYTES_MAX => {
                    parts.extend_from_slice(&piece.text)
                }
                Taken::Piece(mut piece) if !parts.is_empty() => {
                    parts.extend_from_slice(&piece.text);
                    piece.text = std::mem::take(&mut parts).into();
                    to(Piecewise::Piece(&piece, whole))?;
                }
                Taken::Piece(piece) => to(Piecewise::Piece(&piece, whole))?,
                Taken::Foreign => to(Piecewise::Foreign)?,
                Taken::Torn => to(Piecewise::Torn)?,
            }
            input.take(next.length);
        }
        if parts.is_empty() { Ok(()) } else { to(Piecewise::Piece(&Piece::raw(&parts), false)) }
    }

    /// A line without what is around it. Lines of an entry behind the first are often left bare by what puts something before lines.
    fn taken<'a>(&self, line: &'a [u8]) -> Taken<'a> {
        let is_bare = line.starts_with(b"\t") && matches!(self.frames.first(), Some(Frame::Words(_)));
        if is_bare { Taken::Piece(Piece::raw(line)) } else { take_out(&self.frames, line) }
    }
}

/// A piece that is an entry.
fn single<E>(inner: &Inner, piece: &Piece<'_>, whole: bool, sink: &mut Sink<'_, E>) -> Result<(), E> {
    let text = match std::str::from_utf8(&piece.text) {
        Ok(text) => text.trim_end(),
        Err(_) => return sink(Found::NotText),
    };
    let found = match inner {
        Inner::Csv(layout) => csv::entry_of(text, layout),
        Inner::Json(documents) => documents.entry(text),
        Inner::Stderr { .. } => None,
    };
    match found {
        Some(mut entry) => {
            entry.received_us = entry.received_us.or(piece.received_us);
            sink(Found::Entry(&entry))
        }
        // The operator's own lines, and those of its containers.
        None if whole && matches!(inner, Inner::Json(Documents::CloudNativePg)) => sink(Found::Foreign),
        None if text.is_empty() => Ok(()),
        None => sink(Found::Torn),
    }
}
