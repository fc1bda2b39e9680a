//! Where values of a capture are, and which statements take values of a sequence.

use pgdyno_capture::{Call, Ending};

/// Where a key occurs first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct At {
    pub due_us: i64,
    pub session: usize,
    pub call: u32,
}

/// A statement that takes the next value of a sequence.
pub(crate) struct Use {
    pub at: At,
    pub transaction: u32,
    /// When it was answered in production.
    pub ended_us: i64,
    /// What it took, where that is known.
    pub key: Option<u64>,
    /// The column of its answer that has the value; none where it has not.
    pub returned: Option<String>,
}

/// When production answered a statement, microseconds since 1970; when it was due, where that is not known.
pub(crate) fn ended_us(call: &Call) -> i64 {
    let took_us = if let Ending::Done(us) = call.ending { us } else { 0 };
    call.due_us.saturating_add_unsigned(took_us)
}
