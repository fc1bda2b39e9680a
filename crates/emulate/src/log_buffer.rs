//! The part of the submit log on the data path: a preallocated buffer that another thread writes to the file.
//!
//! The data path never waits for the file: when the buffer is full the log is marked incomplete and stops.

use pgdyno_volume::log::{RECORD_BYTES, Record};

/// Room for 100 ms of 500,000 requests a second, with their grants.
const BUFFER_RECORDS: usize = 100_000;

/// The part that stands on the data path: bytes appended under the lock that orders submits.
#[derive(Debug)]
pub(crate) struct LogBuffer {
    bytes: Vec<u8>,
    full: bool,
}

impl LogBuffer {
    pub(crate) fn new() -> Self {
        Self { bytes: Self::room(), full: false }
    }

    /// An empty buffer that [`Self::swap`] takes.
    pub(crate) fn room() -> Vec<u8> {
        Vec::with_capacity(BUFFER_RECORDS * RECORD_BYTES)
    }

    pub(crate) fn push(&mut self, record: &Record) {
        // One place is kept for the mark that the log ends here.
        if self.full {
            return;
        }
        let last = self.bytes.len() + 2 * RECORD_BYTES > self.bytes.capacity();
        self.full = last;
        self.bytes.extend_from_slice(&if last { Record::Overflow } else { *record }.encode());
    }

    /// Exchanges the filled buffer for `empty`; both keep their memory. Whether the log has overflowed.
    pub(crate) fn swap(&mut self, empty: &mut Vec<u8>) -> bool {
        std::mem::swap(&mut self.bytes, empty);
        self.full
    }
}
