//! The write log of an instance: kept in memory while its volumes are used, and written to a file when they are gone.
//!
//! The data path never waits for a file. When the log's memory is used up it is full: it ends there, and says so.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use pgdyno_clock::monotonic_ns;
use pgdyno_crash::{EVENT_BYTES, Event, Header, LoggedVolume, MAGIC, What, WriteLog};
use pgdyno_host::{Context, Fault, Result};
use serde::Serialize;

/// Bytes of data for which there is an event's room: with fewer on average the events fill up first. A write has an
/// event for itself and one for its answer, and is 4 KiB at least.
const BYTES_PER_EVENT: u64 = 1024;

/// What a log has by now.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Progress {
    events: usize,
    data_bytes: usize,
    limit_bytes: u64,
    /// It ended before what came last.
    full: bool,
}

/// The log while it is recorded.
#[derive(Debug)]
pub(crate) struct Recorder {
    path: PathBuf,
    limit_bytes: u64,
    recorded: Mutex<Recorded>,
}

#[derive(Debug)]
struct Recorded {
    volumes: Vec<LoggedVolume>,
    events: Vec<Event>,
    data: Vec<u8>,
    full: bool,
}

impl Recorder {
    /// An empty log of at most `limit_bytes` of data, to be written to `path`, which is made now.
    pub(crate) fn begin(path: &Path, limit_bytes: u64) -> Result<Self> {
        let remedy = "name a file in a folder that exists and has space";
        File::create(path).context(|| format!("cannot create {}", path.display()), remedy)?;
        let (mut events, mut data) = (Vec::new(), Vec::new());
        let events_max = usize::try_from(limit_bytes / BYTES_PER_EVENT).unwrap_or(usize::MAX);
        // Addresses only: memory is taken as the log grows.
        if events.try_reserve_exact(events_max).and_then(|()| data.try_reserve_exact(limit_bytes as usize)).is_err() {
            return Err(Fault::new(
                format!("a write log of {limit_bytes} bytes has no room in memory"),
                "ask for a smaller one (--write-log-limit)",
            ));
        }
        let recorded = Mutex::new(Recorded { volumes: Vec::new(), events, data, full: false });
        Ok(Self { path: path.to_owned(), limit_bytes, recorded })
    }

    /// Where it will be.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn lock(&self) -> MutexGuard<'_, Recorded> {
        self.recorded.lock().expect("who records does not panic")
    }

    /// The number of a volume that is attached now.
    pub(crate) fn add(&self, volume: LoggedVolume) -> u8 {
        let mut recorded = self.lock();
        recorded.volumes.push(volume);
        // There are fewer lanes.
        (recorded.volumes.len() - 1) as u8
    }

    /// A volume has become larger.
    pub(crate) fn grown(&self, volume: u8, size_bytes: u64) {
        self.lock().volumes[usize::from(volume)].size_bytes = size_bytes;
    }

    /// Notes a write. Its number, by which it is answered; `None` once the log has ended.
    pub(crate) fn write(&self, volume: u8, offset: u64, bytes: &[u8]) -> Option<u32> {
        let mut recorded = self.lock();
        let (data, len) = (recorded.keep(bytes)?, bytes.len() as u32);
        recorded.push(What::Write { volume, offset, len, data })
    }

    /// Notes a discard, as [`Self::write`] does a write.
    pub(crate) fn discard(&self, volume: u8, offset: u64, len: u64) -> Option<u32> {
        self.lock().push(What::Discard { volume, offset, len })
    }

    /// Notes that a write or discard is about to be answered.
    pub(crate) fn answer(&self, request: u32) {
        let _ = self.lock().push(What::Answer { request });
    }

    /// Notes a flush, which is answered at once.
    pub(crate) fn flush(&self, volume: u8) {
        let _ = self.lock().push(What::Flush { volume });
    }

    /// Notes a mark from outside.
    pub(crate) fn mark(&self, text: &str) -> Progress {
        let mut recorded = self.lock();
        if let Some(data) = recorded.keep(text.as_bytes()) {
            let _ = recorded.push(What::Mark { data, len: text.len() as u32 });
        }
        self.progress_of(&recorded)
    }

    /// What the log has by now.
    pub(crate) fn progress(&self) -> Progress {
        self.progress_of(&self.lock())
    }

    fn progress_of(&self, recorded: &Recorded) -> Progress {
        let Recorded { events, data, full, .. } = recorded;
        Progress { events: events.len(), data_bytes: data.len(), limit_bytes: self.limit_bytes, full: *full }
    }

    /// Writes the file. Nothing is recorded after this.
    pub(crate) fn save(&self) -> Result<()> {
        let Recorded { volumes, events, data, full } = &*self.lock();
        let header = Header {
            volumes: volumes.clone(),
            events: events.len() as u64,
            data_bytes: data.len() as u64,
            full: *full,
        };
        let save = || {
            let text = serde_json::to_vec(&header)?;
            let mut file = BufWriter::with_capacity(1 << 20, File::create(&self.path)?);
            file.write_all(&MAGIC)?;
            file.write_all(&(text.len() as u64).to_le_bytes())?;
            file.write_all(&text)?;
            for event in events {
                file.write_all(&event.encode())?;
            }
            file.write_all(data)?;
            file.flush()
        };
        save().context(|| format!("cannot write the write log {}", self.path.display()), "free some space")
    }
}

impl Recorded {
    /// Where bytes are kept; `None` when there is no room, and the log ends.
    fn keep(&mut self, bytes: &[u8]) -> Option<u64> {
        self.full |= self.data.len() + bytes.len() > self.data.capacity();
        if self.full {
            return None;
        }
        let at = self.data.len() as u64;
        self.data.extend_from_slice(bytes);
        Some(at)
    }

    /// The number of an event; `None` when there is no room, and the log ends.
    fn push(&mut self, what: What) -> Option<u32> {
        self.full |= self.events.len() == self.events.capacity();
        if self.full {
            return None;
        }
        let number = self.events.len() as u32;
        self.events.push(Event { at_ns: monotonic_ns(), what });
        Some(number)
    }
}

/// Reads a write log.
///
/// # Errors
/// A file that cannot be read, that is no write log or one of another version, or that is cut off.
pub fn read_write_log(path: &Path) -> Result<WriteLog> {
    let remedy = "name a file that `--write-log` wrote with this version of pgdyno, of a volume that is detached";
    let read = || {
        let mut file = File::open(path)?;
        let mut head = [0; 16];
        file.read_exact(&mut head)?;
        if head[..8] != MAGIC {
            return Ok(None);
        }
        let len = u64::from_le_bytes(std::array::from_fn(|i| head[8 + i]));
        let mut text = Vec::new();
        (&mut file).take(len).read_to_end(&mut text)?;
        let header: Header = serde_json::from_slice(&text)?;
        let mut bytes = Vec::new();
        (&mut file).take(header.events.saturating_mul(EVENT_BYTES as u64)).read_to_end(&mut bytes)?;
        let (whole, rest) = bytes.as_chunks::<EVENT_BYTES>();
        let events: Option<Vec<Event>> = whole.iter().map(Event::decode).collect();
        let mut data = Vec::new();
        file.read_to_end(&mut data)?;
        let complete = rest.is_empty() && whole.len() as u64 == header.events && data.len() as u64 == header.data_bytes;
        std::io::Result::Ok(events.filter(|_| complete).and_then(|events| WriteLog::new(header, events, data)))
    };
    let found = read().context(|| format!("cannot read the write log {}", path.display()), remedy)?;
    found.ok_or_else(|| Fault::new(format!("{} is not a whole write log of this version", path.display()), remedy))
}
