//! What a file may say of itself. One that says more is damaged, or made to harm: reading it takes no more memory than these limits, and no panic.

use std::io::{self, Read};

use super::{Index, Indexed};
use crate::call::SessionFacts;

/// A frame may inflate to this, or to so many times what is stored of it: indexes of many sessions alike are packed well.
const FRAME_BYTES: u64 = 256 << 20;
const FRAME_TIMES: u64 = 64;
/// And never to more.
const FRAME_BYTES_MAX: u64 = 1 << 31;
/// Frames up to this are inflated at once, in the memory that they claim.
const AT_ONCE_BYTES: usize = 1 << 20;
/// More than packing needs at the level that is used here.
const WINDOW_LOG_MAX: u32 = 24;
/// Texts of the table, together: twice what a writer puts there and one text more.
const TEXT_BYTES_MAX: usize = 256 << 20;
const TEXTS_MAX: usize = 1_000_000;
/// Values of a Bind: their count has 16 bits.
pub(super) const VALUES_MAX: u64 = 65_535;
/// Parts of a COPY's rows of 1 MiB each.
pub(super) const PARTS_MAX: u64 = 1 << 22;
/// Instants and durations in microseconds: the year 9999 is below it, and sums of a few do not overflow.
const US_MAX: u64 = 1 << 58;

pub(super) fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it is damaged")
}

/// Inflates a frame that claims to have `length` bytes.
pub(super) fn inflate(stored: &[u8], length: u64) -> io::Result<Vec<u8>> {
    let limit = FRAME_BYTES.max(FRAME_TIMES.saturating_mul(stored.len() as u64)).min(FRAME_BYTES_MAX);
    let length = usize::try_from(length).ok().filter(|length| *length as u64 <= limit).ok_or_else(damaged)?;
    let found = if length <= AT_ONCE_BYTES {
        zstd::bulk::decompress(stored, length)?
    } else {
        // The memory grows with what comes, whatever is claimed.
        let mut decoder = zstd::stream::read::Decoder::with_buffer(stored)?;
        decoder.window_log_max(WINDOW_LOG_MAX)?;
        let mut found = Vec::new();
        decoder.take(length as u64 + 1).read_to_end(&mut found)?;
        found
    };
    if found.len() == length { Ok(found) } else { Err(damaged()) }
}

/// An instant.
pub(super) fn instant(us: i64) -> io::Result<i64> {
    if us.unsigned_abs() <= US_MAX { Ok(us) } else { Err(damaged()) }
}

/// A duration.
pub(super) fn duration(us: u64) -> io::Result<u64> {
    if us <= US_MAX { Ok(us) } else { Err(damaged()) }
}

/// What is said of a session.
pub(super) fn facts(facts: &SessionFacts) -> io::Result<()> {
    instant(facts.begin_us)?;
    instant(facts.end_us)?;
    duration(facts.calls).map(|_| ())
}

/// What is said of a whole file.
pub(super) fn index(index: &Index) -> io::Result<()> {
    // Instants of the years 1970 to 9999.
    let years = 0..=253_402_300_799_999_999;
    let account = &index.account;
    if account.calls > 0 && !(years.contains(&account.first_us) && years.contains(&account.last_us)) {
        return Err(damaged());
    }
    // A block that comes twice would let a small file be read for ever.
    let in_order = |session: &Indexed| session.blocks.is_sorted_by(|one, next| one < next);
    if !index.sessions.iter().all(in_order) {
        return Err(damaged());
    }
    index.sessions.iter().try_for_each(|session| facts(&session.facts))
}

/// How much of the table of texts was read.
#[derive(Default)]
pub(super) struct TextBudget {
    bytes: usize,
    texts: usize,
}

impl TextBudget {
    /// Takes room for one.
    pub(super) fn take(&mut self, bytes: usize) -> io::Result<()> {
        (self.bytes, self.texts) = (self.bytes.saturating_add(bytes), self.texts + 1);
        if self.bytes <= TEXT_BYTES_MAX && self.texts <= TEXTS_MAX { Ok(()) } else { Err(damaged()) }
    }
}
