//! What a volume counts, cumulative since it was added, and the credits that it has left.

use crate::io::{Io, Nanos, Op};

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
    /// Reads that the limits let pass and that do not fail.
    pub granted_read_ops: u64,
    /// Writes that the limits let pass and that do not fail.
    pub granted_write_ops: u64,
    /// Time of the granted reads, from when each reached the volume to its completion.
    pub read_time_ns: Nanos,
    /// Time of the granted writes.
    pub write_time_ns: Nanos,
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
    /// Blocks of its snapshot that were fetched because a request asked for them.
    pub first_touch_blocks: u64,
    /// Time for which requests waited for blocks of the snapshot.
    pub first_touch_ns: Nanos,
    /// How much of its snapshot has been fetched, in parts per million, as of the last call; `None` for a volume whose blocks
    /// are there from the start.
    pub initialized_ppm: Option<u32>,
    /// Time in which it had only a part of its limits, as of the last call; `None` for a volume that is never degraded.
    pub degraded_ns: Option<Nanos>,
}

impl Counters {
    /// Counts a request that was submitted.
    pub(crate) fn count(&mut self, io: &Io) {
        let (ops, bytes) = match io.op {
            Op::Read => (&mut self.read_ops, &mut self.read_bytes),
            Op::Write => (&mut self.write_ops, &mut self.write_bytes),
        };
        *ops += 1;
        *bytes += u64::from(io.len);
    }

    /// Counts a request that the limits let pass, and how long the volume has it.
    pub(crate) fn granted(&mut self, op: Op, time_ns: Nanos) {
        let (ops, time) = match op {
            Op::Read => (&mut self.granted_read_ops, &mut self.read_time_ns),
            Op::Write => (&mut self.granted_write_ops, &mut self.write_time_ns),
        };
        *ops += 1;
        *time = time.saturating_add(time_ns);
    }

    /// Of two members of an array: sums, of the time above a limit and of degraded time the longer one, and of the balances the lower
    /// one.
    pub(crate) fn with(self, other: Self) -> Self {
        Self {
            read_ops: self.read_ops + other.read_ops,
            write_ops: self.write_ops + other.write_ops,
            read_bytes: self.read_bytes + other.read_bytes,
            write_bytes: self.write_bytes + other.write_bytes,
            io_units: self.io_units + other.io_units,
            granted_read_ops: self.granted_read_ops + other.granted_read_ops,
            granted_write_ops: self.granted_write_ops + other.granted_write_ops,
            read_time_ns: self.read_time_ns + other.read_time_ns,
            write_time_ns: self.write_time_ns + other.write_time_ns,
            exceeded_iops_ns: self.exceeded_iops_ns.max(other.exceeded_iops_ns),
            exceeded_throughput_ns: self.exceeded_throughput_ns.max(other.exceeded_throughput_ns),
            io_credits: sum(self.io_credits, other.io_credits),
            throughput_credits_bytes: sum(self.throughput_credits_bytes, other.throughput_credits_bytes),
            burst_balance_ppm: self.burst_balance_ppm.into_iter().chain(other.burst_balance_ppm).min(),
            first_touch_blocks: self.first_touch_blocks + other.first_touch_blocks,
            first_touch_ns: self.first_touch_ns + other.first_touch_ns,
            initialized_ppm: self.initialized_ppm.into_iter().chain(other.initialized_ppm).min(),
            degraded_ns: self.degraded_ns.into_iter().chain(other.degraded_ns).max(),
        }
    }

    /// Of an array's members, with the requests as the array had them; what was granted are pieces of them.
    pub(crate) fn under(self, array: Self) -> Self {
        let Self { read_ops, write_ops, read_bytes, write_bytes, .. } = array;
        Self { read_ops, write_ops, read_bytes, write_bytes, ..self }
    }
}

fn sum(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.zip(other).map(|(one, other)| one + other).or(one).or(other)
}
