//! The limit on bytes per second, with a bucket of its own beside the one for IOPS (same source, same depth).

use crate::bucket::TokenBucket;
use crate::io::Nanos;
use crate::params::BucketParams;
use crate::stage::iops_limit::change_bucket;

/// Grants bytes at the provisioned rate.
#[derive(Clone, Debug)]
pub struct ThroughputLimit {
    bucket: Option<TokenBucket>,
    /// The largest request that is one I/O unit: the bucket holds at least one, beside its catch-up credit.
    unit_bytes: u64,
}

impl ThroughputLimit {
    /// A full bucket, or no limit.
    pub fn new(params: Option<BucketParams>, unit_bytes: u64) -> Self {
        Self { bucket: params.map(|params| TokenBucket::new(params, unit_bytes)), unit_bytes }
    }

    /// When `bytes` can be granted, not before `now`.
    pub fn ready_at(&self, bytes: u64, now: Nanos) -> Nanos {
        self.bucket.as_ref().map_or(now, |bucket| bucket.ready_at(bytes, now))
    }

    /// Charges `bytes` at `now`.
    pub fn charge(&mut self, bytes: u64, now: Nanos) {
        if let Some(bucket) = &mut self.bucket {
            bucket.take(bytes, now);
        }
    }

    /// Replaces the limit. A volume that had none starts the new one full.
    pub fn change(&mut self, params: Option<BucketParams>, now: Nanos) {
        change_bucket(&mut self.bucket, params, self.unit_bytes, now);
    }

    /// Sets how full the bucket is.
    pub fn fill(&mut self, level_ppm: u32, now: Nanos) {
        if let Some(bucket) = &mut self.bucket {
            bucket.fill(level_ppm, now);
        }
    }
}
