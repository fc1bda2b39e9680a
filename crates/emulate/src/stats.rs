//! What the host of the model counts: completions, lateness, queue length. All cumulative since the volume was armed.

use hdrhistogram::Histogram;
use pgdyno_volume::{Counters, InstanceCounters, Op};
use serde::Serialize;

/// Above any latency worth a bucket; longer ones are counted in the last.
const MAX_LATENCY_NS: u64 = 120_000_000_000;
/// Two digits keep a histogram at 60 KiB, so that a sample once a second disturbs nothing.
const SIGNIFICANT_DIGITS: u8 = 2;
/// A release later than this share of the modelled latency is counted as late.
const LATE_SHARE: u64 = 20;
/// Bins of a latency in microseconds by powers of two, [0, 1), [1, 2), [2, 4) ...: as many as an EBS volume's NVMe log
/// page has in use, and the last ends above [`MAX_LATENCY_NS`].
const LOG2_BINS: usize = 28;

/// One released request, in nanoseconds of the model's time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Released {
    pub(crate) op: Op,
    pub(crate) len: u32,
    pub(crate) submitted_at: u64,
    /// What the model says.
    pub(crate) done_at: u64,
    /// When the answer should have gone out: `done_at` less the path.
    pub(crate) target: u64,
    pub(crate) released_at: u64,
    /// The answer waited for its instant: it could have gone out earlier.
    pub(crate) held: bool,
    /// The store was slower than the model.
    pub(crate) overrun: bool,
    /// It was answered with an I/O error.
    pub(crate) failed: bool,
}

/// Reads and writes: how many, and how long they took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) ops: [u64; 2],
    pub(crate) ns: [u64; 2],
}

/// Requests that were completed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Completed {
    /// Their modelled time.
    pub(crate) modelled: Totals,
    /// Those whose answer waited for its instant.
    pub(crate) held: [u64; 2],
}

/// The host's counters.
#[derive(Clone, Debug)]
pub(crate) struct HostStats {
    pub(crate) completed: [u64; 2],
    bytes: [u64; 2],
    pub(crate) latency_ns: [u64; 2],
    pub(crate) flush_ops: u64,
    lateness_ns: [u64; 2],
    pub(crate) modelled_ns: [u64; 2],
    pub(crate) held_ops: [u64; 2],
    late_ops: [u64; 2],
    pub(crate) overrun_ops: u64,
    pub(crate) refused_ops: u64,
    in_flight: u64,
    in_flight_max: u64,
    queue_time_ns: u128,
    busy_ns: u64,
    changed_at: u64,
    latency: [Histogram<u64>; 2],
    lateness: [Histogram<u64>; 2],
    latency_log2: [[u64; LOG2_BINS]; 2],
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, MAX_LATENCY_NS, SIGNIFICANT_DIGITS).expect("constant bounds are valid")
}

pub(crate) fn index(op: Op) -> usize {
    match op {
        Op::Read => 0,
        Op::Write => 1,
    }
}

impl HostStats {
    pub(crate) fn new() -> Self {
        Self {
            completed: [0; 2],
            bytes: [0; 2],
            latency_ns: [0; 2],
            flush_ops: 0,
            lateness_ns: [0; 2],
            modelled_ns: [0; 2],
            held_ops: [0; 2],
            late_ops: [0; 2],
            overrun_ops: 0,
            refused_ops: 0,
            in_flight: 0,
            in_flight_max: 0,
            queue_time_ns: 0,
            busy_ns: 0,
            changed_at: 0,
            latency: [histogram(), histogram()],
            lateness: [histogram(), histogram()],
            latency_log2: [[0; LOG2_BINS]; 2],
        }
    }

    pub(crate) fn submitted(&mut self, now: u64) {
        self.integrate(now);
        self.in_flight += 1;
        self.in_flight_max = self.in_flight_max.max(self.in_flight);
    }

    pub(crate) fn released(&mut self, request: &Released, now: u64) {
        self.integrate(now);
        self.in_flight = self.in_flight.saturating_sub(1);
        if request.failed {
            return;
        }
        let latency_ns = request.released_at.saturating_sub(request.submitted_at);
        let lateness_ns = request.released_at.saturating_sub(request.target);
        let i = index(request.op);
        self.completed[i] += 1;
        self.bytes[i] += u64::from(request.len);
        self.latency_ns[i] += latency_ns;
        self.latency[i].saturating_record(latency_ns);
        self.lateness[i].saturating_record(lateness_ns);
        self.latency_log2[i][log2_bin(latency_ns / 1_000)] += 1;
        let modelled_ns = request.done_at - request.submitted_at;
        self.lateness_ns[i] += lateness_ns;
        self.modelled_ns[i] += modelled_ns;
        self.held_ops[i] += u64::from(request.held);
        self.late_ops[i] += u64::from(lateness_ns * LATE_SHARE > modelled_ns);
        self.overrun_ops += u64::from(request.overrun);
    }

    /// Adds the queue length up to `now` to its integral, and the time if there was a queue.
    fn integrate(&mut self, now: u64) {
        let since_ns = now.saturating_sub(self.changed_at);
        self.queue_time_ns += u128::from(since_ns) * u128::from(self.in_flight);
        self.busy_ns += if self.in_flight > 0 { since_ns } else { 0 };
        self.changed_at = self.changed_at.max(now);
    }

    /// Counters of model and host as one record.
    pub(crate) fn record(
        &mut self,
        model: &Counters,
        instance: Option<&InstanceCounters>,
        now: u64,
        path_ns: [u64; 2],
        daemon_cpu_ns: u64,
    ) -> CounterRecord {
        self.integrate(now);
        CounterRecord {
            read_ops: self.completed[0],
            write_ops: self.completed[1],
            read_bytes: self.bytes[0],
            write_bytes: self.bytes[1],
            flush_ops: self.flush_ops,
            io_units: model.io_units,
            read_time_ns: self.latency_ns[0],
            write_time_ns: self.latency_ns[1],
            queue_length: self.in_flight,
            queue_length_max: self.in_flight_max,
            queue_time_ns: u64::try_from(self.queue_time_ns).unwrap_or(u64::MAX),
            busy_ns: self.busy_ns,
            exceeded_iops_ns: model.exceeded_iops_ns,
            exceeded_throughput_ns: model.exceeded_throughput_ns,
            io_credits: model.io_credits,
            throughput_credits_bytes: model.throughput_credits_bytes,
            burst_balance_ppm: model.burst_balance_ppm,
            initialized_ppm: model.initialized_ppm,
            first_touch_blocks: model.initialized_ppm.map(|_| model.first_touch_blocks),
            first_touch_ns: model.initialized_ppm.map(|_| model.first_touch_ns),
            degraded_ns: model.degraded_ns,
            restore_credits_millionths: None,
            restore_credits_most_millionths: None,
            instance_ops: instance.map(|instance| instance.ops),
            instance_bytes: instance.map(|instance| instance.bytes),
            instance_exceeded_iops_ns: instance.map(|instance| instance.exceeded_iops_ns),
            instance_exceeded_throughput_ns: instance.map(|instance| instance.exceeded_throughput_ns),
            instance_iops_balance_ppm: instance.and_then(|instance| instance.iops_balance_ppm),
            instance_throughput_balance_ppm: instance.and_then(|instance| instance.throughput_balance_ppm),
            read_lateness_ns: self.lateness_ns[0],
            write_lateness_ns: self.lateness_ns[1],
            read_modelled_ns: self.modelled_ns[0],
            write_modelled_ns: self.modelled_ns[1],
            late_read_ops: self.late_ops[0],
            late_write_ops: self.late_ops[1],
            overrun_ops: self.overrun_ops,
            refused_ops: self.refused_ops,
            failed_ops: 0,
            path_read_ns: path_ns[0],
            path_write_ns: path_ns[1],
            daemon_cpu_ns,
        }
    }

    pub(crate) fn histograms(&self) -> Histograms {
        let buckets = |histogram: &Histogram<u64>| {
            histogram.iter_recorded().map(|bucket| [bucket.value_iterated_to(), bucket.count_at_value()]).collect()
        };
        Histograms {
            read_latency_ns: buckets(&self.latency[0]),
            write_latency_ns: buckets(&self.latency[1]),
            read_lateness_ns: buckets(&self.lateness[0]),
            write_lateness_ns: buckets(&self.lateness[1]),
            read_latency_us_log2: self.latency_log2[0].to_vec(),
            write_latency_us_log2: self.latency_log2[1].to_vec(),
        }
    }
}

/// One sample of every counter. Reads, writes and their bytes are counted on completion, as `CloudWatch` does.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct CounterRecord {
    read_ops: u64,
    write_ops: u64,
    read_bytes: u64,
    write_bytes: u64,
    flush_ops: u64,
    io_units: u64,
    read_time_ns: u64,
    write_time_ns: u64,
    queue_length: u64,
    queue_length_max: u64,
    queue_time_ns: u64,
    /// Time with at least one request in the volume.
    busy_ns: u64,
    exceeded_iops_ns: u64,
    exceeded_throughput_ns: u64,
    /// Credits left; `None` for a volume without.
    io_credits: Option<u64>,
    throughput_credits_bytes: Option<u64>,
    burst_balance_ppm: Option<u32>,
    /// How much of its snapshot has been fetched, the blocks of it that requests asked for, and the time for which these waited; `None`
    /// for a volume that has its blocks from the start.
    pub(crate) initialized_ppm: Option<u32>,
    first_touch_blocks: Option<u64>,
    first_touch_ns: Option<u64>,
    /// Time in which it had only a part of its limits; `None` for a volume that is never degraded.
    degraded_ns: Option<u64>,
    /// Credits of its snapshot's fast restore, and the most that are kept; `None` without it.
    pub(crate) restore_credits_millionths: Option<u64>,
    pub(crate) restore_credits_most_millionths: Option<u64>,
    /// The instance's counters, which its volumes share; `None` without limits, and without reserves.
    instance_ops: Option<u64>,
    instance_bytes: Option<u64>,
    instance_exceeded_iops_ns: Option<u64>,
    instance_exceeded_throughput_ns: Option<u64>,
    instance_iops_balance_ppm: Option<u32>,
    instance_throughput_balance_ppm: Option<u32>,
    read_lateness_ns: u64,
    write_lateness_ns: u64,
    read_modelled_ns: u64,
    write_modelled_ns: u64,
    late_read_ops: u64,
    late_write_ops: u64,
    overrun_ops: u64,
    refused_ops: u64,
    /// Reads, writes and discards that are answered with an I/O error, counted before the answer: who has seen an error finds it here.
    /// None of them is among the completed.
    pub(crate) failed_ops: u64,
    /// What the path of 8 KiB costs now, and how much earlier than its instant an answer goes out therefore.
    path_read_ns: u64,
    path_write_ns: u64,
    daemon_cpu_ns: u64,
}

/// What the model counts of one member of an array: the pieces of requests that it was given, cumulative.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct MemberRecord {
    /// Pieces that its limits let pass, and the time from when they reached it to their completion, as the model says.
    read_ops: u64,
    write_ops: u64,
    read_time_ns: u64,
    write_time_ns: u64,
    exceeded_iops_ns: u64,
    exceeded_throughput_ns: u64,
}

impl From<Counters> for MemberRecord {
    fn from(counters: Counters) -> Self {
        Self {
            read_ops: counters.granted_read_ops,
            write_ops: counters.granted_write_ops,
            read_time_ns: counters.read_time_ns,
            write_time_ns: counters.write_time_ns,
            exceeded_iops_ns: counters.exceeded_iops_ns,
            exceeded_throughput_ns: counters.exceeded_throughput_ns,
        }
    }
}

/// Distributions as (highest value of the bucket, count).
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Histograms {
    read_latency_ns: Vec<[u64; 2]>,
    write_latency_ns: Vec<[u64; 2]>,
    read_lateness_ns: Vec<[u64; 2]>,
    write_lateness_ns: Vec<[u64; 2]>,
    /// Counts of the bins [0, 1), [1, 2), [2, 4) ... of microseconds: exact, where those above are within one per cent.
    read_latency_us_log2: Vec<u64>,
    write_latency_us_log2: Vec<u64>,
}

/// Which of [`LOG2_BINS`] a latency in microseconds belongs to.
fn log2_bin(us: u64) -> usize {
    ((u64::BITS - us.leading_zeros()) as usize).min(LOG2_BINS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(submitted_at: u64, released_at: u64) -> Released {
        let (done_at, target) = (released_at, 0);
        let (held, overrun, failed) = (true, false, false);
        Released { op: Op::Write, len: 8192, submitted_at, done_at, target, released_at, held, overrun, failed }
    }

    #[test]
    fn a_bin_of_powers_of_two_holds_what_lies_in_it() {
        let bins = [0, 1, 2, 3, 4, 511, 512, 1 << 26, (1 << 27) - 1, u64::MAX].map(log2_bin);
        assert_eq!(bins, [0, 1, 2, 2, 3, 9, 10, 27, 27, 27]);
    }

    #[test]
    fn busy_time_is_that_with_requests_and_the_queue_counts_each_of_them() {
        let mut stats = HostStats::new();
        stats.submitted(1_000);
        stats.submitted(2_000);
        stats.released(&write(1_000, 5_000), 5_000);
        stats.released(&write(2_000, 6_000), 6_000);
        stats.submitted(10_000);
        let record = stats.record(&Counters::default(), None, 11_000, [0; 2], 0);
        assert_eq!(record.busy_ns, 5_000 + 1_000);
        assert_eq!(record.queue_time_ns, 4_000 + 4_000 + 1_000);
        assert_eq!((record.write_ops, record.write_bytes, record.write_time_ns), (2, 2 * 8192, 8_000));
    }

    #[test]
    fn what_failed_is_not_counted_as_done() {
        let mut stats = HostStats::new();
        stats.submitted(1_000);
        stats.submitted(2_000);
        stats.released(&write(1_000, 5_000), 5_000);
        stats.released(&Released { failed: true, ..write(2_000, 6_000) }, 6_000);
        let record = stats.record(&Counters::default(), None, 7_000, [0; 2], 0);
        assert_eq!((record.write_ops, record.write_bytes), (1, 8192));
        assert_eq!((record.write_time_ns, record.queue_length), (4_000, 0));
        let counted: u64 = stats.histograms().write_latency_us_log2.iter().sum();
        assert_eq!(counted, 1, "a failed request has no latency");
    }
}
