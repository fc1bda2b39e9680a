//! What a volume had counted at each full minute of the wall clock, for those who ask later.
//!
//! `CloudWatch` samples a volume once a minute and keeps the samples. Here no thread has to wake for that: between two
//! requests nothing is counted, so the first thread that comes after a minute has passed takes its sample, and it is exact.

use std::collections::VecDeque;

/// Nanoseconds of a minute.
const MINUTE_NS: u64 = 60_000_000_000;
/// A day of minutes and the begin of the first: long enough to see an instance's burst come back (30 minutes of 24 hours),
/// and half a MiB for each volume.
const KEPT: usize = 24 * 60 + 1;

/// Where the minutes of the wall clock end, in the model's time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MinuteClock {
    next_at: u64,
}

impl MinuteClock {
    /// Before the model's time begins no minute ends.
    pub(crate) const STOPPED: Self = Self { next_at: u64::MAX };

    /// Begins at instant 0, which is `unix_ns` on the wall clock.
    pub(crate) fn begin(unix_ns: u64) -> Self {
        Self { next_at: MINUTE_NS - unix_ns % MINUTE_NS }
    }

    /// The end of a minute that has passed at `now` and was not taken before. What is older than a day is left out.
    pub(crate) fn take(&mut self, now: u64) -> Option<u64> {
        let passed = now.checked_sub(self.next_at)? / MINUTE_NS + 1;
        let at = self.next_at + passed.saturating_sub(KEPT as u64) * MINUTE_NS;
        self.next_at = at + MINUTE_NS;
        Some(at)
    }
}

/// A volume's samples of the last day, the oldest first, each with its instant. Asks for memory only when it is made.
#[derive(Debug)]
pub(crate) struct Minutes<T> {
    kept: VecDeque<(u64, T)>,
}

impl<T: Copy> Minutes<T> {
    /// Without samples, and with room for all.
    pub(crate) fn new() -> Self {
        Self { kept: VecDeque::with_capacity(KEPT) }
    }

    /// Keeps the sample of an instant.
    pub(crate) fn keep(&mut self, at: u64, sample: T) {
        if self.kept.len() == KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back((at, sample));
    }

    /// Writes all samples into `target`, which has room: nothing is asked for while the caller holds a lock.
    pub(crate) fn copy_into(&self, target: &mut Vec<(u64, T)>) {
        target.extend(&self.kept);
    }

    /// Room for all samples.
    pub(crate) fn room() -> Vec<(u64, T)> {
        Vec::with_capacity(KEPT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn sampled(clock: &mut MinuteClock, minutes: &mut Minutes<u64>, now: u64) -> Vec<u64> {
        while let Some(at) = clock.take(now) {
            minutes.keep(at, at);
        }
        let mut kept = Minutes::room();
        minutes.copy_into(&mut kept);
        assert!(kept.iter().all(|(at, sample)| at == sample), "each sample is of its minute");
        kept.into_iter().map(|(at, _)| at).collect()
    }

    #[test]
    fn minutes_end_where_the_wall_clock_says() {
        let mut clock = MinuteClock::begin(1_795_265_771 * SECOND); // 12:56:11, so 49 s are left
        let mut minutes = Minutes::new();
        assert!(sampled(&mut clock, &mut minutes, 49 * SECOND - 1).is_empty());
        assert_eq!(sampled(&mut clock, &mut minutes, 49 * SECOND), [49 * SECOND]);
        assert_eq!(sampled(&mut clock, &mut minutes, 200 * SECOND), [49 * SECOND, 109 * SECOND, 169 * SECOND]);
    }

    #[test]
    fn a_day_is_kept_however_long_nobody_came() {
        for days in 1..4 {
            let last = days * KEPT as u64 * MINUTE_NS;
            let kept = sampled(&mut MinuteClock::begin(0), &mut Minutes::new(), last);
            assert_eq!((kept.len(), kept.last()), (KEPT, Some(&last)));
            assert!(kept.windows(2).all(|pair| pair[1] - pair[0] == MINUTE_NS));
        }
    }

    #[test]
    fn no_memory_is_asked_for_after_the_begin() {
        let mut minutes = Minutes::new();
        let capacity = minutes.kept.capacity();
        let mut clock = MinuteClock::begin(0);
        for day in 1..4 {
            sampled(&mut clock, &mut minutes, day * KEPT as u64 * MINUTE_NS);
        }
        assert_eq!(minutes.kept.capacity(), capacity);
    }

    #[test]
    fn a_clock_that_has_not_begun_ends_no_minute() {
        assert_eq!({ MinuteClock::STOPPED }.take(u64::MAX - 1), None);
    }
}
