//! What to sample, and how: one JSON document on standard input.

use std::path::PathBuf;

use pgdyno_connection::Fault;
use pgdyno_workload::{OutOfBounds, Pattern, Segment, Spacing, Think, check_rate, check_time};
use serde::Deserialize;
use serde_json::json;

use crate::asked::PartSpec;
use crate::keys::KeysSpec;
use crate::shared::Endpoint;

pub(crate) const NS_PER_MS: u64 = 1_000_000;

/// A run of clients that send transactions of a capture.
#[derive(Deserialize)]
pub struct SampleSpec {
    pub(crate) capture: PathBuf,
    pub(crate) endpoints: Vec<Endpoint>,
    #[serde(flatten)]
    pub(crate) part: PartSpec,
    #[serde(default)]
    pub(crate) keys: Option<KeysSpec>,
    pub(crate) clients: u32,
    /// Threads that share the clients.
    #[serde(default = "one")]
    pub(crate) threads: u32,
    pub(crate) arrivals: ArrivalsSpec,
    pub(crate) warmup_ms: u64,
    pub(crate) duration_ms: u64,
    /// Transactions that could not begin within this are skipped.
    #[serde(default)]
    pub(crate) late_max_ms: Option<u64>,
    /// How long transactions that have begun may take to end.
    pub(crate) drain_ms: u64,
    pub(crate) seed: u64,
}

fn one() -> u32 {
    1
}

/// When transactions begin.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ArrivalsSpec {
    /// When a client is done with the last.
    Closed,
    /// When a client is done with the last and has thought for so long.
    Think { ms: f64 },
    /// At even distances, whether a client is free or not.
    Fixed { rate_per_s: f64 },
    /// Independently of each other, whether a client is free or not.
    Poisson { rate_per_s: f64 },
}

impl SampleSpec {
    /// Refuses what cannot be run.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        if self.clients == 0 || self.duration_ms == 0 {
            return Err(Fault::new("there must be a client, and a duration", "raise clients, or duration"));
        }
        if self.threads == 0 || self.threads > self.clients {
            return Err(Fault::new(
                "there must be at least one client for each thread",
                "raise clients, or lower threads",
            ));
        }
        let times = [
            ("warmup_ms", self.warmup_ms),
            ("duration_ms", self.duration_ms),
            ("drain_ms", self.drain_ms),
            ("late_max_ms", self.late_max_ms.unwrap_or(0)),
        ];
        times.into_iter().try_for_each(|(key, ms)| check_time(key, ms as f64)).map_err(out_of_bounds)?;
        let arrivals = match self.arrivals {
            ArrivalsSpec::Closed => Ok(()),
            ArrivalsSpec::Think { ms } => check_time("think.ms", ms),
            // All threads share one schedule here.
            ArrivalsSpec::Fixed { rate_per_s } | ArrivalsSpec::Poisson { rate_per_s } => check_rate(rate_per_s, 1),
        };
        arrivals.map_err(out_of_bounds)
    }

    /// When nothing is begun any more, since the beginning of the warm-up.
    pub(crate) fn end_ns(&self) -> u64 {
        self.warmup_ms.saturating_add(self.duration_ms).saturating_mul(NS_PER_MS)
    }

    /// The schedule of all clients.
    pub(crate) fn pattern(&self) -> Pattern {
        let open = |spacing, rate| Pattern::Open { spacing, segments: vec![Segment::constant(self.end_ns(), rate)] };
        match self.arrivals {
            ArrivalsSpec::Closed => Pattern::Closed(Think::None),
            ArrivalsSpec::Think { ms } => Pattern::Closed(Think::Constant((ms * NS_PER_MS as f64) as u64)),
            ArrivalsSpec::Fixed { rate_per_s } => open(Spacing::Fixed, rate_per_s),
            ArrivalsSpec::Poisson { rate_per_s } => open(Spacing::Poisson, rate_per_s),
        }
    }
}

fn out_of_bounds(error: OutOfBounds) -> Fault {
    let data = json!({"key": error.key, "value": error.value, "most": error.most});
    Fault::new(error.message, error.remedy).coded(error.code, data)
}
