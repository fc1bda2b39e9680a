//! The real clock, as the clock-free crates want it: nanoseconds since the beginning of a run; and CPU time.

use std::mem::MaybeUninit;

use pgdyno_clock::{SECOND_NS, monotonic_ns};

/// Counts from one instant of CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    origin_ns: u64,
}

impl Clock {
    /// Begins to count now.
    pub(crate) fn start() -> Self {
        Self { origin_ns: monotonic_ns() }
    }

    /// Counts from an instant of CLOCK_MONOTONIC that may be to come.
    pub(crate) fn from(origin_ns: u64) -> Self {
        Self { origin_ns }
    }

    /// Since the beginning; 0 before it.
    pub(crate) fn now(self) -> u64 {
        monotonic_ns().saturating_sub(self.origin_ns)
    }

    /// The same instant on CLOCK_MONOTONIC, which the probe's samples have too.
    pub(crate) fn monotonic_ns(self, at: u64) -> u64 {
        self.origin_ns + at
    }
}

/// User and system CPU of the whole process, in nanoseconds.
pub(crate) fn process_cpu_ns() -> (u64, u64) {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: getrusage writes to this local and to nothing else; all zeros is a valid rusage.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    let ns = |time: libc::timeval| time.tv_sec as u64 * SECOND_NS + time.tv_usec as u64 * 1000;
    (ns(usage.ru_utime), ns(usage.ru_stime))
}
