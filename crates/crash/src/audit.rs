//! How the pages of a PostgreSQL server reached the device: whole in one request, or in parts.
//!
//! What torn-write prevention can promise depends on it, and it needs no luck to see: every page that was written is counted.

use serde::Serialize;

use crate::history::{BLOCK_BYTES, History, Request};

/// A page of data, and a unit of torn-write prevention.
const PAGE_BYTES: u64 = 8192;
const UNIT_BYTES: u64 = 16384;
/// `pd_pagesize_version` of a page of 8 KiB in layout version 4 (PostgreSQL 8.3 and later, storage/bufpage.h).
const SIZE_AND_VERSION: u16 = 0x2004;

/// Pages by how they reached the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Audit {
    /// All pages of 8 KiB that were written.
    pub pages: u64,
    /// Whole in a request of 4, 8 or 16 KiB that is aligned to its size.
    pub whole_in_small: u64,
    /// Whole inside an aligned 16 KiB of a larger or unaligned request.
    pub whole_in_unit: u64,
    /// Whole in one request, but across the boundary of an aligned 16 KiB.
    pub across_units: u64,
    /// In two requests.
    pub across_requests: u64,
}

impl Audit {
    /// Counts the pages of a log. A page is known by its header, so that zeroed pages and the WAL's are not counted.
    pub fn of(history: &History) -> Self {
        let mut found = Self::default();
        for request in history.requests().iter().filter(|request| request.data.is_some()) {
            let first = request.offset / BLOCK_BYTES;
            for block in first..first + request.len / BLOCK_BYTES {
                if history.bytes(request, block).is_some_and(begins_page) {
                    found.count(request, block * BLOCK_BYTES);
                }
            }
        }
        found
    }

    fn count(&mut self, request: &Request, at: u64) {
        self.pages += 1;
        let small = matches!(request.len, 4096 | 8192 | 16384) && request.offset.is_multiple_of(request.len);
        let place = if at + PAGE_BYTES > request.offset + request.len {
            &mut self.across_requests
        } else if small {
            &mut self.whole_in_small
        } else if at / UNIT_BYTES == (at + PAGE_BYTES - 1) / UNIT_BYTES {
            let unit = at / UNIT_BYTES * UNIT_BYTES;
            let inside = request.offset <= unit && unit + UNIT_BYTES <= request.offset + request.len;
            if inside { &mut self.whole_in_unit } else { &mut self.across_units }
        } else {
            &mut self.across_units
        };
        *place += 1;
    }
}

/// Whether a block is the first half of a page: its header says the size and the version, and its places are in order.
fn begins_page(bytes: &[u8]) -> bool {
    let short = |at: usize| u64::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
    let (lower, upper, special) = (short(12), short(14), short(16));
    short(18) == u64::from(SIZE_AND_VERSION)
        && (24..=upper).contains(&lower)
        && upper <= special
        && special <= PAGE_BYTES
}
