//! Which blocks a layer holds: one bit each, set and read without a lock.

use std::alloc::{Layout, alloc_zeroed};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The unit of the map, and of every request: the loop device's logical block.
pub(crate) const BLOCK_BYTES: u64 = 4096;

/// Words written or read at once: a page, so that the file stays as sparse as the map.
const WORDS_PER_PAGE: usize = 512;

/// How often a map can grow: twice the modifications that a volume has in a day.
const GROWTHS: usize = 8;

#[derive(Debug)]
pub(crate) struct BlockMap {
    words: Vec<AtomicU64>,
    /// What came to it, each after the one before.
    grown: [OnceLock<Vec<AtomicU64>>; GROWTHS],
}

impl BlockMap {
    /// No block held. The memory is zero pages until a bit is set in them.
    pub(crate) fn new(size_bytes: u64) -> io::Result<Self> {
        Ok(Self { words: zeros(words_of(size_bytes))?, grown: [const { OnceLock::new() }; GROWTHS] })
    }

    /// Makes room for a volume of `size_bytes`, while others use the map. `false` when it has grown too often.
    pub(crate) fn grow(&self, size_bytes: u64) -> bool {
        let there = self.words.len() + self.grown.iter().filter_map(OnceLock::get).map(Vec::len).sum::<usize>();
        let missing = words_of(size_bytes).saturating_sub(there);
        let free = self.grown.iter().find(|place| place.get().is_none());
        missing == 0 || free.zip(zeros(missing).ok()).is_some_and(|(place, words)| place.set(words).is_ok())
    }

    fn word(&self, index: usize) -> Option<&AtomicU64> {
        if let Some(word) = self.words.get(index) {
            return Some(word);
        }
        let mut rest = index - self.words.len();
        for words in self.grown.iter().map_while(OnceLock::get) {
            match words.get(rest) {
                Some(word) => return Some(word),
                None => rest -= words.len(),
            }
        }
        None
    }

    /// Every word, in order.
    fn all(&self) -> impl Iterator<Item = &AtomicU64> {
        self.words.iter().chain(self.grown.iter().map_while(OnceLock::get).flatten())
    }

    pub(crate) fn holds(&self, offset: u64) -> bool {
        let block = (offset / BLOCK_BYTES) as usize;
        self.word(block / 64).is_some_and(|word| word.load(Ordering::Acquire) >> (block % 64) & 1 == 1)
    }

    /// How many blocks are held.
    pub(crate) fn held_blocks(&self) -> u64 {
        self.all().map(|word| u64::from(word.load(Ordering::Acquire).count_ones())).sum()
    }

    pub(crate) fn holds_all(&self, offset: u64, len: u64) -> bool {
        (offset..offset + len).step_by(BLOCK_BYTES as usize).all(|at| self.holds(at))
    }

    /// Whether any block is held in a range in whole words of 64 blocks.
    pub(crate) fn holds_any(&self, offset: u64, len: u64) -> bool {
        let word = |bytes: u64| (bytes / BLOCK_BYTES).div_ceil(64) as usize;
        let mut words = word(offset)..word(offset + len);
        words.any(|index| self.word(index).is_some_and(|word| word.load(Ordering::Acquire) != 0))
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
            let bits = self.word(word as usize).expect("a block of the volume");
            if held {
                bits.fetch_or(mask, Ordering::AcqRel);
            } else {
                bits.fetch_and(!mask, Ordering::AcqRel);
            }
            block = upto;
        }
    }

    /// Writes the map, leaving out pages without a bit.
    pub(crate) fn save(&self, file: &File) -> io::Result<()> {
        file.set_len(self.all().count() as u64 * 8)?;
        let mut words = self.all();
        let mut bytes = [0u8; WORDS_PER_PAGE * 8];
        for page in 0.. {
            let (mut any, mut len) = (0, 0);
            for (word, eight) in words.by_ref().take(WORDS_PER_PAGE).zip(bytes.chunks_exact_mut(8)) {
                let word = word.load(Ordering::Acquire);
                any |= word;
                eight.copy_from_slice(&word.to_le_bytes());
                len += 8;
            }
            if len == 0 {
                break;
            }
            if any != 0 {
                file.write_all_at(&bytes[..len], (page * WORDS_PER_PAGE * 8) as u64)?;
            }
        }
        Ok(())
    }

    /// Reads what [`Self::save`] wrote for a layer of this size.
    pub(crate) fn load(size_bytes: u64, file: &File) -> io::Result<Self> {
        let map = Self::new(size_bytes)?;
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

fn words_of(size_bytes: u64) -> usize {
    let blocks = size_bytes.div_ceil(BLOCK_BYTES);
    usize::try_from(blocks.div_ceil(64)).expect("a volume's map fits into memory")
}

/// Words without a bit, whose memory is not touched; an error where there is no room for them.
fn zeros(words: usize) -> io::Result<Vec<AtomicU64>> {
    if words == 0 {
        return Ok(Vec::new());
    }
    let no_room = || io::Error::new(io::ErrorKind::OutOfMemory, "there is no memory for the map of its blocks");
    let layout = Layout::array::<AtomicU64>(words).map_err(|_| no_room())?;
    // SAFETY: the layout is not of size zero, and zero is a valid AtomicU64. The allocation is of exactly `words` of them, by
    // the allocator of a vector, which takes it over. Collecting would touch every page of a map that is mostly empty.
    unsafe {
        let start = alloc_zeroed(layout).cast::<AtomicU64>();
        if start.is_null() { Err(no_room()) } else { Ok(Vec::from_raw_parts(start, words, words)) }
    }
}
