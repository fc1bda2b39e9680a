//! Which blocks a layer holds: one bit each, set and read without a lock.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};

use super::BLOCK_BYTES;

/// Words written or read at once: a page, so that the file stays as sparse as the map.
const WORDS_PER_PAGE: usize = 512;

#[derive(Debug)]
pub(crate) struct BlockMap {
    words: Vec<AtomicU64>,
}

impl BlockMap {
    /// No block held. The memory is zero pages until a bit is set in them.
    pub(crate) fn new(size_bytes: u64) -> Self {
        let blocks = size_bytes.div_ceil(BLOCK_BYTES);
        let words = usize::try_from(blocks.div_ceil(64)).expect("a volume's map fits into memory");
        let mut zeros = std::mem::ManuallyDrop::new(vec![0u64; words]);
        // SAFETY: AtomicU64 has the size and alignment of u64; the vector is taken over whole, and only once. Collecting
        // would touch every page of a map that is mostly empty.
        let words =
            unsafe { Vec::from_raw_parts(zeros.as_mut_ptr().cast::<AtomicU64>(), zeros.len(), zeros.capacity()) };
        Self { words }
    }

    pub(crate) fn holds(&self, offset: u64) -> bool {
        let block = (offset / BLOCK_BYTES) as usize;
        self.words.get(block / 64).is_some_and(|word| word.load(Ordering::Acquire) >> (block % 64) & 1 == 1)
    }

    /// How many blocks are held.
    pub(crate) fn held_blocks(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.load(Ordering::Acquire).count_ones())).sum()
    }

    pub(crate) fn holds_all(&self, offset: u64, len: u64) -> bool {
        (offset..offset + len).step_by(BLOCK_BYTES as usize).all(|at| self.holds(at))
    }

    pub(crate) fn set(&self, offset: u64, len: u64, held: bool) {
        let first = offset / BLOCK_BYTES;
        let end = (offset + len).div_ceil(BLOCK_BYTES);
        let mut block = first;
        while block < end {
            let word = block / 64;
            let upto = end.min((word + 1) * 64);
            let count = upto - block;
            let mask = if count == 64 { u64::MAX } else { ((1u64 << count) - 1) << (block % 64) };
            if held {
                self.words[word as usize].fetch_or(mask, Ordering::AcqRel);
            } else {
                self.words[word as usize].fetch_and(!mask, Ordering::AcqRel);
            }
            block = upto;
        }
    }

    /// Writes the map, leaving out pages without a bit.
    pub(crate) fn save(&self, file: &File) -> io::Result<()> {
        file.set_len(self.words.len() as u64 * 8)?;
        let mut bytes = [0u8; WORDS_PER_PAGE * 8];
        for (page, words) in self.words.chunks(WORDS_PER_PAGE).enumerate() {
            let mut any = 0;
            for (i, word) in words.iter().enumerate() {
                let word = word.load(Ordering::Acquire);
                any |= word;
                bytes[i * 8..i * 8 + 8].copy_from_slice(&word.to_le_bytes());
            }
            if any != 0 {
                file.write_all_at(&bytes[..words.len() * 8], (page * WORDS_PER_PAGE * 8) as u64)?;
            }
        }
        Ok(())
    }

    /// Reads what [`Self::save`] wrote for a layer of this size.
    pub(crate) fn load(size_bytes: u64, file: &File) -> io::Result<Self> {
        let map = Self::new(size_bytes);
        let mut bytes = [0u8; WORDS_PER_PAGE * 8];
        for (page, words) in map.words.chunks(WORDS_PER_PAGE).enumerate() {
            let part = &mut bytes[..words.len() * 8];
            file.read_exact_at(part, (page * WORDS_PER_PAGE * 8) as u64)?;
            for (word, eight) in words.iter().zip(part.chunks_exact(8)) {
                let value = u64::from_le_bytes(eight.try_into().expect("eight bytes"));
                if value != 0 {
                    word.store(value, Ordering::Release);
                }
            }
        }
        Ok(map)
    }
}
