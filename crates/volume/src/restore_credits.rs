//! Credits of fast snapshot restore: how many volumes can be made from a snapshot that are there from the start.
//!
//! A snapshot for which it is enabled has one bucket for each zone. It is empty at first and fills the more slowly the larger the
//! snapshot is; a volume that is made takes one credit, and below one credit it is made without the benefit.

use crate::io::Nanos;

const HOUR: u128 = 3_600_000_000_000;

/// The rule. A snapshot of S bytes earns `shared_bytes` / S credits an hour, at most `per_hour_max`, and keeps as many as it earns in an
/// hour, but never less than `capacity_min`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestoreCreditParams {
    /// The most that are earned in an hour.
    pub per_hour_max: u64,
    /// Bytes of snapshot that earn one credit in an hour.
    pub shared_bytes: u64,
    /// The least that can be kept.
    pub capacity_min: u64,
}

/// The bucket of one snapshot in one zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestoreCredits {
    /// Parts that are earned each nanosecond.
    per_ns: u128,
    /// Parts of one credit.
    credit: u128,
    capacity: u128,
    level: u128,
    at: Nanos,
}

impl RestoreCredits {
    /// An empty bucket at `now`, of a snapshot of so many bytes, which are not none.
    pub fn empty(params: RestoreCreditParams, snapshot_bytes: u64, now: Nanos) -> Self {
        let bytes = u128::from(snapshot_bytes.max(1));
        let credit = HOUR * bytes;
        let per_ns = (u128::from(params.per_hour_max) * bytes).min(u128::from(params.shared_bytes));
        let capacity = (per_ns * HOUR).max(u128::from(params.capacity_min) * credit);
        Self { per_ns, credit, capacity, level: 0, at: now }
    }

    /// A full one.
    pub fn full(params: RestoreCreditParams, snapshot_bytes: u64, now: Nanos) -> Self {
        let bucket = Self::empty(params, snapshot_bytes, now);
        Self { level: bucket.capacity, ..bucket }
    }

    /// Makes a volume at `now`: whether it is there from the start. Time never goes back.
    pub fn take(&mut self, now: Nanos) -> bool {
        let level = self.level_at(now);
        let enough = level >= self.credit;
        self.level = if enough { level - self.credit } else { level };
        self.at = now;
        enough
    }

    /// Credits at `now`, in millionths.
    pub fn balance_millionths(&self, now: Nanos) -> u64 {
        self.millionths(self.level_at(now))
    }

    /// The most that are kept, in millionths.
    pub fn capacity_millionths(&self) -> u64 {
        self.millionths(self.capacity)
    }

    /// Credits that are earned in an hour, in millionths.
    pub fn per_hour_millionths(&self) -> u64 {
        self.millionths(self.per_ns * HOUR)
    }

    /// When there is a credit, not before `now`.
    pub fn ready_at(&self, now: Nanos) -> Nanos {
        let missing = self.credit.saturating_sub(self.level_at(now));
        now.saturating_add(u64::try_from(missing.div_ceil(self.per_ns)).unwrap_or(Nanos::MAX))
    }

    fn level_at(&self, now: Nanos) -> u128 {
        (self.level + u128::from(now.saturating_sub(self.at)) * self.per_ns).min(self.capacity)
    }

    fn millionths(&self, parts: u128) -> u64 {
        // The parts of a credit are far more than a million, and the product of both would be more than 128 bits.
        u64::try_from(parts / (self.credit / 1_000_000)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;
    const MINUTE: Nanos = 60_000_000_000;
    const RULE: RestoreCreditParams =
        RestoreCreditParams { per_hour_max: 10, shared_bytes: 1024 * GIB, capacity_min: 1 };

    fn bucket(gib: u64) -> RestoreCredits {
        RestoreCredits::empty(RULE, gib * GIB, 0)
    }

    /// "A snapshot with a size of 128 GiB": eight an hour (Amazon EBS user guide, "Volume creation credits").
    #[test]
    fn a_snapshot_of_128_gib_has_its_first_credit_after_seven_and_a_half_minutes_and_eight_at_most() {
        let mut bucket = bucket(128);
        assert_eq!(bucket.ready_at(0), 15 * MINUTE / 2);
        assert!(!bucket.take(15 * MINUTE / 2 - 1));
        assert!(bucket.take(15 * MINUTE / 2));
        assert_eq!(bucket.balance_millionths(15 * MINUTE / 2), 0);
        let later = 100 * 60 * MINUTE;
        assert_eq!(bucket.balance_millionths(later), 8_000_000);
        assert_eq!((0..20).filter(|_| bucket.take(later)).count(), 8);
    }

    #[test]
    fn a_snapshot_of_4_tib_has_its_first_credit_after_four_hours_and_never_two() {
        let mut bucket = bucket(4096);
        assert_eq!(bucket.ready_at(0), 240 * MINUTE);
        assert_eq!(bucket.per_hour_millionths(), 250_000);
        let later = 10_000 * 60 * MINUTE;
        assert_eq!(bucket.balance_millionths(later), 1_000_000);
        assert_eq!([bucket.take(later), bucket.take(later)], [true, false]);
        assert_eq!(bucket.ready_at(later), later + 240 * MINUTE);
    }

    #[test]
    fn a_small_snapshot_has_ten_an_hour_and_the_largest_one_in_sixteen_hours() {
        let small = bucket(1);
        assert_eq!((small.per_hour_millionths(), small.capacity_millionths()), (10_000_000, 10_000_000));
        assert_eq!(small.ready_at(0), 6 * MINUTE);
        let large = bucket(16 << 10);
        assert_eq!((large.ready_at(0), large.capacity_millionths()), (16 * 60 * MINUTE, 1_000_000));
    }

    #[test]
    fn a_full_bucket_gives_what_it_keeps_and_then_what_it_earns() {
        let mut bucket = RestoreCredits::full(RULE, 512 * GIB, MINUTE);
        assert_eq!([bucket.take(MINUTE), bucket.take(MINUTE), bucket.take(MINUTE)], [true, true, false]);
        assert_eq!(bucket.ready_at(MINUTE), 31 * MINUTE);
    }
}
