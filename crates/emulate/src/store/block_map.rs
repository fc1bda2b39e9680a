//! Which blocks a layer holds: one bit each, set and read without a lock.

use std::alloc::{Layout, alloc_zeroed};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::SeekFrom;
use rustix::io::Errno;

/// The unit of the map, and of every request: the loop device's logical block.
pub(crate) const BLOCK_BYTES: u64 = 4096;

/// Words written or read at once: a page, so that the file stays as sparse as the map.
const WORDS_PER_PAGE: usize = 512;

/// How often a map can grow: twice the modifications that a volume has in a day.
const GROWTHS: usize = 8;

#[derive(Debug)]
pub(crate) struct BlockMap {
    first: Part,
    /// What came to it, each after the one before.
    grown: [OnceLock<Part>; GROWTHS],
}

/// Words in a row, and which pages of them have ever had a bit: an empty map of a large volume is gone through at once.
#[derive(Debug)]
struct Part {
    words: Vec<AtomicU64>,
    /// One bit for each page of words.
    touched: Vec<AtomicU64>,
}

impl Part {
    fn new(words: usize) -> io::Result<Self> {
        Ok(Self { words: zeros(words)?, touched: zeros(words.div_ceil(64 * WORDS_PER_PAGE))? })
    }

    fn hold(&self, index: usize, mask: u64) {
        let (page, bit) = (index / WORDS_PER_PAGE / 64, 1 << (index / WORDS_PER_PAGE % 64));
        // Written once: a line of the cache that all writers share.
        if self.touched[page].load(Ordering::Relaxed) & bit == 0 {
            self.touched[page].fetch_or(bit, Ordering::AcqRel);
        }
        self.words[index].fetch_or(mask, Ordering::AcqRel);
    }

    /// Every word with a bit, and its place.
    fn held_words(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let touched = move |page: &usize| self.touched[page / 64].load(Ordering::Acquire) >> (page % 64) & 1 == 1;
        let pages = (0..self.words.len().div_ceil(WORDS_PER_PAGE)).filter(touched);
        let places = pages.flat_map(move |page| {
            let first = page * WORDS_PER_PAGE;
            first..self.words.len().min(first + WORDS_PER_PAGE)
        });
        places.map(move |place| (place, self.words[place].load(Ordering::Acquire))).filter(|(_, word)| *word != 0)
    }
}

impl BlockMap {
    /// No block held. The memory is zero pages until a bit is set in them.
    pub(crate) fn new(size_bytes: u64) -> io::Result<Self> {
        Ok(Self { first: Part::new(words_of(size_bytes))?, grown: [const { OnceLock::new() }; GROWTHS] })
    }

    /// Makes room for a volume of `size_bytes`, while others use the map. `false` when it has grown too often.
    pub(crate) fn grow(&self, size_bytes: u64) -> bool {
        let missing = words_of(size_bytes).saturating_sub(self.words());
        let free = self.grown.iter().find(|place| place.get().is_none());
        missing == 0 || free.zip(Part::new(missing).ok()).is_some_and(|(place, part)| place.set(part).is_ok())
    }

    fn parts(&self) -> impl Iterator<Item = &Part> {
        std::iter::once(&self.first).chain(self.grown.iter().map_while(OnceLock::get))
    }

    fn words(&self) -> usize {
        self.parts().map(|part| part.words.len()).sum()
    }

    /// The part with a word, and the word's place in it.
    fn place(&self, index: usize) -> Option<(&Part, usize)> {
        if index < self.first.words.len() {
            return Some((&self.first, index));
        }
        let mut rest = index - self.first.words.len();
        for part in self.grown.iter().map_while(OnceLock::get) {
            if rest < part.words.len() {
                return Some((part, rest));
            }
            rest -= part.words.len();
        }
        None
    }

    fn word(&self, index: usize) -> Option<&AtomicU64> {
        self.place(index).map(|(part, place)| &part.words[place])
    }

    /// Every word with a bit, in order: its place, which is its first block / 64, and its bits.
    pub(crate) fn held_words(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let begins = self.parts().scan(0, |end, part| {
            let begin = *end;
            *end += part.words.len();
            Some((begin, part))
        });
        begins.flat_map(|(begin, part)| part.held_words().map(move |(place, word)| (begin + place, word)))
    }

    pub(crate) fn holds(&self, offset: u64) -> bool {
        let block = (offset / BLOCK_BYTES) as usize;
        self.word(block / 64).is_some_and(|word| word.load(Ordering::Acquire) >> (block % 64) & 1 == 1)
    }

    /// The bits of a word.
    pub(crate) fn bits(&self, index: usize) -> u64 {
        self.word(index).map_or(0, |word| word.load(Ordering::Acquire))
    }

    /// How many blocks are held.
    pub(crate) fn held_blocks(&self) -> u64 {
        self.held_words().map(|(_, word)| u64::from(word.count_ones())).sum()
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
            let (part, place) = self.place(word as usize).expect("a block of the volume");
            if held {
                part.hold(place, mask);
            } else {
                part.words[place].fetch_and(!mask, Ordering::AcqRel);
            }
            block = upto;
        }
    }

    /// Writes the map, leaving out pages without a bit.
    pub(crate) fn save(&self, file: &File) -> io::Result<()> {
        file.set_len(self.file_bytes())?;
        let mut last = None;
        for (index, _) in self.held_words() {
            let page = index / WORDS_PER_PAGE;
            if last.replace(page) != Some(page) {
                self.save_page(file, page)?;
            }
        }
        Ok(())
    }

    /// Writes the pages with these words, in order, into the file of the map. Each bit is right by itself, so a page of which only a
    /// part is written is right too.
    pub(crate) fn save_words(&self, file: &File, words: &[usize]) -> io::Result<()> {
        let mut last = None;
        for page in words.iter().map(|index| index / WORDS_PER_PAGE) {
            if last.replace(page) != Some(page) {
                self.save_page(file, page)?;
            }
        }
        Ok(())
    }

    fn save_page(&self, file: &File, page: usize) -> io::Result<()> {
        let first = page * WORDS_PER_PAGE;
        let words = first..self.words().min(first + WORDS_PER_PAGE);
        let bytes: Vec<u8> = words.flat_map(|index| self.bits(index).to_le_bytes()).collect();
        file.write_all_at(&bytes, first as u64 * 8)
    }

    /// Bytes of the file that [`Self::save`] writes.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.words() as u64 * 8
    }

    /// Reads what [`Self::save`] wrote for a layer of this size. Takes the time of what is in the file, not of its length.
    pub(crate) fn load(size_bytes: u64, file: &File) -> io::Result<Self> {
        // Before anything of that size is asked of the machine.
        if file.metadata()?.len() < size_bytes.div_ceil(BLOCK_BYTES).div_ceil(64) * 8 {
            return Err(damaged("its map is shorter than one of a volume of its size"));
        }
        let map = Self::new(size_bytes)?;
        let mut bytes = [0u8; WORDS_PER_PAGE * 8];
        let mut first = 0;
        while let Some(at) = data_from(file, first as u64 * 8)? {
            first = usize::try_from(at / 8).unwrap_or(usize::MAX) / WORDS_PER_PAGE * WORDS_PER_PAGE;
            if first >= map.words() {
                break;
            }
            let part = &mut bytes[..WORDS_PER_PAGE.min(map.words() - first) * 8];
            file.read_exact_at(part, (first * 8) as u64)?;
            for (index, eight) in (first..).zip(part.chunks_exact(8)) {
                let value = u64::from_le_bytes(eight.try_into().expect("eight bytes"));
                if value != 0 {
                    map.first.hold(index, value);
                }
            }
            first += WORDS_PER_PAGE;
        }
        let (blocks, last) = (size_bytes.div_ceil(BLOCK_BYTES), map.words().saturating_sub(1));
        if blocks % 64 != 0 && map.bits(last) >> (blocks % 64) != 0 {
            return Err(damaged("its map has blocks behind its end"));
        }
        Ok(map)
    }
}

/// Where the file has data, from `offset` on; `None` if only a hole is left.
fn data_from(file: &File, offset: u64) -> io::Result<Option<u64>> {
    match rustix::fs::seek(file, SeekFrom::Data(offset)) {
        Ok(at) => Ok(Some(at)),
        Err(Errno::NXIO) => Ok(None),
        // A file system that does not tell holes from data.
        Err(Errno::INVAL | Errno::NOTSUP) if offset < file.metadata()?.len() => Ok(Some(offset)),
        Err(Errno::INVAL | Errno::NOTSUP) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// What an image's files say that cannot be.
pub(crate) fn damaged(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
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
