//! Time as an argument: nothing in this crate reads a clock.

/// Nanoseconds since the beginning of the run; never decreasing.
pub type Nanos = u64;
