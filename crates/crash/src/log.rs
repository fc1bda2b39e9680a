//! The write log: what reached the volumes of an instance and what was answered, in one order.
//!
//! A host notes a write when it comes and its answer before that goes out. What was acknowledged is therefore in the log
//! before anyone can know of it. No file is opened here: a host writes the bytes and reads them back.

use serde::{Deserialize, Serialize};

/// First bytes of every log; the last one is the version of the format and of the draws.
pub const MAGIC: [u8; 8] = *b"pgdwlog\x01";

/// Size of one event in bytes.
pub const EVENT_BYTES: usize = 32;

/// What the device promises about a write that it has answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cache {
    /// It is durable.
    #[default]
    None,
    /// It is durable once a flush that came after its answer is answered.
    Volatile,
}

/// A volume of the log. Its number is its place among them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedVolume {
    /// The name it was attached by.
    pub name: String,
    /// Its specification.
    pub spec: String,
    /// Its size.
    pub size_bytes: u64,
    /// What it promises.
    pub cache: Cache,
}

/// What a log says about itself, before its events and its data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The volumes.
    pub volumes: Vec<LoggedVolume>,
    /// Number of events.
    pub events: u64,
    /// Bytes of data after them.
    pub data_bytes: u64,
    /// There was no room for what came after the last event.
    pub full: bool,
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, on CLOCK_MONOTONIC. Never less than that of the event before.
    pub at_ns: u64,
    /// What.
    pub what: What,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A write came, of `len` bytes that are at `data` in the log's data.
    Write {
        /// Number of the volume.
        volume: u8,
        /// First byte on the volume.
        offset: u64,
        /// Bytes.
        len: u32,
        /// Where its bytes are.
        data: u64,
    },
    /// A discard came: its range reads as zeros afterwards.
    Discard {
        /// Number of the volume.
        volume: u8,
        /// First byte.
        offset: u64,
        /// Bytes.
        len: u64,
    },
    /// The write or discard of this event is answered.
    Answer {
        /// Number of its event.
        request: u32,
    },
    /// A flush came and is answered.
    Flush {
        /// Number of the volume.
        volume: u8,
    },
    /// A mark from outside, whose text is in the log's data.
    Mark {
        /// Where its text is.
        data: u64,
        /// Bytes of the text.
        len: u32,
    },
}

impl Event {
    /// As bytes.
    pub fn encode(&self) -> [u8; EVENT_BYTES] {
        let (kind, volume, small, first, second) = match self.what {
            What::Write { volume, offset, len, data } => (1, volume, len, offset, data),
            What::Discard { volume, offset, len } => (2, volume, 0, offset, len),
            What::Answer { request } => (3, 0, request, 0, 0),
            What::Flush { volume } => (4, volume, 0, 0, 0),
            What::Mark { data, len } => (5, 0, len, 0, data),
        };
        let mut bytes = [0; EVENT_BYTES];
        bytes[0] = kind;
        bytes[1] = volume;
        bytes[4..8].copy_from_slice(&u32::to_le_bytes(small));
        bytes[8..16].copy_from_slice(&self.at_ns.to_le_bytes());
        bytes[16..24].copy_from_slice(&u64::to_le_bytes(first));
        bytes[24..].copy_from_slice(&u64::to_le_bytes(second));
        bytes
    }

    /// From bytes; `None` when they are no event.
    pub fn decode(bytes: &[u8; EVENT_BYTES]) -> Option<Self> {
        let long = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let small = u32::from_le_bytes(std::array::from_fn(|i| bytes[4 + i]));
        let (volume, first, second) = (bytes[1], long(16), long(24));
        let what = match bytes[0] {
            1 => What::Write { volume, offset: first, len: small, data: second },
            2 => What::Discard { volume, offset: first, len: second },
            3 => What::Answer { request: small },
            4 => What::Flush { volume },
            5 => What::Mark { data: second, len: small },
            _ => return None,
        };
        Some(Self { at_ns: long(8), what })
    }
}

/// A whole log.
#[derive(Clone, Debug)]
pub struct WriteLog {
    header: Header,
    events: Vec<Event>,
    data: Vec<u8>,
}

impl WriteLog {
    /// From its parts. `None` when they do not belong together: an event of a volume, a request or data that is not there.
    pub fn new(header: Header, events: Vec<Event>, data: Vec<u8>) -> Option<Self> {
        let has_data = |at: u64, len: u32| at.checked_add(u64::from(len)).is_some_and(|end| end <= data.len() as u64);
        let has = |volume: u8, offset: u64, len: u64| {
            let size = header.volumes.get(usize::from(volume)).map(|volume| volume.size_bytes);
            let end = offset.checked_add(len);
            size.zip(end).is_some_and(|(size, end)| end <= size)
        };
        let fits = |(number, event): (usize, &Event)| match event.what {
            What::Write { volume, offset, len, data } => has(volume, offset, u64::from(len)) && has_data(data, len),
            What::Discard { volume, offset, len } => has(volume, offset, len),
            What::Answer { request } => (request as usize) < number,
            What::Flush { volume } => has(volume, 0, 0),
            What::Mark { data, len } => has_data(data, len),
        };
        let ordered = events.windows(2).all(|pair| pair[0].at_ns <= pair[1].at_ns);
        let whole = ordered && u32::try_from(events.len()).is_ok() && events.iter().enumerate().all(fits);
        whole.then_some(Self { header, events, data })
    }

    /// What it says about itself.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// What happened, in order.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Bytes that an event has in the log.
    pub fn bytes(&self, at: u64, len: u32) -> &[u8] {
        let at = at as usize;
        &self.data[at..at + len as usize]
    }

    /// The marks, each with the number of its event.
    pub fn marks(&self) -> impl Iterator<Item = (usize, &str)> {
        self.events.iter().enumerate().filter_map(|(number, event)| match event.what {
            What::Mark { data, len } => Some((number, std::str::from_utf8(self.bytes(data, len)).unwrap_or("?"))),
            _ => None,
        })
    }
}
