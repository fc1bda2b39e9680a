//! Memory for chunks on their way: a fixed number of buffers, so that no input can take more.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The last row of a chunk makes it longer than was asked for; rows are seldom longer than this.
const ROW_BYTES: u64 = 256 << 10;

/// Buffers that are lent.
pub(crate) struct Pool {
    free: Mutex<Free>,
    back: Condvar,
    buffer_bytes: usize,
}

struct Free {
    buffers: Vec<Vec<u8>>,
    /// How many have not been made yet.
    unmade: usize,
    stopped: bool,
}

/// A lent buffer; it goes back by itself.
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    pool: Arc<Pool>,
}

impl Pool {
    /// As many buffers of together `bytes_max`, for chunks of at least `chunk_bytes`. Where memory does not do for chunks of
    /// that length, buffers are shorter, and chunks lie in files.
    pub(crate) fn new(buffers: usize, chunk_bytes: u64, bytes_max: u64) -> Arc<Self> {
        let most = bytes_max / buffers as u64;
        let buffer_bytes = usize::try_from(most.min(chunk_bytes.saturating_add(ROW_BYTES))).unwrap_or(usize::MAX);
        let free = Free { buffers: Vec::new(), unmade: buffers, stopped: false };
        Arc::new(Self { free: Mutex::new(free), back: Condvar::new(), buffer_bytes })
    }

    /// An empty buffer, once there is one; none when the load is to stop.
    pub(crate) fn take(self: &Arc<Self>) -> Option<Buffer> {
        let mut free = self.lock();
        let bytes = loop {
            if free.stopped {
                return None;
            }
            if let Some(bytes) = free.buffers.pop() {
                break bytes;
            }
            if free.unmade > 0 {
                free.unmade -= 1;
                break Vec::new();
            }
            free = self.back.wait(free).unwrap_or_else(PoisonError::into_inner);
        };
        Some(Buffer { bytes, pool: Arc::clone(self) })
    }

    /// Nobody waits from here on.
    pub(crate) fn stop(&self) {
        self.lock().stopped = true;
        self.back.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Free> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Buffer {
    /// Appends, and says whether there was room.
    pub(crate) fn append(&mut self, more: &[u8]) -> bool {
        if self.bytes.len() + more.len() > self.pool.buffer_bytes {
            return false;
        }
        if self.bytes.capacity() == 0 {
            self.bytes.reserve_exact(self.pool.buffer_bytes);
        }
        self.bytes.extend_from_slice(more);
        true
    }

    /// What is in it.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        self.pool.lock().buffers.push(bytes);
        self.pool.back.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_comes_back_with_its_memory_and_empty() {
        let pool = Pool::new(1, 10, 1 << 20);
        let mut buffer = pool.take().unwrap();
        assert!(buffer.append(b"abc"));
        let at = buffer.bytes().as_ptr();
        drop(buffer);
        let mut again = pool.take().unwrap();
        assert!(again.append(b"d"));
        assert_eq!((again.bytes(), again.bytes().as_ptr()), (b"d".as_slice(), at));
        assert!(!again.append(&vec![0; ROW_BYTES as usize + 10]), "no longer than it was made");
    }

    #[test]
    fn who_waits_for_a_buffer_is_told_to_stop() {
        let pool = Pool::new(1, 10, 1 << 20);
        let kept = pool.take();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| pool.take().is_none());
            pool.stop();
            assert!(waiting.join().unwrap());
        });
        drop(kept);
    }

    #[test]
    fn however_many_there_are_memory_is_bounded() {
        assert_eq!(Pool::new(512, 1 << 40, 1 << 20).buffer_bytes, (1 << 20) / 512);
    }
}
