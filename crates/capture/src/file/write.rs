//! Writes a capture.

use std::collections::HashMap;
use std::collections::hash_map::{DefaultHasher, Entry};
use std::fs::File;
use std::hash::{Hash, Hasher};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat};

use super::room::Room;
use super::{
    ANSWER, CUT, DONE, FAILED, INLINE, Index, Indexed, Last, MAGIC, MORE, NAMED, ROWS, UNNAMED, WITHOUT_VALUES,
};
use crate::account::Account;
use crate::call::{Call, Ending, Protocol, SessionFacts};
use crate::error::CaptureError;

/// A session's calls are written when they take this much.
const BLOCK_BYTES: usize = 32 << 10;
/// All are written when all together take this much.
const BUFFERED_BYTES_MAX: usize = 32 << 20;
/// Texts beyond stand where they are used: those of an application that writes values into them never come again.
const TEXTS_MAX: usize = 500_000;
const TABLE_BYTES_MAX: usize = 64 << 20;
const LEVEL: i32 = 1;
/// What the index says of a session and of a frame, at most, before it is packed: names have 63 bytes each.
const SESSION_BYTES: u64 = 768;
const FRAME_BYTES: u64 = 24;
/// The account, the end of the file, and what packing may add to a frame.
const SLACK_BYTES: u64 = 64 << 10;

/// What is known of a text.
enum Known {
    /// It was used once, and stands there.
    Once,
    /// Its number in the table.
    Number(u32),
}

/// A session that is being written.
#[derive(Default)]
struct Buffer {
    bytes: Vec<u8>,
    last: Last,
}

/// Writes a capture, which exists under its name only when it is whole.
pub struct Writer {
    path: PathBuf,
    /// Its name until then, where the file system has no files without one.
    working: Option<PathBuf>,
    out: BufWriter<File>,
    at: u64,
    known: HashMap<u128, Known>,
    texts: u32,
    table: Vec<u8>,
    table_bytes: usize,
    buffers: HashMap<usize, Buffer>,
    buffered: usize,
    index: Index,
    frames: u64,
    /// None where a full disk is no end: what is read from a log can be read again.
    room: Option<Room>,
    /// A frame was not written whole.
    broken: bool,
}

impl Writer {
    /// Begins a file that its owner alone may read. An existing one is refused.
    pub fn create(path: &Path) -> Result<Self, CaptureError> {
        let refused = |error: io::Error| CaptureError::unwritable(path, &error);
        if path.symlink_metadata().is_ok() {
            return Err(refused(io::ErrorKind::AlreadyExists.into()));
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let unnamed =
            rustix::fs::open(folder, OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR);
        let (file, working) = match unnamed {
            Ok(file) => (File::from(file), None),
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::ISDIR) => {
                let working = path.with_extension("part");
                let file = File::options().read(true).write(true).create_new(true).mode(0o600).open(&working);
                (file.map_err(refused)?, Some(working))
            }
            Err(error) => return Err(refused(error.into())),
        };
        let mut made = Self {
            path: path.to_owned(),
            working,
            out: BufWriter::with_capacity(1 << 18, file),
            at: 0,
            known: HashMap::new(),
            texts: 0,
            table: Vec::new(),
            table_bytes: 0,
            buffers: HashMap::new(),
            buffered: 0,
            index: Index::default(),
            frames: 0,
            room: None,
            broken: false,
        };
        made.out.write_all(MAGIC).map_err(refused)?;
        made.at = MAGIC.len() as u64;
        Ok(made)
    }

    /// Takes room on the disk ahead of what comes, so that [`Self::finish`] has what it needs after [`Self::call`] or [`Self::rows`] was refused
    /// for lack of it.
    #[must_use]
    pub fn reserving(mut self) -> Self {
        self.room = Some(Room::default());
        self
    }

    /// Takes room for so many bytes more.
    fn reserve(&mut self, more: usize) -> io::Result<()> {
        let Some(room) = &mut self.room else { return Ok(()) };
        let waiting = (self.buffered + self.table.len() + more) as u64;
        let index = SESSION_BYTES * self.index.sessions.len() as u64 + FRAME_BYTES * self.frames;
        // A frame that cannot be packed grows by less than a 128th, and each session has one more.
        let packed = waiting + waiting / 128 + (1 << 10) * self.buffers.len() as u64;
        room.reach(self.out.get_ref(), self.at + packed + index + SLACK_BYTES)
    }

    /// A new session; returns its number.
    pub fn begin(&mut self) -> usize {
        self.index.sessions.push(Indexed::default());
        self.index.sessions.len() - 1
    }

    /// The next call of a session.
    pub fn call(&mut self, session: usize, call: &Call) -> io::Result<()> {
        self.reserve(bytes_of(call))?;
        let number = self.text(&call.text)?;
        let buffer = self.buffers.entry(session).or_default();
        let before = buffer.bytes.len();
        encode(call, number, buffer);
        self.buffered += buffer.bytes.len() - before;
        if buffer.bytes.len() >= BLOCK_BYTES {
            self.flush(session)?;
        }
        if self.buffered >= BUFFERED_BYTES_MAX {
            let mut sessions: Vec<usize> = self.buffers.keys().copied().collect();
            sessions.sort_unstable();
            sessions.into_iter().try_for_each(|session| self.flush(session))?;
        }
        Ok(())
    }

    /// A part of the rows of a COPY. Returns where it is, for [`Call::rows`].
    pub fn rows(&mut self, part: &[u8]) -> io::Result<u64> {
        self.reserve(part.len())?;
        self.frame(part)
    }

    /// A session has no more calls.
    pub fn end(&mut self, session: usize, facts: SessionFacts) -> io::Result<()> {
        self.flush(session)?;
        self.buffers.remove(&session);
        self.index.sessions[session].facts = facts;
        Ok(())
    }

    /// Writes what is left, and gives the file its name.
    pub fn finish(mut self, account: &Account) -> Result<(), CaptureError> {
        let path = self.path.clone();
        self.close(account).map_err(|error| CaptureError::unwritable(&path, &error))
    }

    fn close(&mut self, account: &Account) -> io::Result<()> {
        if self.broken {
            return Err(io::Error::other("a part of it was not written"));
        }
        self.flush_texts()?;
        self.index.account = account.clone();
        let text = serde_json::to_vec(&self.index)?;
        let at = self.frame(&text)?;
        self.out.write_all(&at.to_le_bytes())?;
        self.out.write_all(MAGIC)?;
        self.out.flush()?;
        let file = self.out.get_ref();
        if self.room.is_some() {
            file.set_len(file.metadata()?.len())?; // gives the room back that is left
        }
        file.sync_all()?;
        match self.working.take() {
            None => {
                let opened = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(file));
                linkat(CWD, &opened, CWD, &self.path, AtFlags::SYMLINK_FOLLOW)?;
            }
            // `link` refuses an existing name, and `rename` does not.
            Some(working) => {
                let linked = std::fs::hard_link(&working, &self.path);
                std::fs::remove_file(&working)?;
                linked?;
            }
        }
        Ok(())
    }

    /// The number of a text in the table; none if it is to stand where it is used.
    fn text(&mut self, text: &str) -> io::Result<Option<u32>> {
        let full = self.known.len() >= TEXTS_MAX || self.table_bytes >= TABLE_BYTES_MAX;
        match self.known.entry(digest(text)) {
            Entry::Vacant(place) => {
                if !full {
                    place.insert(Known::Once);
                }
                return Ok(None);
            }
            Entry::Occupied(place) if matches!(place.get(), Known::Once) && full => return Ok(None),
            Entry::Occupied(mut place) => match place.get() {
                Known::Number(number) => return Ok(Some(*number)),
                Known::Once => place.insert(Known::Number(self.texts)),
            },
        };
        put_bytes(&mut self.table, text.as_bytes());
        self.table_bytes += text.len();
        self.texts += 1;
        let number = self.texts - 1;
        if self.table.len() >= BLOCK_BYTES {
            self.flush_texts()?;
        }
        Ok(Some(number))
    }

    fn flush_texts(&mut self) -> io::Result<()> {
        if !self.table.is_empty() {
            let table = std::mem::take(&mut self.table);
            let at = self.frame(&table)?;
            self.index.texts.push(at);
        }
        Ok(())
    }

    fn flush(&mut self, session: usize) -> io::Result<()> {
        let Some(buffer) = self.buffers.get_mut(&session).filter(|buffer| !buffer.bytes.is_empty()) else {
            return Ok(());
        };
        let bytes = std::mem::take(&mut buffer.bytes);
        self.buffered -= bytes.len();
        let at = self.frame(&bytes)?;
        self.index.sessions[session].blocks.push(at);
        Ok(())
    }

    /// Writes a frame; returns where it is.
    fn frame(&mut self, bytes: &[u8]) -> io::Result<u64> {
        let written = self.put_frame(bytes);
        self.broken |= written.is_err();
        self.frames += 1;
        written
    }

    fn put_frame(&mut self, bytes: &[u8]) -> io::Result<u64> {
        let mut packer = zstd::bulk::Compressor::new(LEVEL)?;
        packer.include_checksum(true)?;
        let stored = packer.compress(bytes)?;
        let at = self.at;
        let length = u32::try_from(stored.len()).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
        self.out.write_all(&length.to_le_bytes())?;
        self.out.write_all(&(bytes.len() as u64).to_le_bytes())?;
        self.out.write_all(&stored)?;
        self.at += 12 + u64::from(length);
        Ok(at)
    }
}

impl Drop for Writer {
    /// A file that was not finished does not stay.
    fn drop(&mut self) {
        if let Some(working) = &self.working {
            let _ = std::fs::remove_file(working);
        }
    }
}

/// What a call takes in a block or in the table of texts, at most.
fn bytes_of(call: &Call) -> usize {
    let values: usize = call.values.iter().flatten().map(String::len).sum();
    let answer: usize = call.answer.iter().map(|(name, value)| name.len() + value.len()).sum();
    let numbers = 16 + call.values.len() + call.answer.len() + call.rows.as_ref().map_or(0, Vec::len);
    call.text.len() + call.name.len() + values + answer + 10 * numbers
}

/// Of two hashes with different beginnings, as one of 64 bits would meet itself in a billion texts.
fn digest(text: &str) -> u128 {
    let half = |seed: u8| {
        let mut hasher = DefaultHasher::new();
        (seed, text).hash(&mut hasher);
        hasher.finish()
    };
    (u128::from(half(0)) << 64) | u128::from(half(1))
}

fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn encode(call: &Call, text: Option<u32>, buffer: &mut Buffer) {
    let out = &mut buffer.bytes;
    let mut flags = match call.protocol {
        Protocol::Text => 0,
        Protocol::Unnamed => UNNAMED,
        Protocol::Named => NAMED,
    };
    flags |= match call.ending {
        Ending::Unknown => 0,
        Ending::Done(_) => DONE,
        Ending::Failed(_) => FAILED,
    };
    let more = [(ROWS, call.rows.is_some()), (ANSWER, !call.answer.is_empty())];
    let more = more.into_iter().fold(0, |bits, (bit, set)| if set { bits | bit } else { bits });
    let facts = [(WITHOUT_VALUES, call.without_values), (CUT, call.cut), (INLINE, text.is_none()), (MORE, more != 0)];
    for (bit, set) in facts {
        flags |= if set { bit } else { 0 };
    }
    out.push(flags);
    let delta = call.due_us - buffer.last.due_us;
    put(out, ((delta << 1) ^ (delta >> 63)).cast_unsigned());
    put(out, u64::from(call.transaction - buffer.last.transaction));
    buffer.last = Last { due_us: call.due_us, transaction: call.transaction };
    match text {
        Some(number) => put(out, u64::from(number)),
        None => put_bytes(out, call.text.as_bytes()),
    }
    match call.ending {
        Ending::Unknown => (),
        Ending::Done(us) => put(out, us),
        Ending::Failed(state) => out.extend_from_slice(&state),
    }
    if call.protocol == Protocol::Named {
        put_bytes(out, call.name.as_bytes());
    }
    if call.protocol != Protocol::Text {
        put(out, call.values.len() as u64);
        for value in &call.values {
            match value {
                None => put(out, 0),
                Some(value) => {
                    put(out, value.len() as u64 + 1);
                    out.extend_from_slice(value.as_bytes());
                }
            }
        }
    }
    if more != 0 {
        out.push(more);
    }
    if let Some(rows) = &call.rows {
        put(out, rows.len() as u64);
        let mut last = 0;
        for at in rows {
            put(out, at - last);
            last = *at;
        }
    }
    if !call.answer.is_empty() {
        put(out, call.answer.len() as u64);
        for (name, value) in &call.answer {
            put_bytes(out, name.as_bytes());
            put_bytes(out, value.as_bytes());
        }
    }
}
