//! What to drive, and how: one JSON document on standard input.

use pgdyno_connection::{Fault, Server};
use pgdyno_workload::{Pattern, Protocol, Refusal, Segment, Spacing, Think, Workload, WorkloadSpec};
use serde::Deserialize;

const NS_PER_MS: u64 = 1_000_000;

/// A run of the driver. It may hold a password: it is read from standard input and never written.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriveSpec {
    /// Where the server is; none for idle clients, and to check what is asked.
    #[serde(default)]
    pub server: Option<Server>,
    /// What clients ask for.
    pub workload: WorkloadSpec,
    /// Connections.
    pub clients: u32,
    /// Threads that serve them.
    #[serde(default = "one")]
    pub threads: u32,
    /// Which part of a larger load this is; none where it is the whole.
    #[serde(default)]
    pub share: Option<ShareSpec>,
    /// When it begins.
    #[serde(default)]
    pub begin: BeginSpec,
    /// How statements are sent; unless it is said, as the original of the workload does.
    #[serde(default)]
    pub protocol: Option<Protocol>,
    /// When transactions begin.
    #[serde(default)]
    pub arrivals: ArrivalsSpec,
    /// Excluded from the figures of the whole, not from those of each second.
    #[serde(default)]
    pub warmup_ms: u64,
    /// How long transactions are begun after that.
    pub duration_ms: u64,
    /// How many transactions each client begins at most.
    #[serde(default)]
    pub transactions_max: Option<u64>,
    /// Transactions that could not begin within this are skipped.
    #[serde(default)]
    pub late_max_ms: Option<u64>,
    /// How often a transaction is begun that fails with 40001 or 40P01 (or 23505 in a test of sysbench); 0 is as often as
    /// it takes until the end. Unless it is said, once, or in a test of sysbench as often as it takes.
    #[serde(default)]
    pub tries_max: Option<u32>,
    /// Whether errors of the server other than those are counted, where otherwise they end the run.
    #[serde(default)]
    pub continue_on_error: bool,
    /// How many times as long `\sleep` takes as the scripts say, in a world that is so many times slower.
    #[serde(default = "one")]
    pub dilation: u32,
    /// How long transactions that have begun may take to end, after the last could begin.
    #[serde(default = "minute_ms")]
    pub drain_ms: u64,
    /// From which all that is random derives.
    #[serde(default = "one_seed")]
    pub seed: u64,
}

/// Several drivers share one load: clients and threads have the numbers that they would have in one driver, and rates
/// and workloads are those of all, so that together the drivers send what one would.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShareSpec {
    /// Clients of the drivers before this one.
    pub clients_before: u32,
    /// Clients of all drivers.
    pub clients_all: u32,
    /// Threads of the drivers before this one.
    pub threads_before: u32,
    /// Threads of all drivers.
    pub threads_all: u32,
}

/// When a run begins.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum BeginSpec {
    /// When every client is connected.
    #[default]
    Now,
    /// At an instant that a further line of standard input tells: `{"begin_ns": N}`, of CLOCK_MONOTONIC.
    Told {
        /// How long that line is waited for, and how far ahead its instant may be.
        #[serde(default = "minute_ms")]
        within_ms: u64,
    },
}

/// When transactions begin.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ArrivalsSpec {
    /// When a client is done with the last.
    #[default]
    Closed,
    /// When a client is done with the last and has thought for so long.
    Think {
        /// Always, or on average.
        ms: f64,
        /// Whether the time is exponentially distributed.
        #[serde(default)]
        exponential: bool,
    },
    /// At even distances, whether a client is free or not.
    Fixed {
        /// Of all clients together.
        rate_per_s: f64,
    },
    /// Independently of each other, whether a client is free or not.
    Poisson {
        /// Of all clients together.
        rate_per_s: f64,
    },
    /// At rates that change: steps and ramps. The last segment's final rate stays.
    Segments {
        /// Independently of each other, or at even distances.
        poisson: bool,
        /// One after another, from the beginning of the warm-up.
        segments: Vec<SegmentSpec>,
    },
}

/// A part of a schedule whose rate goes linearly from one value to another.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SegmentSpec {
    /// How long it takes.
    pub duration_ms: u64,
    /// Where it begins.
    pub rate_begin_per_s: f64,
    /// Where it ends.
    pub rate_end_per_s: f64,
}

fn one() -> u32 {
    1
}

fn one_seed() -> u64 {
    1
}

fn minute_ms() -> u64 {
    60_000
}

impl DriveSpec {
    /// Refuses what cannot be run.
    fn check(&self) -> Result<(), Fault> {
        let refuse = |what: &str, remedy: &str| Err(Fault::new(what, remedy));
        if self.clients == 0 || self.threads == 0 || self.threads > self.clients {
            return refuse(
                "there must be at least one client, and at least one client for each thread",
                "raise clients, or lower threads",
            );
        }
        let ShareSpec { clients_before, clients_all, threads_before, threads_all } = self.share();
        let fits = |before: u32, own: u32, all: u32| u64::from(before) + u64::from(own) <= u64::from(all);
        if !fits(clients_before, self.clients, clients_all) || !fits(threads_before, self.threads, threads_all) {
            return refuse(
                "this share of the load is not inside it",
                "clients and threads of all are those of every share",
            );
        }
        if self.duration_ms == 0 {
            return refuse("the duration is zero", "give a duration");
        }
        let rates: Vec<f64> = match &self.arrivals {
            ArrivalsSpec::Closed => Vec::new(),
            ArrivalsSpec::Think { ms, .. } => vec![*ms],
            ArrivalsSpec::Fixed { rate_per_s } | ArrivalsSpec::Poisson { rate_per_s } => vec![*rate_per_s],
            ArrivalsSpec::Segments { segments, .. } => {
                if segments.is_empty() || segments.iter().any(|segment| segment.duration_ms == 0) {
                    return refuse("a segment of the schedule is empty", "give each a duration");
                }
                segments.iter().flat_map(|segment| [segment.rate_begin_per_s, segment.rate_end_per_s]).collect()
            }
        };
        if rates.iter().any(|rate| !rate.is_finite() || *rate < 0.0) {
            return refuse("a rate or a time is negative or no number", "give positive rates and times");
        }
        Ok(())
    }

    /// The workload; what cannot be driven is refused.
    pub(crate) fn workload(&self) -> Result<Workload, Fault> {
        self.check()?;
        let workload = self.workload.workload(self.share().clients_all, self.dilation).map_err(fault)?;
        if !workload.connects() && matches!(self.arrivals, ArrivalsSpec::Closed) {
            return Err(Fault::new(
                "idle clients in a closed loop would never rest",
                "give a rate, or a time to think",
            ));
        }
        Ok(workload)
    }

    /// Its part of the load.
    pub(crate) fn share(&self) -> ShareSpec {
        let (clients_all, threads_all) = (self.clients, self.threads);
        self.share.unwrap_or(ShareSpec { clients_before: 0, clients_all, threads_before: 0, threads_all })
    }

    /// How its statements are sent.
    pub(crate) fn protocol(&self, workload: &Workload) -> Result<Protocol, Fault> {
        workload.protocol(self.protocol).map_err(fault)
    }

    /// When nothing is begun any more, since the beginning of the warm-up.
    pub(crate) fn end_ns(&self) -> u64 {
        (self.warmup_ms + self.duration_ms) * NS_PER_MS
    }

    /// The schedule of one thread: its share of the rate is that of its clients among all.
    pub(crate) fn pattern(&self, share: f64) -> Pattern {
        let constant = |spacing, rate: f64| Pattern::Open {
            spacing,
            segments: vec![Segment::constant(self.end_ns(), rate * share)],
        };
        match &self.arrivals {
            ArrivalsSpec::Closed => Pattern::Closed(Think::None),
            ArrivalsSpec::Think { ms, exponential } => {
                let ns = (ms * NS_PER_MS as f64) as u64;
                Pattern::Closed(if *exponential { Think::Exponential(ns) } else { Think::Constant(ns) })
            }
            ArrivalsSpec::Fixed { rate_per_s } => constant(Spacing::Fixed, *rate_per_s),
            ArrivalsSpec::Poisson { rate_per_s } => constant(Spacing::Poisson, *rate_per_s),
            ArrivalsSpec::Segments { poisson, segments } => Pattern::Open {
                spacing: if *poisson { Spacing::Poisson } else { Spacing::Fixed },
                segments: segments.iter().map(|segment| segment.scaled(share)).collect(),
            },
        }
    }
}

fn fault(Refusal { message, remedy }: Refusal) -> Fault {
    Fault::new(message, remedy)
}

impl SegmentSpec {
    fn scaled(&self, share: f64) -> Segment {
        Segment {
            duration_ns: self.duration_ms * NS_PER_MS,
            rate_begin_per_s: self.rate_begin_per_s * share,
            rate_end_per_s: self.rate_end_per_s * share,
        }
    }
}
