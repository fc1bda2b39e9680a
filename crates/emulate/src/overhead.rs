//! What the path itself costs, measured at start and taken off every modelled completion.
//!
//! A request spends time on its way in (block layer, loop worker, FUSE) and its answer on the way out. The release is
//! moved forward by that much, so that the application sees the modelled time and not the sum. What is measured at
//! start is then followed while the volume is in use (`follow`).

use serde::Serialize;

use crate::clock::Clock;

/// Nanoseconds of path for one operation: a fixed part and one that grows with the bytes moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct PathCost {
    /// For a request of one block.
    pub(crate) fixed_ns: u64,
    /// For each KiB beyond that, in picoseconds, so that integers are fine enough.
    pub(crate) per_kib_ps: u64,
}

impl PathCost {
    /// The line through two measurements, never negative in either part.
    pub(crate) fn through(small: (u64, u64), large: (u64, u64)) -> Self {
        let ((small_bytes, small_ns), (large_bytes, large_ns)) = (small, large);
        let kib = (large_bytes - small_bytes).max(1024) / 1024;
        Self { fixed_ns: small_ns, per_kib_ps: large_ns.saturating_sub(small_ns) * 1_000 / kib }
    }

    pub(crate) fn ns(&self, bytes: u64) -> u64 {
        self.fixed_ns + bytes / 1024 * self.per_kib_ps / 1_000
    }
}

/// The path of reads and of writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct BaseOverhead {
    pub(crate) read: PathCost,
    pub(crate) write: PathCost,
    /// The part of it that an application waits before the device has its request and after it has answered.
    pub(crate) beside_ns: u64,
}

impl BaseOverhead {
    /// What the machine takes, in the time of the dilated clock.
    pub(crate) fn on(self, clock: &Clock) -> Self {
        let path = |PathCost { fixed_ns, per_kib_ps }| PathCost {
            fixed_ns: clock.model_ns(fixed_ns),
            per_kib_ps: clock.model_ns(per_kib_ps),
        };
        Self { read: path(self.read), write: path(self.write), beside_ns: clock.model_ns(self.beside_ns) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_meets_its_points_and_never_falls() {
        let cost = PathCost::through((4096, 40_000), (4096 + (100 << 10), 90_000));
        assert_eq!(cost.ns(4096), 40_000 + 4 * 500);
        assert_eq!(cost.ns(1 << 20) - cost.ns(0), 1024 * 500);
        let noisy = PathCost::through((4096, 90_000), (262_144, 40_000));
        assert_eq!(noisy.ns(262_144), 90_000);
    }
}
