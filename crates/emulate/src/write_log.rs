//! The write log of an instance: kept in memory while its volumes are used, and written to a file when they are gone.
//!
//! The data path never waits for a file. When the log's memory is used up it is full: it ends there, and says so. A thread has memory
//! ready before it is written: a first touch of each page would cost the data path more than the copy.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard};

use pgdyno_clock::monotonic_ns;
use pgdyno_crash::{EVENT_BYTES, Event, Header, LoggedVolume, MAGIC, What, WriteLog};
use pgdyno_host::{Context, Fault, Result};
use serde::Serialize;

use crate::log_state::incomplete;
use crate::store::Mapping;

/// Bytes of data for which there is an event's room: with fewer on average the events fill up first. A write has an
/// event for itself and one for its answer, and is 4 KiB at least.
const BYTES_PER_EVENT: u64 = 1024;

/// So much memory for data is ready beyond what is used: for 100 ms of 150,000 writes of 4 KiB a second.
const AHEAD_BYTES: u64 = 64 << 20;
/// And is made ready in so many pieces.
const AHEAD_PIECES: u64 = 8;
/// What a log is copied to its file by.
const SAVE_BYTES: usize = 1 << 20;

/// What a log has by now.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Progress {
    events: usize,
    data_bytes: u64,
    limit_bytes: u64,
    /// It ended before what came last.
    full: bool,
}

/// The log while it is recorded.
#[derive(Debug)]
pub(crate) struct Recorder {
    path: PathBuf,
    recorded: Mutex<Recorded>,
    /// The memory of [`Recorded::data`]. Who has a place in it copies to there without the lock.
    data: Arc<Mapping>,
}

#[derive(Debug)]
struct Recorded {
    volumes: Vec<LoggedVolume>,
    /// As the file has them.
    events: Filling,
    /// What was written, the one after the other.
    data: Filling,
    full: bool,
}

/// Memory that is used from its beginning on, and is ready before it is used.
#[derive(Debug)]
struct Filling {
    memory: Arc<Mapping>,
    used_bytes: u64,
    limit_bytes: u64,
    /// Memory that is ready or being made so.
    ready_bytes: u64,
    ahead_bytes: u64,
    /// Where the thread that makes it ready is asked for the next piece.
    wanted: SyncSender<Piece>,
}

/// A part of some memory.
#[derive(Debug)]
struct Piece {
    memory: Arc<Mapping>,
    at: u64,
    len: usize,
}

impl Recorder {
    /// An empty log of at most `limit_bytes` of data, to be written to `path`, which is made now.
    pub(crate) fn begin(path: &Path, limit_bytes: u64) -> Result<Self> {
        let remedy = "name a file in a folder that exists and has space";
        File::create(path).context(|| format!("cannot create {}", path.display()), remedy)?;
        // Twice: of the events and of the data.
        let (wanted, asked) = sync_channel(2 * AHEAD_PIECES as usize);
        let events_per_data = BYTES_PER_EVENT / EVENT_BYTES as u64;
        let events = Filling::new(limit_bytes / events_per_data, AHEAD_BYTES / events_per_data, &wanted);
        let Some((events, data)) = events.zip(Filling::new(limit_bytes, AHEAD_BYTES, &wanted)) else {
            return Err(Fault::new(
                format!("a write log of {limit_bytes} bytes has no room in memory"),
                "ask for a smaller one (--write-log-limit)",
            ));
        };
        // Without it pages come when they are touched.
        let _ = std::thread::Builder::new().name("write log".to_owned()).spawn(move || make_ready(&asked));
        let memory = data.memory.clone();
        let mut recorded = Recorded { volumes: Vec::new(), events, data, full: false };
        recorded.events.have_ready();
        recorded.data.have_ready();
        Ok(Self { path: path.to_owned(), recorded: Mutex::new(recorded), data: memory })
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
        let (data, len) = (recorded.place(bytes.len())?, bytes.len() as u32);
        let number = recorded.push(What::Write { volume, offset, len, data })?;
        drop(recorded);
        self.copy(bytes, data);
        Some(number)
    }

    fn copy(&self, bytes: &[u8], at: u64) {
        self.data.stream(bytes, at).expect("`place` gives places within the limit");
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
        if let Some(data) = recorded.place(text.len()) {
            self.copy(text.as_bytes(), data);
            let _ = recorded.push(What::Mark { data, len: text.len() as u32 });
        }
        recorded.progress()
    }

    /// What the log has by now.
    pub(crate) fn progress(&self) -> Progress {
        self.lock().progress()
    }

    /// Whether it has ended at its limit, before what came last.
    pub(crate) fn is_full(&self) -> bool {
        self.lock().full
    }

    /// Writes the file. Nothing is recorded after this.
    pub(crate) fn save(&self) -> Result<()> {
        let recorded = &*self.lock();
        let Progress { events, data_bytes, full, .. } = recorded.progress();
        let header = Header { volumes: recorded.volumes.clone(), events: events as u64, data_bytes, full };
        let save = || {
            let text = serde_json::to_vec(&header)?;
            let mut file = BufWriter::with_capacity(SAVE_BYTES, File::create(&self.path)?);
            file.write_all(&MAGIC)?;
            file.write_all(&(text.len() as u64).to_le_bytes())?;
            file.write_all(&text)?;
            recorded.events.save(&mut file)?;
            recorded.data.save(&mut file)?;
            file.flush()
        };
        save().map_err(|error: std::io::Error| incomplete("write", &self.path, &error.to_string()))
    }
}

impl Recorded {
    /// A place for so many bytes of data.
    fn place(&mut self, len: usize) -> Option<u64> {
        place_in(&mut self.data, &mut self.full, len)
    }

    /// The number of an event.
    fn push(&mut self, what: What) -> Option<u32> {
        let at = place_in(&mut self.events, &mut self.full, EVENT_BYTES)?;
        let event = Event { at_ns: monotonic_ns(), what };
        self.events.memory.overwrite(&event.encode(), at).expect("`take` gives places within the limit");
        Some((at / EVENT_BYTES as u64) as u32)
    }

    fn progress(&self) -> Progress {
        let Self { events, data, full, .. } = self;
        let events = events.used_bytes as usize / EVENT_BYTES;
        Progress { events, data_bytes: data.used_bytes, limit_bytes: data.limit_bytes, full: *full }
    }
}

/// A place for so many bytes; `None` when there is no room, and the log ends.
fn place_in(filling: &mut Filling, full: &mut bool, len: usize) -> Option<u64> {
    let place = if *full { None } else { filling.take(len) };
    *full = place.is_none();
    place
}

impl Filling {
    /// Addresses only: memory is taken as it fills. `None` when the machine has not so much.
    fn new(limit_bytes: u64, ahead_bytes: u64, wanted: &SyncSender<Piece>) -> Option<Self> {
        let memory = Arc::new(Mapping::new(usize::try_from(limit_bytes).ok()?)?);
        Some(Self { memory, used_bytes: 0, limit_bytes, ready_bytes: 0, ahead_bytes, wanted: wanted.clone() })
    }

    /// A place for so many bytes; `None` when there is no room.
    fn take(&mut self, len: usize) -> Option<u64> {
        let at = self.used_bytes;
        let end = at + len as u64;
        if end > self.limit_bytes {
            return None;
        }
        self.used_bytes = end;
        self.have_ready();
        Some(at)
    }

    /// Asks for the memory beyond what is used. A thread that is behind is not waited for.
    fn have_ready(&mut self) {
        while self.ready_bytes < (self.used_bytes + self.ahead_bytes).min(self.limit_bytes) {
            let (at, step) = (self.ready_bytes, self.ahead_bytes / AHEAD_PIECES);
            let len = step.min(self.limit_bytes - at) as usize;
            let _ = self.wanted.try_send(Piece { memory: self.memory.clone(), at, len });
            self.ready_bytes += step;
        }
    }

    /// Copies what is used.
    fn save(&self, file: &mut impl Write) -> std::io::Result<()> {
        let mut buffer = vec![0; SAVE_BYTES];
        for at in (0..self.used_bytes).step_by(SAVE_BYTES) {
            let len = SAVE_BYTES.min((self.used_bytes - at) as usize);
            self.memory.read(&mut buffer[..len], at)?;
            file.write_all(&buffer[..len])?;
        }
        Ok(())
    }
}

/// Has each piece of memory ready that is asked for; ends with the log.
fn make_ready(asked: &Receiver<Piece>) {
    for Piece { memory, at, len } in asked {
        memory.populate(at, len);
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
