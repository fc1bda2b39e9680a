//! Bytes of a log file, decompressed, and cut into records.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::path::Path;

use flate2::read::MultiGzDecoder;

/// Read at once.
const READ_BYTES: usize = 1 << 18;
/// A record that is longer is none: PostgreSQL writes no text beyond 1 GiB.
const RECORD_BYTES_MAX: usize = 1 << 30;
const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// How far a file is read.
pub(crate) struct Position(Option<File>);

impl Position {
    /// Bytes of it, as it is stored.
    pub(crate) fn stored_bytes(&mut self) -> u64 {
        // It shares its place with the file that is read.
        self.0.as_mut().and_then(|file| file.stream_position().ok()).unwrap_or(0)
    }
}

/// A file that is being read.
pub(crate) struct Input {
    source: Box<dyn Read>,
    buffer: Vec<u8>,
    begin: usize,
    end: usize,
    /// Nothing more comes from the source.
    over: bool,
    /// Lines before what is next, from 0.
    pub line: u64,
    /// Bytes that were taken, uncompressed.
    pub bytes: u64,
}

impl Input {
    /// Opens a file, whatever it is compressed with.
    pub(crate) fn open(path: &Path) -> io::Result<(Self, Position)> {
        let mut file = File::open(path)?;
        let position = Position(file.try_clone().ok());
        let mut head = Vec::new();
        (&mut file).take(4).read_to_end(&mut head)?;
        let whole = io::Cursor::new(head.clone()).chain(file);
        let source: Box<dyn Read> = if head.starts_with(GZIP) {
            Box::new(MultiGzDecoder::new(BufReader::with_capacity(READ_BYTES, whole)))
        } else if head.starts_with(ZSTD) {
            Box::new(zstd::stream::read::Decoder::new(whole)?)
        } else {
            Box::new(whole)
        };
        Ok((Self::of(source), position))
    }

    pub(crate) fn of(source: Box<dyn Read>) -> Self {
        Self { source, buffer: vec![0; READ_BYTES], begin: 0, end: 0, over: false, line: 0, bytes: 0 }
    }

    /// What was read and not taken.
    pub(crate) fn seen(&self) -> &[u8] {
        &self.buffer[self.begin..self.end]
    }

    /// Reads more. False at the end.
    pub(crate) fn more(&mut self) -> io::Result<bool> {
        if self.over {
            return Ok(false);
        }
        if self.buffer.len() - self.end < READ_BYTES / 2 {
            self.buffer.copy_within(self.begin..self.end, 0);
            (self.begin, self.end) = (0, self.end - self.begin);
            if self.end > RECORD_BYTES_MAX {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "a record is longer than 1 GiB"));
            }
            if self.buffer.len() - self.end < READ_BYTES / 2 {
                self.buffer.resize(self.buffer.len() * 2, 0);
            }
        }
        loop {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.over = true,
                Ok(read) => self.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            return Ok(!self.over);
        }
    }

    /// Length of what is next up to what `find` finds in it, which is given all that was read; the rest of the file if it
    /// finds nothing, and then `whole` is false. None at the end.
    pub(crate) fn next(&mut self, find: impl Fn(&[u8]) -> Option<usize>) -> io::Result<Option<Next>> {
        loop {
            if let Some(length) = find(self.seen()) {
                return Ok(Some(Next { length, whole: true }));
            }
            if !self.more()? {
                let length = self.end - self.begin;
                return Ok((length > 0).then_some(Next { length, whole: false }));
            }
        }
    }

    /// Goes on behind what was looked at.
    pub(crate) fn take(&mut self, length: usize) {
        let taken = &self.buffer[self.begin..self.begin + length];
        self.line += memchr::memchr_iter(b'\n', taken).count() as u64;
        self.bytes += length as u64;
        self.begin += length;
    }
}

/// What is next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Next {
    pub length: usize,
    /// Whether its end was found.
    pub whole: bool,
}

/// Length of the first line with its end.
pub(crate) fn line_length(seen: &[u8]) -> Option<usize> {
    memchr::memchr(b'\n', seen).map(|at| at + 1)
}
