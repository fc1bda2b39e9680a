//! A buffer that O_DIRECT accepts.

use std::ops::{Deref, DerefMut};

use super::block_map::BLOCK_BYTES;

/// Bytes that begin on a block boundary: a vector with room to shift.
#[derive(Debug)]
pub(crate) struct AlignedBuffer {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl AlignedBuffer {
    pub(crate) fn new(len: usize) -> Self {
        let bytes = vec![0u8; len + BLOCK_BYTES as usize];
        let start = bytes.as_ptr().align_offset(BLOCK_BYTES as usize);
        Self { bytes, start, len }
    }

    /// A buffer that has its memory from the beginning, so that no thread waits for memory later.
    pub(crate) fn resident(len: usize) -> Self {
        let mut buffer = Self::new(len);
        for page in buffer.chunks_mut(BLOCK_BYTES as usize) {
            // SAFETY: the chunk has a first byte. Volatile, or the write of a zero where a zero is known would be left out.
            unsafe { page.as_mut_ptr().write_volatile(0) };
        }
        buffer
    }
}

impl Deref for AlignedBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.len]
    }
}

impl DerefMut for AlignedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.len]
    }
}
