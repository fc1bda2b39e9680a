//! The real clock, as nanoseconds since the volume was armed.

use std::sync::atomic::{AtomicU64, Ordering};

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of CLOCK_MONOTONIC.
pub(crate) fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

/// Nanoseconds of CLOCK_REALTIME since 1970: for people, never for arithmetic.
pub(crate) fn realtime_ns() -> u64 {
    let now = clock_gettime(ClockId::Realtime);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

/// CLOCK_MONOTONIC less the instant at which the model's time began.
#[derive(Debug)]
pub(crate) struct Clock {
    zero_ns: AtomicU64,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self { zero_ns: AtomicU64::new(monotonic_ns()) }
    }

    /// Begins the model's time now, and returns the instant on CLOCK_MONOTONIC.
    pub(crate) fn restart(&self) -> u64 {
        let zero_ns = monotonic_ns();
        self.zero_ns.store(zero_ns, Ordering::Release);
        zero_ns
    }

    /// An instant of the model as one of CLOCK_MONOTONIC.
    pub(crate) fn monotonic(&self, instant: u64) -> u64 {
        instant.saturating_add(self.zero_ns.load(Ordering::Acquire))
    }

    pub(crate) fn now(&self) -> u64 {
        monotonic_ns().saturating_sub(self.zero_ns.load(Ordering::Acquire))
    }
}
