//! Memory for chunks on their way: blocks that are filled once and sent from where they lie, and room for a fixed number of
//! chunks, so that no input can take more.

use std::io::{self, ErrorKind, Read};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Filled at once: enough that a call or a hand-over costs nothing beside the scan, little enough to stay in a core's cache.
pub(crate) const BLOCK_BYTES: usize = 256 << 10;
/// The last row of a chunk makes it longer than was asked for; rows are seldom longer than this.
const ROW_BYTES: u64 = 256 << 10;
/// A chunk begins and ends anywhere in a block.
const BLOCKS_SHARED: u64 = 2;

/// Unused blocks, to be filled again.
#[derive(Default)]
pub(crate) struct Blocks {
    spare: Mutex<Vec<Vec<u8>>>,
}

/// A part of a source. Its memory goes back by itself.
pub(crate) struct Block {
    /// All of it is initialised, once; what counts is in front.
    memory: Vec<u8>,
    used: usize,
    home: Arc<Blocks>,
}

impl Blocks {
    /// An empty one.
    pub(crate) fn take(self: &Arc<Self>) -> Block {
        let spare = locked(&self.spare).pop();
        Block { memory: spare.unwrap_or_else(|| vec![0; BLOCK_BYTES]), used: 0, home: Arc::clone(self) }
    }
}

impl Block {
    /// Reads until it is full or the input ends. What was read before an error counts.
    fn fill(&mut self, input: &mut impl Read) -> io::Result<()> {
        while self.used < self.memory.len() {
            match input.read(&mut self.memory[self.used..]) {
                Ok(0) => break,
                Ok(read) => self.used += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => (),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// What is in it.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.memory[..self.used]
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        locked(&self.home.spare).push(std::mem::take(&mut self.memory));
    }
}

/// The content of a source.
pub(crate) trait Content {
    /// The next block, full but for the last one; none at the end.
    fn next(&mut self) -> io::Result<Option<Block>>;
}

/// What a reader gives, in blocks.
pub(crate) struct Filled<R> {
    input: R,
    blocks: Arc<Blocks>,
    /// Ended the block before.
    failed: Option<io::Error>,
}

impl<R> Filled<R> {
    /// Nothing is read yet.
    pub(crate) fn new(input: R, blocks: &Arc<Blocks>) -> Self {
        Self { input, blocks: Arc::clone(blocks), failed: None }
    }
}

impl<R: Read> Content for Filled<R> {
    fn next(&mut self) -> io::Result<Option<Block>> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let mut block = self.blocks.take();
        if let Err(error) = block.fill(&mut self.input) {
            if block.bytes().is_empty() {
                return Err(error);
            }
            // What came before it counts: its rows are whole.
            self.failed = Some(error);
        }
        Ok((!block.bytes().is_empty()).then_some(block))
    }
}

/// Room for chunks.
pub(crate) struct Pool {
    free: Mutex<Free>,
    back: Condvar,
    blocks_max: usize,
}

struct Free {
    chunks: usize,
    stopped: bool,
}

/// Room for one chunk; it is given back by itself.
pub(crate) struct Room {
    pool: Arc<Pool>,
}

impl Pool {
    /// Room for this number of chunks, each of at least `chunk_bytes`, which take `bytes_max` together. Where that does not do for
    /// chunks of this length each has less room, and chunks lie in files.
    pub(crate) fn new(chunks: usize, chunk_bytes: u64, bytes_max: u64) -> Arc<Self> {
        let block = BLOCK_BYTES as u64;
        let most = bytes_max / chunks as u64 / block;
        let wanted = chunk_bytes.saturating_add(ROW_BYTES).div_ceil(block) + BLOCKS_SHARED;
        let blocks_max = usize::try_from(most.min(wanted).max(1)).unwrap_or(usize::MAX);
        Arc::new(Self { free: Mutex::new(Free { chunks, stopped: false }), back: Condvar::new(), blocks_max })
    }

    /// Room for a chunk, once there is some; none when the load is to stop.
    pub(crate) fn take(self: &Arc<Self>) -> Option<Room> {
        let mut free = locked(&self.free);
        while free.chunks == 0 && !free.stopped {
            free = self.back.wait(free).unwrap_or_else(PoisonError::into_inner);
        }
        if free.stopped {
            return None;
        }
        free.chunks -= 1;
        Some(Room { pool: Arc::clone(self) })
    }

    /// Nothing waits from here on.
    pub(crate) fn stop(&self) {
        locked(&self.free).stopped = true;
        self.back.notify_all();
    }
}

impl Room {
    /// Blocks that a chunk may keep, whole or in part.
    pub(crate) fn blocks_max(&self) -> usize {
        self.pool.blocks_max
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        locked(&self.pool.free).chunks += 1;
        self.pool.back.notify_one();
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Blocks of these bytes, for tests.
#[cfg(test)]
pub(crate) fn blocks_of(bytes: &[u8]) -> Vec<Arc<Block>> {
    let mut content = Filled::new(bytes, &Arc::default());
    std::iter::from_fn(|| content.next().expect("memory can be read")).map(Arc::new).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives a byte at a time, and then an error.
    struct Broken(u8);

    impl Read for Broken {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(1).ok_or(ErrorKind::UnexpectedEof)?;
            into[0] = self.0;
            Ok(1)
        }
    }

    #[test]
    fn blocks_are_full_but_for_the_last() {
        let bytes: Vec<u8> = (0..2 * BLOCK_BYTES + 5).map(|number| number as u8).collect();
        let blocks = blocks_of(&bytes);
        let lengths: Vec<_> = blocks.iter().map(|block| block.bytes().len()).collect();
        assert_eq!(lengths, [BLOCK_BYTES, BLOCK_BYTES, 5]);
        assert!(blocks.iter().flat_map(|block| block.bytes()).eq(&bytes));
    }

    #[test]
    fn what_came_before_an_error_counts() {
        let mut content = Filled::new(Broken(3), &Arc::default());
        assert_eq!(content.next().unwrap().unwrap().bytes(), [2, 1, 0]);
        assert!(content.next().is_err());
    }

    #[test]
    fn a_block_comes_back_with_its_memory_and_empty() {
        let blocks = Arc::new(Blocks::default());
        let mut block = blocks.take();
        block.fill(&mut b"abc".as_slice()).unwrap();
        let at = block.bytes().as_ptr();
        drop(block);
        let mut again = blocks.take();
        assert!(again.bytes().is_empty());
        again.fill(&mut b"d".as_slice()).unwrap();
        assert_eq!((again.bytes(), again.bytes().as_ptr()), (b"d".as_slice(), at));
    }

    #[test]
    fn there_is_room_for_so_many_chunks_and_who_waits_for_more_is_told_to_stop() {
        let pool = Pool::new(2, 10, 1 << 20);
        let kept = (pool.take(), pool.take());
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| pool.take().is_none());
            pool.stop();
            assert!(waiting.join().unwrap());
        });
        drop(kept);
    }

    #[test]
    fn however_many_chunks_there_are_memory_is_bounded() {
        let blocks = |chunks, chunk_bytes| Pool::new(chunks, chunk_bytes, 144 << 20).blocks_max;
        assert_eq!(blocks(5, 8 << 20), 35, "32 of 8 MiB, one for a long row, two that are shared");
        assert_eq!(blocks(5, 1 << 40), 115);
        assert_eq!(blocks(5, 1), 4);
        assert_eq!(blocks(1 << 20, 8 << 20), 1);
    }
}
