//! A token bucket in integers.
//!
//! The level is kept in billionths of a token, so one nanosecond adds exactly `rate_per_s` of them: no remainder is lost
//! and the long-run rate is exact. A cost above the depth is granted from a full bucket and leaves a debt, which keeps
//! the rate right where refusing would block for ever.
//!
//! However shallow a bucket is asked for, it holds one request and [`CATCH_UP_NS`] of the rate: the model runs in exact
//! time, but its host answers late when it is stalled, and what arrives late must still find its tokens.

use crate::io::Nanos;
use crate::params::{BucketParams, CreditParams};

const NANO: i128 = 1_000_000_000;

/// The least that a bucket holds beyond one request, as time at its rate. Stalls of a virtual machine's processor are
/// a few milliseconds; five more or less in a second are half a per cent of it.
pub const CATCH_UP_NS: Nanos = 5_000_000;

/// Tokens that arrive at a fixed rate and are kept up to a depth. Starts full at time 0.
#[derive(Clone, Debug)]
pub struct TokenBucket {
    rate_per_s: i128,
    capacity: i128,
    request: u64,
    level: i128,
    at: Nanos,
}

impl TokenBucket {
    /// A full bucket for requests that cost up to `request` tokens; a larger one leaves a debt.
    /// Panics when the rate is zero: a limit of nothing is no limit that can be waited for.
    pub fn new(params: BucketParams, request: u64) -> Self {
        assert!(params.rate_per_s > 0, "a limit is at least one per second");
        let rate_per_s = i128::from(params.rate_per_s);
        let least = i128::from(request) * NANO + rate_per_s * i128::from(CATCH_UP_NS);
        let capacity = least.max(rate_per_s * i128::from(params.depth_ns));
        Self { rate_per_s, capacity, request, level: capacity, at: 0 }
    }

    /// A bucket that is asked for by what it holds, and not by a time, as of `now`. Panics when nothing is earned or kept.
    pub fn credits(params: CreditParams, now: Nanos) -> Self {
        assert!(params.rate_per_s > 0 && params.capacity > 0, "credits are earned, and kept");
        let capacity = i128::from(params.capacity) * NANO;
        let level = (i128::from(params.initial) * NANO).min(capacity);
        Self { rate_per_s: i128::from(params.rate_per_s), capacity, request: 1, level, at: now }
    }

    /// A bucket that gets as many tokens each second and keeps none, for requests that cost up to `request`.
    pub fn keeping_none(&self, request: u64, now: Nanos) -> Self {
        let rate_per_s = u64::try_from(self.rate_per_s).unwrap_or(u64::MAX);
        Self { at: now, ..Self::new(BucketParams { rate_per_s, depth_ns: 0 }, request) }
    }

    /// The earliest instant, not before `now`, at which `cost` tokens can be taken.
    pub fn ready_at(&self, cost: u64, now: Nanos) -> Nanos {
        let wanted = (i128::from(cost) * NANO).min(self.capacity);
        let missing = wanted - self.level_at(now);
        if missing <= 0 {
            return now;
        }
        let wait = (missing + self.rate_per_s - 1) / self.rate_per_s;
        now.saturating_add(u64::try_from(wait).unwrap_or(u64::MAX))
    }

    /// Takes `cost` tokens at `now`, which the caller has from [`Self::ready_at`].
    pub fn take(&mut self, cost: u64, now: Nanos) {
        self.level = self.level_at(now) - i128::from(cost) * NANO;
        self.at = self.at.max(now);
    }

    /// Changes rate and depth at `now`, keeping what is in the bucket up to the new depth.
    pub fn change(&mut self, params: BucketParams, now: Nanos) {
        let level = self.level_at(now);
        *self = Self { at: self.at.max(now), ..Self::new(params, self.request) };
        self.level = level.min(self.capacity);
    }

    /// Fills the bucket to `level_ppm` millionths of its depth at `now`.
    pub fn fill(&mut self, level_ppm: u32, now: Nanos) {
        self.level = self.capacity * i128::from(level_ppm.min(1_000_000)) / 1_000_000;
        self.at = self.at.max(now);
    }

    /// Whole tokens in the bucket at `now`; negative while a debt is paid off.
    pub fn tokens(&self, now: Nanos) -> i64 {
        i64::try_from(self.level_at(now).div_euclid(NANO)).unwrap_or(i64::MAX)
    }

    /// How full the bucket is at `now`, in parts per million; a debt is empty.
    pub fn level_ppm(&self, now: Nanos) -> u32 {
        u32::try_from(self.level_at(now).max(0) * 1_000_000 / self.capacity).unwrap_or(1_000_000)
    }

    fn level_at(&self, now: Nanos) -> i128 {
        let elapsed = i128::from(now.saturating_sub(self.at));
        (self.level + elapsed * self.rate_per_s).min(self.capacity)
    }
}
