//! What a volume counts, cumulative since it was added, and the credits that it has left.

use crate::io::Nanos;

/// Counters of the model itself; a host adds its own (lateness, CPU).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Reads submitted.
    pub read_ops: u64,
    /// Writes submitted.
    pub write_ops: u64,
    /// Bytes of the reads submitted.
    pub read_bytes: u64,
    /// Bytes of the writes submitted.
    pub write_bytes: u64,
    /// I/O units charged, after splitting and merging.
    pub io_units: u64,
    /// Time in which the head of the queue waited for the IOPS limit, up to the last grant.
    pub exceeded_iops_ns: Nanos,
    /// Time in which the head of the queue waited for the throughput limit, up to the last grant.
    pub exceeded_throughput_ns: Nanos,
    /// I/O credits left, as of the last call; `None` for a volume without.
    pub io_credits: Option<u64>,
    /// Throughput credits left, in bytes, as of the last call; `None` for a volume without.
    pub throughput_credits_bytes: Option<u64>,
    /// What is left of the credits in parts per million of the most that is kept, the lower one where there are two
    /// kinds: CloudWatch's `BurstBalance`.
    pub burst_balance_ppm: Option<u32>,
}
