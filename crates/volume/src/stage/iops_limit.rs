//! The limit on I/O units per second.
//!
//! Measurements of gp3 and io2 show about one second's worth of provisioned IOPS delivered beyond the rate, once, from a
//! volume at rest (research: fio traces of 2020 and 2026): a bucket one second deep, full at attach.

use crate::bucket::TokenBucket;
use crate::io::Nanos;
use crate::params::BucketParams;

/// Grants I/O units at the provisioned rate.
#[derive(Clone, Debug)]
pub struct IopsLimit {
    bucket: Option<TokenBucket>,
    /// Tokens of the dearest unit: the bucket holds at least one, beside its catch-up credit.
    unit_tokens: u64,
}

impl IopsLimit {
    /// A full bucket, or no limit.
    pub fn new(params: Option<BucketParams>, unit_tokens: u64) -> Self {
        Self { bucket: params.map(|params| TokenBucket::new(params, unit_tokens)), unit_tokens }
    }

    /// When `tokens` can be granted, not before `now`.
    pub fn ready_at(&self, tokens: u64, now: Nanos) -> Nanos {
        self.bucket.as_ref().map_or(now, |bucket| bucket.ready_at(tokens, now))
    }

    /// Charges `tokens` at `now`.
    pub fn charge(&mut self, tokens: u64, now: Nanos) {
        if let Some(bucket) = &mut self.bucket {
            bucket.take(tokens, now);
        }
    }

    /// Replaces the limit. A volume that had none starts the new one full.
    pub fn change(&mut self, params: Option<BucketParams>, now: Nanos) {
        change_bucket(&mut self.bucket, params, self.unit_tokens, now);
    }

    /// Sets how full the bucket is.
    pub fn fill(&mut self, level_ppm: u32, now: Nanos) {
        if let Some(bucket) = &mut self.bucket {
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
