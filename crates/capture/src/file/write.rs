//! Writes a capture.

use std::collections::HashMap;
use std::collections::hash_map::{DefaultHasher, Entry};
use std::fs::File;
use std::hash::{Hash, Hasher};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat};

use super::encode::{bytes_of, encode, put_bytes};
use super::room::Room;
use super::{CHECKPOINT, Checkpoint, Delta, Index, Last, MAGIC, PLAIN, RECORDED};
use crate::account::Account;
use crate::call::{Call, SessionFacts};
use crate::error::CaptureError;

/// A session's calls are written when they take this much.
const BLOCK_BYTES: usize = 32 << 10;
/// All are written when all together take this much.
const BUFFERED_BYTES_MAX: usize = 32 << 20;
/// Texts beyond stand where they are used: those of an application that writes values into them never come again.
const TEXTS_MAX: usize = 500_000;
const TABLE_BYTES_MAX: usize = 64 << 20;
const LEVEL: i32 = 1;
/// A checkpoint is written when so many sessions ended, or so many blocks came, since the one before: the index is not kept in memory.
const SESSIONS_A_CHECKPOINT: usize = 4096;
const BLOCKS_A_CHECKPOINT: usize = 65_536;
/// What a checkpoint says of a session and of a frame, at most, before it is packed: four names have 63 bytes each, and letters may take six.
const SESSION_BYTES: u64 = 2048;
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
    facts: SessionFacts,
    /// Blocks since the last checkpoint.
    blocks: Vec<u64>,
    /// Whether it is as the last checkpoint says.
    changed: bool,
}

/// Writes a capture. One of logs exists under its name only when it is whole; a recording has its name from the beginning, and can be read up to
/// its last checkpoint.
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
    /// How many sessions began.
    sessions: usize,
    buffers: HashMap<usize, Buffer>,
    buffered: usize,
    /// What ended since the last checkpoint, where blocks of texts are since then, and how many blocks there are.
    ended: Vec<Delta>,
    text_blocks: Vec<u64>,
    blocks: usize,
    /// Where checkpoints are.
    checkpoints: Vec<u64>,
    packer: zstd::bulk::Compressor<'static>,
    calls: u64,
    /// None where a full disk is no end: what is read from a log can be read again.
    room: Option<Room>,
    /// A frame was not written whole.
    broken: bool,
}

impl Writer {
    /// Begins a capture of logs that its owner alone may read. An existing file is refused.
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
                (new_file(&working).map_err(refused)?, Some(working))
            }
            Err(error) => return Err(refused(error.into())),
        };
        Self::of(path, file, working).map_err(refused)
    }

    /// Begins a recording: a file of its owner alone that has its name at once, and that can be read up to its last [checkpoint](Self::checkpoint)
    /// however the process ends. Room on the disk is taken ahead of what comes, so that [`Self::finish`] has what it needs after [`Self::call`] or
    /// [`Self::rows`] was refused for lack of it. A recording that was dropped without a call leaves no file.
    pub fn record(path: &Path) -> Result<Self, CaptureError> {
        let refused = |error: io::Error| CaptureError::unwritable(path, &error);
        let mut made = Self::of(path, new_file(path).map_err(refused)?, None).map_err(refused)?;
        made.room = Some(Room::default());
        Ok(made)
    }

    fn of(path: &Path, file: File, working: Option<PathBuf>) -> io::Result<Self> {
        let mut packer = zstd::bulk::Compressor::new(LEVEL)?;
        packer.include_checksum(true)?;
        let mut made = Self {
            path: path.to_owned(),
            working,
            out: BufWriter::with_capacity(1 << 18, file),
            at: 0,
            known: HashMap::new(),
            texts: 0,
            table: Vec::new(),
            table_bytes: 0,
            sessions: 0,
            buffers: HashMap::new(),
            buffered: 0,
            ended: Vec::new(),
            text_blocks: Vec::new(),
            blocks: 0,
            checkpoints: Vec::new(),
            packer,
            calls: 0,
            room: None,
            broken: false,
        };
        made.out.write_all(MAGIC)?;
        made.at = MAGIC.len() as u64;
        Ok(made)
    }

    /// Takes room for so many bytes more.
    fn reserve(&mut self, more: usize) -> io::Result<()> {
        let Some(room) = &mut self.room else { return Ok(()) };
        let waiting = (self.buffered + self.table.len() + more) as u64;
        let sessions = self.ended.len() + self.buffers.len();
        let frames = self.blocks + self.buffers.len() + self.checkpoints.len();
        let index = SESSION_BYTES * sessions as u64 + FRAME_BYTES * frames as u64;
        // A frame that cannot be packed grows by less than a 128th, and each session has one more.
        let packed = waiting + waiting / 128 + (1 << 10) * self.buffers.len() as u64;
        room.reach(self.out.get_ref(), self.at + packed + index + SLACK_BYTES)
    }

    /// A new session, of which so much is known; returns its number.
    pub fn begin(&mut self, facts: &SessionFacts) -> usize {
        let number = self.sessions;
        self.sessions += 1;
        self.buffers.insert(number, Buffer { facts: facts.clone(), changed: true, ..Buffer::default() });
        number
    }

    /// The next call of a session.
    pub fn call(&mut self, session: usize, call: &Call) -> io::Result<()> {
        self.reserve(bytes_of(call))?;
        let number = self.text(&call.text)?;
        let buffer = self.buffers.get_mut(&session).ok_or(io::ErrorKind::NotFound)?;
        let before = buffer.bytes.len();
        encode(call, number, &mut buffer.last, &mut buffer.bytes);
        self.buffered += buffer.bytes.len() - before;
        self.calls += 1;
        buffer.changed = true;
        buffer.facts.calls += 1;
        buffer.facts.end_us = buffer.facts.end_us.max(call.due_us);
        if buffer.bytes.len() >= BLOCK_BYTES {
            self.flush(session)?;
        }
        if self.buffered >= BUFFERED_BYTES_MAX {
            let mut sessions: Vec<usize> = self.buffers.keys().copied().collect();
            sessions.sort_unstable();
            sessions.into_iter().try_for_each(|session| self.flush(session))?;
        }
        self.checkpoint_if_many()
    }

    /// Writes what came of some sessions, at most so many. Whether there are more.
    pub fn flush_some(&mut self, sessions: usize) -> io::Result<bool> {
        let waiting = self.buffers.iter().filter(|(_, buffer)| !buffer.bytes.is_empty()).map(|(number, _)| *number);
        let mut waiting: Vec<usize> = waiting.take(sessions + 1).collect();
        let more = waiting.len() > sessions;
        waiting.truncate(sessions);
        waiting.into_iter().try_for_each(|session| self.flush(session))?;
        Ok(more)
    }

    /// Writes all that came. A file that is not finished can be read up to here.
    pub fn checkpoint(&mut self, account: &Account) -> io::Result<()> {
        while self.flush_some(usize::MAX - 1)? {}
        self.reserve(0)?;
        self.flush_texts()?;
        self.put_checkpoint(Some(account))?;
        self.out.flush()
    }

    fn checkpoint_if_many(&mut self) -> io::Result<()> {
        if self.ended.len() < SESSIONS_A_CHECKPOINT && self.blocks < BLOCKS_A_CHECKPOINT {
            return Ok(());
        }
        self.put_checkpoint(None)
    }

    fn put_checkpoint(&mut self, account: Option<&Account>) -> io::Result<()> {
        let mut sessions = std::mem::take(&mut self.ended);
        for (number, buffer) in self.buffers.iter_mut().filter(|(_, buffer)| buffer.changed) {
            buffer.changed = false;
            let blocks = std::mem::take(&mut buffer.blocks);
            sessions.push(Delta { number: *number, facts: buffer.facts.clone(), blocks });
        }
        sessions.sort_unstable_by_key(|delta| delta.number);
        let texts = std::mem::take(&mut self.text_blocks);
        self.blocks = 0;
        let text = serde_json::to_vec(&Checkpoint { sessions, texts, account: account.cloned() })?;
        let kind = if self.room.is_some() { RECORDED } else { CHECKPOINT };
        let at = self.frame(&text, kind)?;
        self.checkpoints.push(at);
        Ok(())
    }

    /// A part of the rows of a COPY. Returns where it is, for [`Call::rows`].
    pub fn rows(&mut self, part: &[u8]) -> io::Result<u64> {
        self.reserve(part.len())?;
        self.frame(part, PLAIN)
    }

    /// A session has no more calls.
    pub fn end(&mut self, session: usize, facts: SessionFacts) -> io::Result<()> {
        self.flush(session)?;
        let Some(buffer) = self.buffers.remove(&session) else { return Ok(()) };
        self.ended.push(Delta { number: session, facts, blocks: buffer.blocks });
        self.checkpoint_if_many()
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
        while self.flush_some(usize::MAX - 1)? {}
        self.flush_texts()?;
        self.put_checkpoint(None)?;
        let checkpoints = std::mem::take(&mut self.checkpoints);
        let text = serde_json::to_vec(&Index { account: account.clone(), checkpoints, ..Index::default() })?;
        let at = self.frame(&text, PLAIN)?;
        self.out.write_all(&at.to_le_bytes())?;
        self.out.write_all(MAGIC)?;
        self.out.flush()?;
        let file = self.out.get_ref();
        if self.room.is_some() {
            file.set_len(file.metadata()?.len())?; // gives the room back that is left
        }
        file.sync_all()?;
        match self.working.take() {
            // A recording has its name.
            None if self.room.is_some() => (),
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
            let at = self.frame(&table, PLAIN)?;
            self.text_blocks.push(at);
            self.blocks += 1;
        }
        Ok(())
    }

    fn flush(&mut self, session: usize) -> io::Result<()> {
        let Some(buffer) = self.buffers.get_mut(&session).filter(|buffer| !buffer.bytes.is_empty()) else {
            return Ok(());
        };
        let bytes = std::mem::take(&mut buffer.bytes);
        self.buffered -= bytes.len();
        let at = self.frame(&bytes, PLAIN)?;
        if let Some(buffer) = self.buffers.get_mut(&session) {
            buffer.blocks.push(at);
            buffer.changed = true;
        }
        self.blocks += 1;
        Ok(())
    }

    /// Writes a frame; returns where it is.
    fn frame(&mut self, bytes: &[u8], kind: u32) -> io::Result<u64> {
        let written = self.put_frame(bytes, kind);
        self.broken |= written.is_err();
        written
    }

    fn put_frame(&mut self, bytes: &[u8], kind: u32) -> io::Result<u64> {
        let too_large = |_| io::Error::from(io::ErrorKind::FileTooLarge);
        let plain = u32::try_from(bytes.len()).map_err(too_large)?;
        let stored = self.packer.compress(bytes)?;
        let at = self.at;
        let length = u32::try_from(stored.len()).map_err(too_large)?;
        self.out.write_all(&length.to_le_bytes())?;
        self.out.write_all(&plain.to_le_bytes())?;
        self.out.write_all(&kind.to_le_bytes())?;
        self.out.write_all(&stored)?;
        self.at += 12 + u64::from(length);
        Ok(at)
    }
}

impl Drop for Writer {
    /// A file that was not finished does not stay, but for a recording that has calls.
    fn drop(&mut self) {
        if self.room.is_some() && self.calls == 0 {
            let _ = std::fs::remove_file(&self.path);
        }
        if let Some(working) = &self.working {
            let _ = std::fs::remove_file(working);
        }
    }
}

/// A file of its owner alone that was not there.
fn new_file(path: &Path) -> io::Result<File> {
    File::options().read(true).write(true).create_new(true).mode(0o600).open(path)
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
