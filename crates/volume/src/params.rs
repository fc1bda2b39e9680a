//! What a volume is: limits, accounting and service times, as integers.
//!
//! These are the numbers the model runs on. Where they come from (a catalogue file, a published rule, a fitted twin)
//! is not the model's concern; see `crates/catalog`.

use serde::{Deserialize, Serialize};

/// The parameters of one volume. Everything that can change a completion time is in here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VolumeParams {
    /// Size in bytes; an I/O past it is a bug of the caller.
    pub size_bytes: u64,
    /// I/O units per second, as the provider accounts them. `None` is unlimited.
    pub iops_limit: Option<BucketParams>,
    /// Bytes per second. `None` is unlimited.
    pub throughput_limit: Option<BucketParams>,
    /// I/O credits beside the limit: the rate is then the limit's while they last, and what is earned afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops_credit: Option<CreditParams>,
    /// The same in bytes, beside the throughput limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput_credit: Option<CreditParams>,
    /// How an I/O is turned into accounting units.
    pub accounting: Accounting,
    /// What an accounting unit costs, where that is not one token and the bytes that were asked for.
    #[serde(default, skip_serializing_if = "Cost::is_plain")]
    pub cost: Cost,
    /// How long the device itself takes, apart from any limit.
    pub service_time: ServiceTimeParams,
    /// In which order requests that wait for a limit are granted.
    pub order: Order,
    /// How the blocks of its snapshot come; `None`: they are there from the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_touch: Option<FirstTouchParams>,
    /// How much of the time it has only a part of its limits; `None`: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub degradation: Option<DegradationParams>,
}

/// Periods in which a volume has only a part of its limits, one in each of equal cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DegradationParams {
    /// Parts per million of the time.
    pub of_time_ppm: u32,
    /// The shortest and the longest period; each length between them is as likely.
    pub lasts_ns: [u64; 2],
    /// The least and the most that is left of the limits, in parts per million; each between them is as likely.
    pub left_ppm: [u32; 2],
}

/// How the blocks of a snapshot come to the volume that was made from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FirstTouchParams {
    /// What is fetched at once.
    pub block_bytes: u64,
    /// The rate that all fetches share.
    pub bytes_per_s: u64,
    /// How long a fetch takes at least that a request waits for.
    pub fetch: QuantileTable,
}

/// A token bucket: `rate_per_s` tokens arrive each second, at most `depth_ns` worth of them are kept, but never less
/// than one request and [`crate::CATCH_UP_NS`] of the rate. Starts full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BucketParams {
    /// Tokens per second.
    pub rate_per_s: u64,
    /// Depth of the bucket, in nanoseconds of the rate.
    pub depth_ns: u64,
}

/// Credits that are saved up over hours and spent at a rate above what is earned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreditParams {
    /// Credits earned each second, which is the rate that is left without any.
    pub rate_per_s: u64,
    /// The most that are kept.
    pub capacity: u64,
    /// How many there are when the volume is added, at most `capacity`.
    pub initial: u64,
}

/// What an accounting unit costs.
///
/// Where reads and writes have limits of their own the device's time is what they share: with R reads or W writes per
/// second a read costs W tokens and a write R, of R x W that arrive (both divided by what they have in common).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// Tokens of the IOPS limit for each unit that is read.
    pub read_tokens: u32,
    /// Tokens of the IOPS limit for each unit that is written.
    pub write_tokens: u32,
    /// Whether the throughput limit and its credits charge whole units (HDD volumes: 1 MiB for a random read of 8 KiB)
    /// instead of the bytes that were asked for.
    pub whole_units: bool,
}

/// How many I/O units a request costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accounting {
    /// The largest I/O that counts as one (256 KiB for SSD volumes).
    pub unit_bytes: u64,
    /// Whether physically sequential requests that are outstanding together share a unit.
    pub merge_sequential: bool,
}

/// Service time by operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceTimeParams {
    /// Reads.
    pub read: QuantileTable,
    /// Writes, including what durability costs: a flush is free in this model (DESIGN.md, "Flush").
    pub write: QuantileTable,
}

/// Quantiles of a service time for several request sizes. Between two probabilities and between two sizes the value
/// is interpolated linearly; below the first size and above the last the nearest row is taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuantileTable {
    /// Ascending, the first 0 and the last 1,000,000.
    pub probability_ppm: Vec<u32>,
    /// Ascending by size, at least one.
    pub rows: Vec<QuantileRow>,
}

/// The quantiles of one request size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuantileRow {
    /// Request size in bytes.
    pub size_bytes: u64,
    /// Nanoseconds, ascending, one for each probability.
    pub service_ns: Vec<u64>,
}

/// The order in which waiting requests are granted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// First come, first granted: under saturation every latency is queue depth / IOPS.
    #[default]
    Fifo,
    /// At random, so that under saturation latencies follow a gamma law of shape 2 with that mean.
    Gamma,
}

/// The largest request of an EBS device (`max_sectors_kb` of its NVMe queue).
const REQUEST_BYTES_MIN: u64 = 256 << 10;

impl VolumeParams {
    /// The largest request that a device of this volume takes in one piece: the accounting unit, except where that is
    /// a small one, which is a price and no size of a request.
    pub fn request_bytes(&self) -> u64 {
        self.accounting.unit_bytes.max(REQUEST_BYTES_MIN)
    }

    /// A volume without limits and without service time: what remains is the instrument itself.
    pub fn unlimited(size_bytes: u64) -> Self {
        Self {
            size_bytes,
            iops_limit: None,
            throughput_limit: None,
            iops_credit: None,
            throughput_credit: None,
            accounting: Accounting { unit_bytes: 256 << 10, merge_sequential: true },
            cost: Cost::default(),
            service_time: ServiceTimeParams { read: QuantileTable::constant(0), write: QuantileTable::constant(0) },
            order: Order::Fifo,
            first_touch: None,
            degradation: None,
        }
    }
}

impl Default for Cost {
    /// One token for each unit, and the bytes that were asked for.
    fn default() -> Self {
        Self { read_tokens: 1, write_tokens: 1, whole_units: false }
    }
}

impl Cost {
    /// Whether this is the default, which has no place in a record of parameters.
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }
}

impl DegradationParams {
    /// From one period's cycle to the next one's.
    pub fn cycle_ns(&self) -> u64 {
        let mean_ns = u128::from(self.lasts_ns[0]) / 2 + u128::from(self.lasts_ns[1]) / 2;
        u64::try_from(mean_ns * 1_000_000 / u128::from(self.of_time_ppm.max(1))).unwrap_or(u64::MAX)
    }

    /// The first rule that the parameters break, if any.
    pub fn broken_rule(&self) -> Option<&'static str> {
        let [shortest, longest] = self.lasts_ns;
        if self.of_time_ppm == 0 || shortest == 0 {
            return Some("a period takes some of the time");
        }
        if shortest > longest || self.left_ppm[0] > self.left_ppm[1] {
            return Some("the least comes before the most");
        }
        if self.left_ppm[1] >= 1_000_000 {
            return Some("less than the whole is left");
        }
        if longest > self.cycle_ns() {
            return Some("the longest period fits into a cycle");
        }
        None
    }
}

impl QuantileTable {
    /// Every request takes `service_ns`, whatever its size.
    pub fn constant(service_ns: u64) -> Self {
        let row = QuantileRow { size_bytes: 4096, service_ns: vec![service_ns; 2] };
        Self { probability_ppm: vec![0, 1_000_000], rows: vec![row] }
    }

    /// The first rule that the table breaks, if any: shape, order of probabilities, sizes and quantiles.
    pub fn broken_rule(&self) -> Option<&'static str> {
        let p = &self.probability_ppm;
        if p.len() < 2 || p[0] != 0 || p[p.len() - 1] != 1_000_000 {
            return Some("probabilities run from 0 to 1,000,000");
        }
        if p.windows(2).any(|w| w[0] >= w[1]) {
            return Some("probabilities ascend");
        }
        if self.rows.is_empty() || self.rows.windows(2).any(|w| w[0].size_bytes >= w[1].size_bytes) {
            return Some("there is a row, and rows ascend by size");
        }
        if self.rows.iter().any(|row| row.service_ns.len() != p.len()) {
            return Some("a row has one value for each probability");
        }
        if self.rows.iter().any(|row| row.service_ns.windows(2).any(|w| w[0] > w[1])) {
            return Some("quantiles never descend");
        }
        None
    }
}
