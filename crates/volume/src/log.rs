//! The submit log: what the model was told and what it answered, as bytes.
//!
//! A header names the format, the model and the whole specification; fixed-size records follow in the order in which
//! the lock was held. A grant carries the `done_at` that a replay must meet. No file is opened here: a host writes the
//! bytes and reads them back.

use crate::io::{Change, Effect, Event, Io, IoId, Nanos, Op, VolumeFault, VolumeId};
use crate::params::BucketParams;

/// First bytes of every log; the last one is the version of the format.
pub const MAGIC: [u8; 8] = *b"pgdyno\x00\x01";

/// Size of one record in bytes.
pub const RECORD_BYTES: usize = 48;

/// Bytes of a text in one record.
pub const TEXT_BYTES: usize = RECORD_BYTES - 8;

/// One line of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// A request was submitted.
    Submit {
        /// When.
        now: Nanos,
        /// To which volume.
        volume: VolumeId,
        /// Which request.
        io: Io,
    },
    /// A change was applied.
    Change {
        /// When.
        now: Nanos,
        /// Which.
        change: Change,
    },
    /// The model granted a request.
    Grant {
        /// Which request.
        id: IoId,
        /// When it completes.
        done_at: Nanos,
        /// It ends with an I/O error.
        failing: bool,
    },
    /// A piece of a text, which the next record that is none is about.
    Text {
        /// How many of the bytes are used.
        len: u8,
        /// UTF-8, cut anywhere.
        bytes: [u8; TEXT_BYTES],
    },
    /// The volume of which the text before it is the specification was attached.
    Attach {
        /// When.
        now: Nanos,
    },
    /// A volume became the one of which the text before it is the specification.
    Modify {
        /// When.
        now: Nanos,
        /// Which.
        volume: VolumeId,
    },
    /// The bytes of which the text before it is the list begin to come from the snapshot that a volume was made from.
    Restore {
        /// When.
        now: Nanos,
        /// Which.
        volume: VolumeId,
    },
    /// The log stops here because its writer could not keep up.
    Overflow,
    /// The log is whole: it was closed when its last volume was detached. One without it was cut off.
    End,
}

impl Record {
    /// The record of a grant; other events are not logged, they follow from it.
    pub fn of_event(event: &Event) -> Option<Self> {
        match *event {
            Event::Granted { id, done_at } => Some(Self::Grant { id, done_at, failing: false }),
            Event::Failing { id, done_at } => Some(Self::Grant { id, done_at, failing: true }),
            Event::Done { .. } => None,
        }
    }

    /// A text in as many records as it takes.
    pub fn text(text: &str) -> impl Iterator<Item = Self> + '_ {
        text.as_bytes().chunks(TEXT_BYTES).map(|piece| {
            let mut bytes = [0; TEXT_BYTES];
            bytes[..piece.len()].copy_from_slice(piece);
            Self::Text { len: piece.len() as u8, bytes }
        })
    }

    /// As bytes, little endian: kind, op, volume, length, then five words.
    pub fn encode(&self) -> [u8; RECORD_BYTES] {
        match *self {
            Self::Submit { now, volume, io } => {
                let op = if io.op == Op::Write { 1 } else { 0 };
                pack(1, op, volume.0, io.len, [now, io.id.0, io.offset, 0, 0])
            }
            Self::Change { now, change: Change::Limits { volume, iops_limit, throughput_limit } } => {
                let [iops, throughput] = [iops_limit, throughput_limit]
                    .map(|limit| limit.map_or([0, 0], |limit| [limit.rate_per_s, limit.depth_ns]));
                pack(2, 0, volume.0, 0, [now, iops[0], iops[1], throughput[0], throughput[1]])
            }
            Self::Change { now, change: Change::Credit { volume, level_ppm } } => {
                pack(3, 0, volume.0, level_ppm, [now, 0, 0, 0, 0])
            }
            Self::Change { now, change: Change::InstanceCredit { level_ppm } } => {
                pack(16, 0, 0, level_ppm, [now, 0, 0, 0, 0])
            }
            Self::Change { now, change: Change::Fault { volume, fault } } => {
                let VolumeFault { from, until, share_ppm, .. } = fault;
                let (kind, a, b) = effect_words(fault.effect);
                let op = u8::from(fault.reads) | u8::from(fault.writes) << 1 | kind << 2;
                pack(20, op, volume.0, share_ppm, [now, from, until, a, b])
            }
            Self::Change { now, change: Change::Heal { volume } } => pack(21, 0, volume.0, 0, [now, 0, 0, 0, 0]),
            Self::Change { now, change: Change::Baseline { volume, until } } => {
                pack(23, 0, volume.0, 0, [now, until, 0, 0, 0])
            }
            Self::Grant { id, done_at, failing } => pack(4, u8::from(failing), 0, 0, [done_at, id.0, 0, 0, 0]),
            Self::Overflow => pack(5, 0, 0, 0, [0; 5]),
            Self::End => pack(24, 0, 0, 0, [0; 5]),
            Self::Text { len, bytes } => {
                let mut record = pack(17, len, 0, 0, [0; 5]);
                record[8..].copy_from_slice(&bytes);
                record
            }
            Self::Attach { now } => pack(18, 0, 0, 0, [now, 0, 0, 0, 0]),
            Self::Modify { now, volume } => pack(19, 0, volume.0, 0, [now, 0, 0, 0, 0]),
            Self::Restore { now, volume } => pack(22, 0, volume.0, 0, [now, 0, 0, 0, 0]),
        }
    }

    /// From bytes; `None` when the kind is unknown.
    pub fn decode(bytes: &[u8; RECORD_BYTES]) -> Option<Self> {
        let word = |i: usize| u64::from_le_bytes(bytes[8 + 8 * i..16 + 8 * i].try_into().expect("eight bytes"));
        let volume = VolumeId(u16::from_le_bytes([bytes[2], bytes[3]]));
        let small = u32::from_le_bytes(bytes[4..8].try_into().expect("four bytes"));
        let limit = |rate: u64, depth_ns: u64| (rate > 0).then_some(BucketParams { rate_per_s: rate, depth_ns });
        Some(match bytes[0] {
            1 => {
                let op = if bytes[1] == 1 { Op::Write } else { Op::Read };
                Self::Submit { now: word(0), volume, io: Io { id: IoId(word(1)), op, offset: word(2), len: small } }
            }
            2 => Self::Change {
                now: word(0),
                change: Change::Limits {
                    volume,
                    iops_limit: limit(word(1), word(2)),
                    throughput_limit: limit(word(3), word(4)),
                },
            },
            3 => Self::Change { now: word(0), change: Change::Credit { volume, level_ppm: small } },
            4 => Self::Grant { id: IoId(word(1)), done_at: word(0), failing: bytes[1] == 1 },
            5 => Self::Overflow,
            24 => Self::End,
            16 => Self::Change { now: word(0), change: Change::InstanceCredit { level_ppm: small } },
            17 => {
                let text = bytes[8..].try_into().expect("a text's bytes");
                Self::Text { len: bytes[1].min(TEXT_BYTES as u8), bytes: text }
            }
            18 => Self::Attach { now: word(0) },
            19 => Self::Modify { now: word(0), volume },
            20 => {
                let effect = effect_of(bytes[1] >> 2, word(3), word(4))?;
                let (reads, writes) = (bytes[1] & 1 != 0, bytes[1] & 2 != 0);
                let fault = VolumeFault { from: word(1), until: word(2), reads, writes, share_ppm: small, effect };
                Self::Change { now: word(0), change: Change::Fault { volume, fault } }
            }
            21 => Self::Change { now: word(0), change: Change::Heal { volume } },
            22 => Self::Restore { now: word(0), volume },
            23 => Self::Change { now: word(0), change: Change::Baseline { volume, until: word(1) } },
            _ => return None,
        })
    }
}

/// Puts the pieces of a text together again.
#[derive(Clone, Debug, Default)]
pub struct TextReader(Vec<u8>);

impl TextReader {
    /// Takes a piece.
    pub fn push(&mut self, len: u8, bytes: &[u8; TEXT_BYTES]) {
        self.0.extend_from_slice(&bytes[..usize::from(len).min(TEXT_BYTES)]);
    }

    /// The text so far; the next one begins.
    pub fn take(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.0)).into_owned()
    }
}

/// The number of an effect, and its two words.
fn effect_words(effect: Effect) -> (u8, u64, u64) {
    match effect {
        Effect::Pause => (0, 0, 0),
        Effect::Latency { added_ns } => (1, added_ns, 0),
        Effect::Error { begin, end, once: false } => (2, begin, end),
        Effect::Error { begin, end, once: true } => (3, begin, end),
        Effect::Lose => (4, 0, 0),
    }
}

fn effect_of(kind: u8, a: u64, b: u64) -> Option<Effect> {
    Some(match kind {
        0 => Effect::Pause,
        1 => Effect::Latency { added_ns: a },
        2 | 3 => Effect::Error { begin: a, end: b, once: kind == 3 },
        4 => Effect::Lose,
        _ => return None,
    })
}

fn pack(kind: u8, op: u8, volume: u16, small: u32, words: [u64; 5]) -> [u8; RECORD_BYTES] {
    let mut bytes = [0; RECORD_BYTES];
    bytes[0] = kind;
    bytes[1] = op;
    bytes[2..4].copy_from_slice(&volume.to_le_bytes());
    bytes[4..8].copy_from_slice(&small.to_le_bytes());
    for (i, word) in words.iter().enumerate() {
        bytes[8 + 8 * i..16 + 8 * i].copy_from_slice(&word.to_le_bytes());
    }
    bytes
}
