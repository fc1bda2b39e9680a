//! The limit on I/O units per second.
//!
//! Measurements of gp3 and io2 show about one second's worth of provisioned IOPS delivered beyond the rate, once, from a
//! volume at rest (research: fio traces of 2020 and 2026): a bucket one second deep, full at attach.

use crate::bucket::TokenBucket;
use crate::io::Nanos;
use crate::params::BucketParams;

/// The bucket holds at least one unit beside its catch-up credit.
const UNIT: u64 = 1;

/// Grants I/O units at the provisioned rate.
#[derive(Clone, Debug)]
pub struct IopsLimit(Option<TokenBucket>);

impl IopsLimit {
    /// A full bucket, or no limit.
    pub fn new(params: Option<BucketParams>) -> Self {
        Self(params.map(|params| TokenBucket::new(params, UNIT)))
    }

    /// When `units` can be granted, not before `now`.
    pub fn ready_at(&self, units: u32, now: Nanos) -> Nanos {
        self.0.as_ref().map_or(now, |bucket| bucket.ready_at(u64::from(units), now))
    }

    /// Charges `units` at `now`.
    pub fn charge(&mut self, units: u32, now: Nanos) {
        if let Some(bucket) = &mut self.0 {
            bucket.take(u64::from(units), now);
        }
    }

    /// Replaces the limit. A volume that had none starts the new one full.
    pub fn change(&mut self, params: Option<BucketParams>, now: Nanos) {
        change_bucket(&mut self.0, params, UNIT, now);
    }

    /// Sets how full the bucket is.
    pub fn fill(&mut self, level_ppm: u32, now: Nanos) {
        if let Some(bucket) = &mut self.0 {
            bucket.fill(level_ppm, now);
        }
    }
}

/// The one rule for replacing a bucket: keep its level where there was one, else start full.
pub(crate) fn change_bucket(slot: &mut Option<TokenBucket>, params: Option<BucketParams>, request: u64, now: Nanos) {
    match (slot.as_mut(), params) {
        (Some(bucket), Some(params)) => bucket.change(params, now),
        (_, params) => *slot = params.map(|params| TokenBucket::new(params, request)),
    }
}
