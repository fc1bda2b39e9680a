//! The journal's export format: a field a line, a record up to an empty line; a field that is no text has its length before it
//! (systemd, "Journal Export Formats").

use std::borrow::Cow;
use std::io;

use super::frame::{Piece, Piecewise};
use crate::input::{End, Input, line_length};

/// A field is not longer: the journal's own limit is 768 MiB, a line of a log's is this.
const FIELD_BYTES_MAX: u64 = 64 << 20;

/// Whether a file that begins so is one.
pub(super) fn is_one(head: &[u8]) -> bool {
    head.starts_with(b"__CURSOR=") || head.starts_with(b"__REALTIME_TIMESTAMP=")
}

/// What is used of a record.
#[derive(Default)]
struct Record {
    text: Option<Vec<u8>>,
    pid: Option<u32>,
    syslog_pid: Option<u32>,
    us: Option<i64>,
    is_syslog: bool,
}

impl Record {
    fn field(&mut self, name: &[u8], value: &[u8]) {
        let number = || std::str::from_utf8(value).ok();
        match name {
            b"MESSAGE" => self.text = Some(value.to_owned()),
            b"_PID" => self.pid = number().and_then(|text| text.parse().ok()),
            b"SYSLOG_PID" => self.syslog_pid = number().and_then(|text| text.parse().ok()),
            b"__REALTIME_TIMESTAMP" => self.us = number().and_then(|text| text.parse().ok()),
            b"_TRANSPORT" => self.is_syslog = value == b"syslog",
            _ => (),
        }
    }

    fn piece(self) -> Option<Piece<'static>> {
        let piece = Piece {
            text: Cow::Owned(self.text?),
            received_us: self.us,
            written_us: self.us,
            pid: self.syslog_pid.or(self.pid),
            is_syslog: self.is_syslog,
            ..Piece::default()
        };
        Some(super::frame::numbered(piece))
    }
}

pub(super) fn read<E: From<io::Error>>(
    input: &mut Input<'_>,
    to: &mut dyn FnMut(Piecewise<'_, '_>) -> Result<(), E>,
) -> Result<(), E> {
    let mut record = Record::default();
    while let Some(next) = input.next(line_length)? {
        if next.end == End::TooFar {
            to(Piecewise::Torn)?;
            record = Record::default();
            input.skip_line()?;
            continue;
        }
        let line = input.seen()[..next.length].to_owned();
        input.take(next.length);
        let line = line.strip_suffix(b"\n").unwrap_or(&line);
        if line.is_empty() {
            end(std::mem::take(&mut record), to)?;
        } else if let Some(at) = memchr::memchr(b'=', line) {
            record.field(&line[..at], &line[at + 1..]);
        } else if let Some(value) = binary(input)? {
            record.field(line, &value);
        } else {
            to(Piecewise::Torn)?;
            record = Record::default();
        }
    }
    end(record, to)
}

fn end<E>(record: Record, to: &mut dyn FnMut(Piecewise<'_, '_>) -> Result<(), E>) -> Result<(), E> {
    match record.piece() {
        Some(piece) => to(Piecewise::Piece(&piece, true)),
        None => Ok(()),
    }
}

/// A value with its length before it, and the end of its line.
fn binary(input: &mut Input<'_>) -> io::Result<Option<Vec<u8>>> {
    let Some(next) = input.next(|seen, _| (seen.len() >= 8).then_some(8))? else { return Ok(None) };
    let length = <[u8; 8]>::try_from(&input.seen()[..next.length]).map(u64::from_le_bytes);
    let Ok(length) = length else { return Ok(None) };
    if length > FIELD_BYTES_MAX {
        return Ok(None);
    }
    input.take(8);
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    let Some(next) = input.next(|seen, _| (seen.len() > length).then_some(length + 1))? else { return Ok(None) };
    if next.length != length + 1 {
        return Ok(None);
    }
    let value = input.seen()[..length].to_owned();
    input.take(length + 1);
    Ok(Some(value))
}
