//! The capture file.
//!
//! ```text
//! magic, then frames (lengths, kind, zstd): blocks of calls by session, parts of COPY's rows, blocks of texts, checkpoints, the index;
//! then the place of the index
//! ```
//!
//! A session's calls are in blocks, in order, so that a driver reads each session by itself and holds a block of it. A text
//! that comes again is in the table of texts once, and calls name it by its number. A checkpoint says which sessions, blocks and texts
//! came since the one before, and the index where the checkpoints are; both are JSON. A recording that was killed has no index: its
//! checkpoints are found by going through the frames. Nothing that a file says is believed: see `limits`.

mod encode;
mod limits;
mod read;
mod room;
mod write;

use serde::{Deserialize, Serialize};

use crate::account::Account;
use crate::call::SessionFacts;
pub use read::{CaptureFile, Contents, Cursor};
pub use write::Writer;

const MAGIC: &[u8; 16] = b"pgdyno-capture-3";
/// Without checkpoints: the index has all that they have.
const MAGIC_2: &[u8; 16] = b"pgdyno-capture-2";
/// Before rows of COPY were kept. Otherwise it is as the second.
const MAGIC_1: &[u8; 16] = b"pgdyno-capture-1";

/// Kinds of frames, by which a file without an index is gone through.
const PLAIN: u32 = 0;
/// A checkpoint of a log's capture, which is of no use without the index: the log can be read again.
const CHECKPOINT: u32 = 1;
/// A checkpoint of a recording.
const RECORDED: u32 = 2;

/// Bits of a call's first byte.
const NAMED: u8 = 2;
const UNNAMED: u8 = 1;
const DONE: u8 = 1 << 2;
const FAILED: u8 = 2 << 2;
const WITHOUT_VALUES: u8 = 1 << 4;
const CUT: u8 = 1 << 5;
const INLINE: u8 = 1 << 6;
/// A further byte of bits stands behind the values.
const MORE: u8 = 1 << 7;
/// Bits of that one.
const ROWS: u8 = 1;
const ANSWER: u8 = 1 << 1;

/// A session in the index.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Indexed {
    #[serde(flatten)]
    facts: SessionFacts,
    /// Where its blocks are.
    blocks: Vec<u64>,
}

/// What the index holds.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Index {
    account: Account,
    /// Empty in a file with checkpoints, until they were read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    sessions: Vec<Indexed>,
    /// Where blocks of texts are; the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    texts: Vec<u64>,
    /// Where the checkpoints are.
    #[serde(default)]
    checkpoints: Vec<u64>,
}

/// What came since the checkpoint before.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Checkpoint {
    /// Sessions that began, went on or ended, by number.
    sessions: Vec<Delta>,
    texts: Vec<u64>,
    /// What was counted until then; of a recording.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    account: Option<Account>,
}

/// A session in a checkpoint.
#[derive(Debug, Serialize, Deserialize)]
struct Delta {
    number: usize,
    /// As they are by then.
    #[serde(flatten)]
    facts: SessionFacts,
    /// Further ones.
    blocks: Vec<u64>,
}

/// What calls of a session are told from: those before.
#[derive(Default)]
struct Last {
    due_us: i64,
    transaction: u32,
}
