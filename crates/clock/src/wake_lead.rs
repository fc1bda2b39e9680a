//! How much earlier a timer must be set for its thread to be awake in time.

/// How far one wake-up moves the estimate: one that took long hardly moves it, a hundred find it.
const STEP_NS: u64 = 500;
/// The lead is never longer: a thread that is awake uses a CPU, and a machine that takes longer to wake one stalls.
const MAX_NS: u64 = 100_000;
/// Where the estimate starts: a core that idles is awake after about this time.
const START_NS: u64 = 40_000;

/// An estimate of the median time that this machine takes to wake a thread. It changes with the load (an idle core sleeps
/// deeper), so each wake-up brings the estimate a step nearer.
#[derive(Clone, Copy, Debug)]
pub struct WakeLead {
    ns: u64,
    step_ns: u64,
    max_ns: u64,
}

impl WakeLead {
    /// `scale` turns nanoseconds of this machine into those of the clock that the caller uses.
    pub fn new(scale: impl Fn(u64) -> u64) -> Self {
        Self { ns: scale(START_NS), step_ns: scale(STEP_NS).max(1), max_ns: scale(MAX_NS) }
    }

    /// How much earlier a timer is set.
    #[must_use]
    pub fn ns(&self) -> u64 {
        self.ns
    }

    /// A thread was awake so long after the instant of its timer.
    pub fn woken(&mut self, late_ns: u64) {
        let ns = if late_ns > self.ns { self.ns + self.step_ns } else { self.ns.saturating_sub(self.step_ns) };
        self.ns = ns.min(self.max_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lead_becomes_the_median_and_a_stall_hardly_moves_it() {
        let mut lead = WakeLead::new(|ns| ns);
        for _ in 0..500 {
            [60_000, 70_000, 80_000].into_iter().for_each(|late_ns| lead.woken(late_ns));
        }
        assert!(lead.ns().abs_diff(70_000) <= 2 * STEP_NS, "{}", lead.ns());
        lead.woken(1_000_000_000);
        assert!(lead.ns() <= 72_000);
        (0..1_000).for_each(|_| lead.woken(1_000_000_000));
        assert_eq!(lead.ns(), MAX_NS);
    }
}
