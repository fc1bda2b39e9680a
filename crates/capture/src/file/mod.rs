//! The capture file.
//!
//! ```text
//! magic, then frames (length, zstd): blocks of calls by session, parts of COPY's rows, blocks of texts, the index; then the place of the index
//! ```
//!
//! A session's calls are in blocks, in order, so that a driver reads each session by itself and holds a block of it. A text
//! that comes again is in the table of texts once, and calls name it by its number. The index is JSON.

mod read;
mod room;
mod write;

use serde::{Deserialize, Serialize};

use crate::account::Account;
use crate::call::SessionFacts;
pub use read::{CaptureFile, Contents, Cursor};
pub use write::Writer;

const MAGIC: &[u8; 16] = b"pgdyno-capture-2";
/// Before rows of COPY were kept. Otherwise it is the same.
const MAGIC_1: &[u8; 16] = b"pgdyno-capture-1";

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
    sessions: Vec<Indexed>,
    /// Where blocks of texts are.
    texts: Vec<u64>,
}

/// What calls of a session are told from: those before.
#[derive(Default)]
struct Last {
    due_us: i64,
    transaction: u32,
}
