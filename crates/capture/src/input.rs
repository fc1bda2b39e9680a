//! Bytes of a log file, decompressed, and cut into records.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::path::Path;
use std::rc::Rc;

use flate2::read::MultiGzDecoder;

/// Read at once.
const READ_BYTES: usize = 1 << 18;
/// A longer record is counted and passed over, so that no log costs more memory than twice this.
const RECORD_BYTES_MAX: usize = 64 << 20;
const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
const BZIP2: &[u8] = b"BZh";
const XZ: &[u8] = &[0xfd, b'7', b'z', b'X', b'Z', 0];
/// A dictionary of xz takes no more than `xz -9` asks for.
const XZ_BYTES_MAX: u64 = 128 << 20;
/// What is told by its beginning and not read, with what unpacks it.
const PACKED: [(&[u8], &str, &str); 7] = [
    (b"PK\x03\x04", "zip", "unzip"),
    (b"7z\xbc\xaf\x27\x1c", "7z", "7z x"),
    (&[0x04, 0x22, 0x4d, 0x18], "lz4", "lz4 -d"),
    (&[0x1f, 0x9d], "compress (.Z)", "uncompress"),
    (b"Rar!\x1a\x07", "rar", "unrar x"),
    (b"\x89LZO\0\r\n", "lzop", "lzop -d"),
    (b"LZIP", "lzip", "lzip -d"),
];
/// UTF-8's mark at the beginning of a file, which some editors and PowerShell write.
const MARK: &[u8] = "\u{feff}".as_bytes();

/// The file is packed in a way that is not read.
#[derive(Debug, thiserror::Error)]
#[error("it is packed by {name}")]
pub(crate) struct Packed {
    pub name: &'static str,
    pub command: &'static str,
}

/// How far a file is read.
pub(crate) struct Position(Option<File>);

impl Position {
    /// Bytes of it, as it is stored.
    pub(crate) fn stored_bytes(&mut self) -> u64 {
        // It shares its place with the file that is read.
        self.0.as_mut().and_then(|file| file.stream_position().ok()).unwrap_or(0)
    }
}

/// Called after each part that was read; its error ends the reading.
pub(crate) type Pulse<'p> = dyn Fn() -> io::Result<()> + 'p;

/// A file that is being read.
pub(crate) struct Input<'p> {
    source: Box<dyn Read>,
    pulse: Option<&'p Pulse<'p>>,
    record_bytes_max: usize,
    buffer: Vec<u8>,
    begin: usize,
    end: usize,
    /// Nothing more comes from the source.
    over: bool,
    /// Lines before what is next, from 0. It can be asked for while a part is looked at.
    pub line: Rc<Cell<u64>>,
    /// Bytes that were taken, uncompressed.
    pub bytes: u64,
}

impl<'p> Input<'p> {
    /// Opens a file, whatever it is compressed with.
    pub(crate) fn open(path: &Path) -> io::Result<(Self, Position)> {
        let mut file = File::open(path)?;
        let position = Position(file.try_clone().ok());
        let mut head = Vec::new();
        (&mut file).take(8).read_to_end(&mut head)?;
        if let Some((_, name, command)) = PACKED.iter().find(|(magic, _, _)| head.starts_with(magic)) {
            return Err(io::Error::other(Packed { name, command }));
        }
        let whole = io::Cursor::new(head.clone()).chain(file);
        let mut source: Box<dyn Read> = if head.starts_with(GZIP) {
            Box::new(MultiGzDecoder::new(BufReader::with_capacity(READ_BYTES, whole)))
        } else if head.starts_with(ZSTD) {
            Box::new(zstd::stream::read::Decoder::new(whole)?)
        } else if head.starts_with(BZIP2) {
            Box::new(bzip2::read::MultiBzDecoder::new(BufReader::with_capacity(READ_BYTES, whole)))
        } else if head.starts_with(XZ) {
            let stream = liblzma::stream::Stream::new_stream_decoder(XZ_BYTES_MAX, liblzma::stream::CONCATENATED)?;
            Box::new(liblzma::bufread::XzDecoder::new_stream(BufReader::with_capacity(READ_BYTES, whole), stream))
        } else {
            Box::new(whole)
        };
        let mut mark = Vec::new();
        source.by_ref().take(MARK.len() as u64).read_to_end(&mut mark)?;
        if mark != MARK {
            source = Box::new(io::Cursor::new(mark).chain(source));
        }
        Ok((Self::of(source), position))
    }

    pub(crate) fn of(source: Box<dyn Read>) -> Self {
        Self {
            source,
            pulse: None,
            record_bytes_max: RECORD_BYTES_MAX,
            buffer: vec![0; READ_BYTES],
            begin: 0,
            end: 0,
            over: false,
            line: Rc::default(),
            bytes: 0,
        }
    }

    /// The same with something to call after each part that was read.
    pub(crate) fn pulsed(self, pulse: &'p Pulse<'p>) -> Self {
        Self { pulse: Some(pulse), ..self }
    }

    /// The same with another limit of a record's length.
    #[cfg(test)]
    pub(crate) fn limited(self, record_bytes_max: usize) -> Self {
        Self { record_bytes_max, ..self }
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
            if self.buffer.len() - self.end < READ_BYTES / 2 {
                self.buffer.resize(self.buffer.len() * 2, 0);
            }
        }
        if let Some(pulse) = self.pulse {
            pulse()?;
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

    /// What is next up to what `find` finds in it; none at the end. `find` is given all that was read, and how much of it it was given before: what was
    /// looked at once is not looked at again.
    pub(crate) fn next(&mut self, mut find: impl FnMut(&[u8], usize) -> Option<usize>) -> io::Result<Option<Next>> {
        let mut looked = 0;
        loop {
            let seen = self.seen();
            if let Some(length) = find(seen, looked) {
                let end = if length > self.record_bytes_max { End::TooFar } else { End::Found };
                return Ok(Some(Next { length, end }));
            }
            looked = seen.len();
            if looked >= self.record_bytes_max {
                return Ok(Some(Next { length: looked, end: End::TooFar }));
            }
            if !self.more()? {
                return Ok((looked > 0).then_some(Next { length: looked, end: End::File }));
            }
        }
    }

    /// Goes on behind the end of the line, however long it is.
    pub(crate) fn skip_line(&mut self) -> io::Result<()> {
        loop {
            let end = line_length(self.seen(), 0);
            self.take(end.unwrap_or(self.end - self.begin));
            if end.is_some() || !self.more()? {
                return Ok(());
            }
        }
    }

    /// Goes on behind what was looked at.
    pub(crate) fn take(&mut self, length: usize) {
        let taken = &self.buffer[self.begin..self.begin + length];
        self.line.set(self.line.get() + memchr::memchr_iter(b'\n', taken).count() as u64);
        self.bytes += length as u64;
        self.begin += length;
    }
}

/// What is next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Next {
    pub length: usize,
    pub end: End,
}

/// How what is next ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// As it should.
    Found,
    /// With the file.
    File,
    /// It is longer than a record may be, and this is its beginning.
    TooFar,
}

/// Length of the first line with its end, of which `looked` bytes have none.
pub(crate) fn line_length(seen: &[u8], looked: usize) -> Option<usize> {
    memchr::memchr(b'\n', &seen[looked..]).map(|at| looked + at + 1)
}
