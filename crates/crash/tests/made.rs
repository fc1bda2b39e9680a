//! Logs for tests.

use pgdyno_crash::{BLOCK_BYTES, Cache, Event, Header, History, LoggedVolume, What, WriteLog};

/// Blocks of a volume.
pub const BLOCKS: u64 = 24;

/// A log that grows by calls; each event comes 1 ms after the one before.
pub struct Making {
    volumes: Vec<LoggedVolume>,
    events: Vec<Event>,
    data: Vec<u8>,
}

impl Making {
    pub fn new(caches: &[Cache]) -> Self {
        let named = |cache: &Cache| LoggedVolume {
            name: "v".to_owned(),
            spec: "null".to_owned(),
            size_bytes: BLOCKS * BLOCK_BYTES,
            cache: *cache,
        };
        Self { volumes: caches.iter().map(named).collect(), events: Vec::new(), data: Vec::new() }
    }

    fn push(&mut self, what: What) -> u32 {
        self.events.push(Event { at_ns: self.events.len() as u64 * 1_000_000, what });
        self.events.len() as u32 - 1
    }

    /// A write of blocks whose bytes are all `byte`.
    pub fn write(&mut self, volume: u8, block: u64, blocks: u64, byte: u8) -> u32 {
        let data = self.data.len() as u64;
        let len = (blocks * BLOCK_BYTES) as u32;
        self.data.resize(self.data.len() + len as usize, byte);
        self.push(What::Write { volume, offset: block * BLOCK_BYTES, len, data })
    }

    pub fn discard(&mut self, volume: u8, block: u64, blocks: u64) -> u32 {
        self.push(What::Discard { volume, offset: block * BLOCK_BYTES, len: blocks * BLOCK_BYTES })
    }

    pub fn answer(&mut self, request: u32) {
        self.push(What::Answer { request });
    }

    pub fn flush(&mut self, volume: u8) {
        self.push(What::Flush { volume });
    }

    pub fn log(self) -> WriteLog {
        let (events, data_bytes) = (self.events.len() as u64, self.data.len() as u64);
        let header = Header { volumes: self.volumes, events, data_bytes, full: false };
        WriteLog::new(header, self.events, self.data).expect("it belongs together")
    }

    pub fn history(self) -> History {
        History::new(self.log())
    }
}
