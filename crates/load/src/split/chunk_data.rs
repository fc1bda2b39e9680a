//! The bytes of a chunk: in its own file, in memory, or where it is too long for that in a temporary file.

use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use memchr::memchr_iter;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::read::pool::{Block, Room};

/// How much of a chunk is read at once where it is looked through.
pub(crate) const READ_BYTES: usize = 64 << 10;

/// What a chunk is of. Places are bytes from the beginning of the source.
pub(crate) struct ChunkData {
    kept: Kept,
    /// Place of the first byte that is kept.
    first: u64,
    /// Place behind the last.
    end: u64,
}

enum Kept {
    /// In the blocks that were read, without a copy: the last one may be the first of the next chunk, too.
    Memory { room: Room, parts: Vec<Part> },
    /// In the source itself. Sent from there, it costs less than from memory: two copies, and untouched pages.
    Source(Arc<File>),
    /// In a file without a name.
    Temporary(File),
}

/// Bytes of a chunk, where they lie.
pub(crate) enum Slice<'a> {
    Memory(&'a [u8]),
    /// Where they begin in the file, and how many they are.
    File(&'a File, u64, usize),
}

impl Slice<'_> {
    /// How many.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Memory(bytes) => bytes.len(),
            Self::File(_, _, length) => *length,
        }
    }
}

/// What a block has of a chunk.
struct Part {
    block: Arc<Block>,
    range: Range<usize>,
    /// Place of its first byte.
    begin: u64,
}

impl Part {
    fn bytes(&self) -> &[u8] {
        &self.block.bytes()[self.range.clone()]
    }
}

impl ChunkData {
    /// Empty, beginning at a place.
    pub(crate) fn new(room: Room, first: u64) -> Self {
        Self { kept: Kept::Memory { room, parts: Vec::new() }, first, end: first }
    }

    /// The same of a file that is not compressed, and stays where it is.
    pub(crate) fn of_file(file: &Arc<File>, first: u64) -> Self {
        Self { kept: Kept::Source(Arc::clone(file)), first, end: first }
    }

    /// Place behind the last byte.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Appends a part of a block; to a temporary file, when memory does not do.
    pub(crate) fn append(&mut self, block: &Arc<Block>, range: Range<usize>) -> io::Result<()> {
        let more = &block.bytes()[range.clone()];
        match &mut self.kept {
            Kept::Memory { room, parts } if parts.len() < room.blocks_max() => {
                parts.push(Part { block: Arc::clone(block), range, begin: self.end });
            }
            // The blocks and the room go back.
            Kept::Memory { parts, .. } => self.kept = Kept::Temporary(spilt(parts, more)?),
            Kept::Temporary(file) => file.write_all(more)?,
            Kept::Source(_) => (),
        }
        self.end += more.len() as u64;
        Ok(())
    }

    /// What lies at `begin`, up to `end` and to `most` bytes, and perhaps less; none where nothing is kept.
    pub(crate) fn slice(&self, begin: u64, end: u64, most: usize) -> Option<Slice<'_>> {
        let length = self.length(begin, end, most);
        if length == 0 {
            return None;
        }
        Some(match &self.kept {
            Kept::Memory { parts, .. } => {
                let part = part_at(parts, begin)?;
                let rest = &part.bytes()[offset(part.begin, begin)..];
                Slice::Memory(&rest[..rest.len().min(length)])
            }
            Kept::Source(file) => Slice::File(file, begin, length),
            Kept::Temporary(file) => Slice::File(file, begin.saturating_sub(self.first), length),
        })
    }

    /// Appends to `out` what lies at `begin`, up to `end` and to `most` bytes. Returns how many bytes that were: none where
    /// nothing is kept.
    pub(crate) fn read(&self, begin: u64, end: u64, most: usize, out: &mut Vec<u8>) -> io::Result<u64> {
        let length = self.length(begin, end, most);
        let at = out.len();
        match &self.kept {
            Kept::Memory { parts, .. } => {
                while out.len() - at < length {
                    let place = begin + (out.len() - at) as u64;
                    let Some(part) = part_at(parts, place) else { break };
                    let rest = &part.bytes()[offset(part.begin, place)..];
                    out.extend_from_slice(&rest[..rest.len().min(length - (out.len() - at))]);
                }
            }
            Kept::Source(file) => {
                out.resize(at + length, 0);
                file.read_exact_at(&mut out[at..], begin)?;
            }
            Kept::Temporary(file) => {
                out.resize(at + length, 0);
                file.read_exact_at(&mut out[at..], begin.saturating_sub(self.first))?;
            }
        }
        Ok((out.len() - at) as u64)
    }

    /// How often a byte stands in it from `begin` to `end`.
    pub(crate) fn count(&self, (begin, end): (u64, u64), byte: u8) -> io::Result<u64> {
        let (mut at, mut found, mut block) = (begin, 0, Vec::new());
        loop {
            block.clear();
            let read = self.read(at, end, READ_BYTES, &mut block)?;
            if read == 0 {
                return Ok(found);
            }
            found += memchr_iter(byte, &block).count() as u64;
            at += read;
        }
    }

    /// How much of what lies at `begin` is kept, up to `end` and to `most` bytes.
    fn length(&self, begin: u64, end: u64, most: usize) -> usize {
        let kept = end.min(self.end).saturating_sub(begin);
        usize::try_from(kept).unwrap_or(usize::MAX).min(most)
    }
}

/// The part that has a place.
fn part_at(parts: &[Part], place: u64) -> Option<&Part> {
    let after = parts.partition_point(|part| part.begin <= place);
    parts.get(after.checked_sub(1)?)
}

fn offset(begin: u64, place: u64) -> usize {
    usize::try_from(place - begin).unwrap_or(usize::MAX)
}

/// Writes what is in memory, and more, to a temporary file.
fn spilt(parts: &[Part], more: &[u8]) -> io::Result<File> {
    let mut file = temporary(&std::env::temp_dir())?;
    for part in parts {
        file.write_all(part.bytes())?;
    }
    file.write_all(more)?;
    Ok(file)
}

/// A file in a folder that has no name, and is gone with its descriptor.
fn temporary(folder: &Path) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
    match rustix::fs::open(folder, flags, Mode::RUSR | Mode::WUSR) {
        Ok(file) => Ok(File::from(file)),
        // Not every file system can.
        Err(Errno::OPNOTSUPP | Errno::ISDIR) => named_for_a_moment(folder),
        Err(error) => Err(error.into()),
    }
}

/// The same where a file must have a name first: one that nobody can guess and so take, and that follows no link.
fn named_for_a_moment(folder: &Path) -> io::Result<File> {
    // The keys of a hasher are random.
    let path = folder.join(format!(".pgdyno-load-{:016x}", RandomState::new().hash_one(std::process::id())));
    let file = File::options().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

/// A body in memory that begins at a place, for tests.
#[cfg(test)]
pub(crate) fn chunk_data_of(bytes: &[u8], first: u64) -> ChunkData {
    let mut body = ChunkData::new(
        crate::read::pool::Pool::new(1, bytes.len() as u64, 64 << 20).take().expect("there is room"),
        first,
    );
    for block in crate::read::pool::blocks_of(bytes) {
        body.append(&block, 0..block.bytes().len()).expect("memory takes it");
    }
    body
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use proptest::prelude::*;

    use super::*;
    use crate::read::pool::{BLOCK_BYTES, Pool, blocks_of};

    /// What is kept from `begin` to `end`, lent piece by piece.
    fn lent(body: &ChunkData, begin: u64, end: u64, most: usize) -> Vec<u8> {
        let (mut found, mut at) = (Vec::new(), begin);
        while let Some(lent) = body.slice(at, end, most) {
            assert!((1..=most).contains(&lent.len()));
            at += lent.len() as u64;
            match lent {
                Slice::Memory(bytes) => found.extend_from_slice(bytes),
                Slice::File(file, place, length) => {
                    let mut bytes = vec![0; length];
                    file.read_exact_at(&mut bytes, place).unwrap();
                    found.extend_from_slice(&bytes);
                }
            }
        }
        found
    }

    #[test]
    fn a_temporary_file_is_its_owners_and_no_planted_name_is_in_its_way() {
        let folder = std::env::temp_dir().join(format!("pgdyno-temporary-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        // What a name of process and number would be, for whoever wants to be there first.
        let planted: Vec<_> =
            (0..64).map(|number| folder.join(format!("pgdyno-load-{}-{number}", std::process::id()))).collect();
        planted.iter().for_each(|path| std::os::unix::fs::symlink("/dev/null", path).unwrap());
        let made = [temporary(&folder), named_for_a_moment(&folder), named_for_a_moment(&folder)];
        let names = std::fs::read_dir(&folder).unwrap().count();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(names, planted.len(), "they have no name any more");
        for file in made {
            let mut file = file.unwrap();
            let facts = file.metadata().unwrap();
            assert_eq!((facts.mode() & 0o777, facts.nlink()), (0o600, 0));
            file.write_all(b"rows").unwrap();
            let mut bytes = [0; 4];
            file.read_exact_at(&mut bytes, 0).unwrap();
            assert_eq!(&bytes, b"rows");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_is_read_or_lent_is_what_was_appended_wherever_it_lies(
            length in 0_usize..6 * BLOCK_BYTES, seed in any::<u32>(), cuts in prop::collection::vec(any::<u32>(), 0..4),
            first in 0_u64..1000, in_source in any::<bool>(), begin in any::<u32>(), most in 1_000_usize..300_000,
        ) {
            let whole: Vec<u8> = (0..length as u32).map(|n| (n ^ seed).wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect();
            let mut original = temporary(&std::env::temp_dir()).unwrap();
            original.write_all(&vec![0; first as usize]).unwrap();
            original.write_all(&whole).unwrap();
            // Room for four blocks: some bodies fit, and some do not.
            let room = Pool::new(1, 1, 1 << 20).take().unwrap();
            let mut body = if in_source { ChunkData::of_file(&Arc::new(original), first) } else { ChunkData::new(room, first) };
            for block in blocks_of(&whole) {
                let mut ends: Vec<usize> = cuts.iter().map(|cut| *cut as usize % block.bytes().len()).collect();
                ends.extend([0, block.bytes().len()]);
                ends.sort_unstable();
                for range in ends.windows(2).filter(|pair| pair[0] < pair[1]) {
                    body.append(&block, range[0]..range[1]).unwrap();
                }
            }
            prop_assert_eq!(body.end(), first + whole.len() as u64);
            let begin = begin as usize % (whole.len() + 1);
            let end = (begin + most).min(whole.len());
            let mut found = b"x".to_vec();
            let count = body.read(first + begin as u64, u64::MAX, most, &mut found).unwrap();
            prop_assert_eq!(count as usize, end - begin);
            prop_assert!(found[1..] == whole[begin..end], "other bytes are read");
            prop_assert!(lent(&body, first + begin as u64, u64::MAX, most) == whole[begin..], "other bytes are lent");
            prop_assert!(lent(&body, first + begin as u64, first + end as u64, most) == whole[begin..end], "up to an end");
        }
    }
}
