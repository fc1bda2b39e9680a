//! A buffer that O_DIRECT accepts.

use std::ops::{Deref, DerefMut};

use super::BLOCK_BYTES;

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
