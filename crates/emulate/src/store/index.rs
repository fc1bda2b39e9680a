//! Which of many layers holds a block: looked up, where asking one layer after the other would take the longer the more
//! there are.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, Ordering};

use super::block_map::{BLOCK_BYTES, BlockMap};

/// Blocks whose entries are made together: 16 KiB of memory for 32 MiB of a volume that has anything there.
const CHUNK_BLOCKS: usize = 8192;

/// For each block the newest layer that holds it, by number, plus one; 0 for none. It is written by the thread that freezes
/// the volume, never by one that serves a request.
#[derive(Debug, Default)]
pub(crate) struct Index {
    chunks: Vec<OnceLock<Box<[AtomicU16]>>>,
}

impl Index {
    /// Of no layer, for a volume of `size_bytes`.
    pub(crate) fn new(size_bytes: u64) -> Self {
        let chunks = size_bytes.div_ceil(BLOCK_BYTES * CHUNK_BLOCKS as u64);
        Self { chunks: (0..chunks).map(|_| OnceLock::new()).collect() }
    }

    /// Whether it has room for a volume of `size_bytes`.
    pub(crate) fn covers(&self, size_bytes: u64) -> bool {
        self.chunks.len() as u64 * CHUNK_BLOCKS as u64 * BLOCK_BYTES >= size_bytes
    }

    /// Adds layer `number`, which is newer than those before.
    ///
    /// Others look blocks up meanwhile. They ask this layer before the index, so that it makes no difference to them what the
    /// index says of it already.
    pub(crate) fn add(&self, number: usize, held: &BlockMap) {
        let entry = u16::try_from(number + 1).expect("a stack has fewer layers");
        for (index, mut word) in held.held_words() {
            let first = index * 64;
            let chunk = self.chunks[first / CHUNK_BLOCKS]
                .get_or_init(|| (0..CHUNK_BLOCKS).map(|_| AtomicU16::new(0)).collect());
            while word != 0 {
                let block = first + word.trailing_zeros() as usize;
                chunk[block % CHUNK_BLOCKS].store(entry, Ordering::Release);
                word &= word - 1;
            }
        }
    }

    /// The number of the newest layer that holds the block at `offset`.
    pub(crate) fn owner(&self, offset: u64) -> Option<usize> {
        let block = (offset / BLOCK_BYTES) as usize;
        let entry = self.chunks.get(block / CHUNK_BLOCKS)?.get()?[block % CHUNK_BLOCKS].load(Ordering::Acquire);
        usize::from(entry).checked_sub(1)
    }
}
