//! What the host of the model counts: completions, lateness, queue length. All cumulative since the volume was armed.

use hdrhistogram::Histogram;
use pgdyno_volume::{Counters, Op};
use serde::Serialize;

/// Above any latency worth a bucket; longer ones are counted in the last.
const MAX_LATENCY_NS: u64 = 120_000_000_000;
/// Two digits keep a histogram at 60 KiB, so that a sample once a second disturbs nothing.
const SIGNIFICANT_DIGITS: u8 = 2;
/// A release later than this share of the modelled latency is counted as late.
const LATE_SHARE: u64 = 20;

/// One released request, in nanoseconds of the model's time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Released {
    pub(crate) op: Op,
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
}

/// The host's counters.
#[derive(Clone, Debug)]
pub(crate) struct HostStats {
    pub(crate) completed: [u64; 2],
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
    changed_at: u64,
    latency: [Histogram<u64>; 2],
    lateness: [Histogram<u64>; 2],
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
            changed_at: 0,
            latency: [histogram(), histogram()],
            lateness: [histogram(), histogram()],
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
        let latency_ns = request.released_at.saturating_sub(request.submitted_at);
        let lateness_ns = request.released_at.saturating_sub(request.target);
        let i = index(request.op);
        self.completed[i] += 1;
        self.latency_ns[i] += latency_ns;
        self.latency[i].saturating_record(latency_ns);
        self.lateness[i].saturating_record(lateness_ns);
        let modelled_ns = request.done_at - request.submitted_at;
        self.lateness_ns[i] += lateness_ns;
        self.modelled_ns[i] += modelled_ns;
        self.held_ops[i] += u64::from(request.held);
        self.late_ops[i] += u64::from(lateness_ns * LATE_SHARE > modelled_ns);
        self.overrun_ops += u64::from(request.overrun);
    }

    /// Adds the queue length up to `now` to its integral.
    fn integrate(&mut self, now: u64) {
        self.queue_time_ns += u128::from(now.saturating_sub(self.changed_at)) * u128::from(self.in_flight);
        self.changed_at = self.changed_at.max(now);
    }

    /// Counters of model and host as one record.
    pub(crate) fn record(
        &mut self,
        model: &Counters,
        now: u64,
        path_ns: [u64; 2],
        daemon_cpu_ns: u64,
    ) -> CounterRecord {
        self.integrate(now);
        CounterRecord {
            read_ops: self.completed[0],
            write_ops: self.completed[1],
            read_bytes: model.read_bytes,
            write_bytes: model.write_bytes,
            flush_ops: self.flush_ops,
            io_units: model.io_units,
            read_time_ns: self.latency_ns[0],
            write_time_ns: self.latency_ns[1],
            queue_length: self.in_flight,
            queue_length_max: self.in_flight_max,
            queue_time_ns: u64::try_from(self.queue_time_ns).unwrap_or(u64::MAX),
            exceeded_iops_ns: model.exceeded_iops_ns,
            exceeded_throughput_ns: model.exceeded_throughput_ns,
            read_lateness_ns: self.lateness_ns[0],
            write_lateness_ns: self.lateness_ns[1],
            read_modelled_ns: self.modelled_ns[0],
            write_modelled_ns: self.modelled_ns[1],
            late_read_ops: self.late_ops[0],
            late_write_ops: self.late_ops[1],
            overrun_ops: self.overrun_ops,
            refused_ops: self.refused_ops,
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
        }
    }
}

/// One sample of every counter. Reads and writes are counted on completion, as CloudWatch does; bytes on submission.
#[derive(Clone, Debug, Serialize)]
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
    exceeded_iops_ns: u64,
    exceeded_throughput_ns: u64,
    read_lateness_ns: u64,
    write_lateness_ns: u64,
    read_modelled_ns: u64,
    write_modelled_ns: u64,
    late_read_ops: u64,
    late_write_ops: u64,
    overrun_ops: u64,
    refused_ops: u64,
    /// What the path of 8 KiB costs now, and how much earlier than its instant an answer goes out therefore.
    path_read_ns: u64,
    path_write_ns: u64,
    daemon_cpu_ns: u64,
}

/// Distributions as (highest value of the bucket, count).
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Histograms {
    read_latency_ns: Vec<[u64; 2]>,
    write_latency_ns: Vec<[u64; 2]>,
    read_lateness_ns: Vec<[u64; 2]>,
    write_lateness_ns: Vec<[u64; 2]>,
}
