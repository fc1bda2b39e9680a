//! The limit on what all volumes of an instance do together.
//!
//! An instance has bandwidth and IOPS to its volumes: a baseline for ever, and where its maximum is higher, that maximum
//! for 30 minutes at least once in 24 hours (Amazon EC2 user guide, "EBS-optimized instances", June 2023). No law of refill
//! is published. Here each of the two is a reserve that holds 30 minutes of what the maximum is above the baseline, is filled
//! at the baseline and drained by use, below a limit at the maximum. So the maximum lasts 30 minutes from full, and the
//! reserve of an idle instance is full again within 24 hours, as is promised, for all types but two of 1,376 (a test of
//! the catalogue).
//!
//! The instance is asked before the volume. Requests of all its volumes pass it in the order in which they came; nothing is
//! published on that order. The device works meanwhile, as behind a volume's own limit.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::bucket::TokenBucket;
use crate::io::{Io, Nanos};
use crate::params::{BucketParams, CreditParams};

/// How long the maximum lasts from a full reserve: 30 minutes.
pub const BURST_S: u64 = 1_800;

/// The largest request that the instance counts as one, the largest that an NVMe volume is sent at once. Whether
/// sequential ones are merged here is not published; they are not.
const REQUEST_BYTES: u64 = 256 << 10;

/// Requests that wait before memory is asked for: many volumes at the 128 of a loop device.
const EXPECTED_DEPTH: usize = 4096;

/// What an instance can do for all its volumes together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstanceLimits {
    /// Requests per second.
    pub iops: InstanceRate,
    /// Bytes per second.
    pub throughput: InstanceRate,
}

/// A baseline and a maximum, per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstanceRate {
    /// Had for ever.
    pub baseline_per_s: u64,
    /// Had while the reserve lasts; not below the baseline.
    pub maximum_per_s: u64,
    /// What is saved up for a moment, in nanoseconds of the maximum.
    pub depth_ns: Nanos,
}

/// What an instance counts, cumulative since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct InstanceCounters {
    /// Requests that passed, split at 256 KiB.
    pub ops: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Time in which the first request in line waited for the instance's IOPS.
    pub exceeded_iops_ns: Nanos,
    /// Time in which it waited for the instance's bandwidth.
    pub exceeded_throughput_ns: Nanos,
    /// Reserve of IOPS, in millionths; `None` where the maximum can be had for ever.
    pub iops_balance_ppm: Option<u32>,
    /// Reserve of bandwidth, in millionths; `None` likewise.
    pub throughput_balance_ppm: Option<u32>,
}

/// A limit at the maximum, and the reserve below it.
#[derive(Clone, Debug)]
struct Rate {
    maximum: TokenBucket,
    reserve: Option<TokenBucket>,
}

/// A request in line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passing {
    /// Index of its volume.
    pub volume: usize,
    pub io: Io,
    pub submitted_at: Nanos,
}

/// The stage: one line of requests, whatever volume they are for.
#[derive(Clone, Debug)]
pub(crate) struct InstanceLimit {
    iops: Rate,
    throughput: Rate,
    line: VecDeque<Passing>,
    /// The last request that passed, or the last change.
    not_before: Nanos,
    counters: InstanceCounters,
}

/// When the first in line can pass, and what it waits for.
struct Gate {
    from: Nanos,
    iops_at: Nanos,
    throughput_at: Nanos,
}

impl InstanceLimit {
    /// Full reserves. Panics when a baseline is zero or above its maximum: catalogues are checked when they are read.
    pub fn new(limits: InstanceLimits) -> Self {
        Self {
            iops: Rate::new(limits.iops, 1),
            throughput: Rate::new(limits.throughput, REQUEST_BYTES),
            line: VecDeque::with_capacity(EXPECTED_DEPTH),
            not_before: 0,
            counters: InstanceCounters::default(),
        }
    }

    /// Takes a request into the line.
    pub fn push(&mut self, passing: Passing) {
        self.line.push_back(passing);
    }

    /// When the first in line passes.
    pub fn next_at(&self) -> Option<Nanos> {
        self.gate().map(|gate| gate.iops_at.max(gate.throughput_at))
    }

    /// Lets the first in line pass, at [`Self::next_at`].
    pub fn pass(&mut self) -> Option<(Nanos, Passing)> {
        let gate = self.gate()?;
        let passing = self.line.pop_front()?;
        let at = gate.iops_at.max(gate.throughput_at);
        let (ops, bytes) = cost(&passing.io);
        self.count_waiting(&gate, at);
        self.iops.take(ops, at);
        self.throughput.take(bytes, at);
        self.counters.ops += ops;
        self.counters.bytes += bytes;
        self.not_before = at;
        Some((at, passing))
    }

    /// Sets how full both reserves are at `now`.
    pub fn fill(&mut self, level_ppm: u32, now: Nanos) {
        if let Some(gate) = self.gate() {
            self.count_waiting(&gate, now);
        }
        self.not_before = self.not_before.max(now);
        for rate in [&mut self.iops, &mut self.throughput] {
            if let Some(reserve) = &mut rate.reserve {
                reserve.fill(level_ppm, now);
            }
        }
    }

    /// Counters with the balances of `now`.
    pub fn counters(&self, now: Nanos) -> InstanceCounters {
        InstanceCounters {
            iops_balance_ppm: self.iops.balance_ppm(now),
            throughput_balance_ppm: self.throughput.balance_ppm(now),
            ..self.counters
        }
    }

    fn gate(&self) -> Option<Gate> {
        let head = self.line.front()?;
        let from = head.submitted_at.max(self.not_before);
        let (ops, bytes) = cost(&head.io);
        Some(Gate {
            from,
            iops_at: self.iops.ready_at(ops, from),
            throughput_at: self.throughput.ready_at(bytes, from),
        })
    }

    fn count_waiting(&mut self, gate: &Gate, until: Nanos) {
        self.counters.exceeded_iops_ns += gate.iops_at.min(until).saturating_sub(gate.from);
        self.counters.exceeded_throughput_ns += gate.throughput_at.min(until).saturating_sub(gate.from);
    }
}

impl Rate {
    fn new(rate: InstanceRate, request: u64) -> Self {
        let InstanceRate { baseline_per_s, maximum_per_s, depth_ns } = rate;
        assert!(0 < baseline_per_s && baseline_per_s <= maximum_per_s, "a baseline is not above its maximum");
        let maximum = TokenBucket::new(BucketParams { rate_per_s: maximum_per_s, depth_ns }, request);
        let capacity = (maximum_per_s - baseline_per_s) * BURST_S;
        let credits = CreditParams { rate_per_s: baseline_per_s, capacity, initial: capacity };
        let reserve = (capacity > 0).then(|| TokenBucket::credits(credits, 0));
        Self { maximum, reserve }
    }

    fn ready_at(&self, cost: u64, from: Nanos) -> Nanos {
        let maximum_at = self.maximum.ready_at(cost, from);
        self.reserve.as_ref().map_or(maximum_at, |reserve| maximum_at.max(reserve.ready_at(cost, from)))
    }

    fn take(&mut self, cost: u64, at: Nanos) {
        self.maximum.take(cost, at);
        if let Some(reserve) = &mut self.reserve {
            reserve.take(cost, at);
        }
    }

    fn balance_ppm(&self, now: Nanos) -> Option<u32> {
        self.reserve.as_ref().map(|reserve| reserve.level_ppm(now))
    }
}

/// Requests of at most 256 KiB, and bytes.
fn cost(io: &Io) -> (u64, u64) {
    let bytes = u64::from(io.len);
    (bytes.div_ceil(REQUEST_BYTES).max(1), bytes)
}
