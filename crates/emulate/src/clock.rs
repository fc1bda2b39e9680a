//! The model's time: the real clock since the instance was armed, slowed by its dilation.
//!
//! This is the one place where a dilated volume differs. The model, the counters and whatever is said of a volume are in
//! the model's time; what the machine itself takes (its path, its wake-ups) is in real time and is converted here.

use std::sync::atomic::{AtomicU64, Ordering};

use pgdyno_clock::{monotonic_ns, realtime_ns};
use pgdyno_host::{Fault, Result};

/// How many real seconds a second of the model takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dilation(u32);

impl Dilation {
    /// Slower than this and a day is not enough for a checkpoint.
    const MAX: u32 = 1_000;

    /// # Errors
    /// A factor of 0, or above [`Self::MAX`].
    pub(crate) fn new(times: u32) -> Result<Self> {
        if (1..=Self::MAX).contains(&times) {
            return Ok(Self(times));
        }
        Err(Fault::new(
            format!("a dilation must be a whole number from 1 to {}, not {times}", Self::MAX),
            "use --dilation 8, or omit it to run in real time",
        ))
    }

    pub(crate) fn times(self) -> u32 {
        self.0
    }
}

/// CLOCK_MONOTONIC less the instant at which the model's time began, slowed.
#[derive(Debug)]
pub(crate) struct Clock {
    zero_ns: AtomicU64,
    /// Real seconds for each second of the model.
    dilation: u64,
}

impl Clock {
    pub(crate) fn start(dilation: Dilation) -> Self {
        Self { zero_ns: AtomicU64::new(monotonic_ns()), dilation: dilation.0.into() }
    }

    /// Begins the model's time now, and returns the instant on CLOCK_MONOTONIC.
    pub(crate) fn restart(&self) -> u64 {
        let zero_ns = monotonic_ns();
        self.zero_ns.store(zero_ns, Ordering::Release);
        zero_ns
    }

    /// An instant of the model as one of CLOCK_MONOTONIC.
    pub(crate) fn monotonic(&self, instant: u64) -> u64 {
        instant.saturating_mul(self.dilation).saturating_add(self.zero_ns.load(Ordering::Acquire))
    }

    pub(crate) fn now(&self) -> u64 {
        self.model_ns(monotonic_ns().saturating_sub(self.zero_ns.load(Ordering::Acquire)))
    }

    /// What takes so long on this machine, in the model's time.
    pub(crate) fn model_ns(&self, real_ns: u64) -> u64 {
        real_ns / self.dilation
    }

    /// The same of what may be negative.
    pub(crate) fn model_delta_ns(&self, real_ns: i64) -> i64 {
        real_ns / i64::try_from(self.dilation).unwrap_or(i64::MAX)
    }

    /// What takes so long in the model's time, on this machine.
    pub(crate) fn real_ns(&self, model_ns: u64) -> u64 {
        model_ns.saturating_mul(self.dilation)
    }

    /// An instant of the model as those who live in its time see it: a clock that ran with theirs from the instant at
    /// which it began, (monotonic, since 1970) in nanoseconds.
    pub(crate) fn seen(&self, instant: u64) -> (u64, u64) {
        let zero_ns = self.zero_ns.load(Ordering::Acquire);
        let began_ns = realtime_ns().saturating_sub(monotonic_ns().saturating_sub(zero_ns));
        (zero_ns.saturating_add(instant), began_ns.saturating_add(instant))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dilated_clock_is_that_many_times_slower_and_its_instants_are_real_ones() {
        let clock = Clock { zero_ns: AtomicU64::new(1_000), dilation: 8 };
        assert_eq!(clock.monotonic(500), 1_000 + 4_000);
        assert_eq!((clock.model_ns(4_007), clock.real_ns(500)), (500, 4_000));
        assert_eq!((clock.model_delta_ns(-4_000), clock.model_delta_ns(4_000)), (-500, 500));
        assert_eq!(clock.seen(7).0, 1_007);
        let (before, now, after) = (monotonic_ns(), clock.now(), monotonic_ns());
        assert!(((before - 1_000) / 8..=(after - 1_000) / 8).contains(&now));
    }

    #[test]
    fn a_dilation_is_a_whole_number_of_times_and_not_a_standstill() {
        for (asked, part) in [(0, "1 to 1000"), (1_001, "1 to 1000")] {
            assert!(Dilation::new(asked).expect_err("out of range").message.contains(part), "{asked}");
        }
        assert_eq!(Dilation::new(8).expect("a dilation"), Dilation(8));
    }
}
