//! What to drive, and how: one JSON document on standard input.

use pgdyno_connection::{Fault, Server};
use pgdyno_workload::{
    OutOfBounds, Pattern, Protocol, Refusal, Segment, Spacing, Think, Workload, WorkloadSpec, check_rate, check_time,
};
use serde::Deserialize;
use serde_json::json;

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
            return Err(Fault::new("the duration is zero", "give a duration").coded("drive.duration.zero", json!({})));
        }
        self.check_times()?;
        let rates: Vec<f64> = match &self.arrivals {
            ArrivalsSpec::Closed | ArrivalsSpec::Think { .. } => Vec::new(),
            ArrivalsSpec::Fixed { rate_per_s } | ArrivalsSpec::Poisson { rate_per_s } => vec![*rate_per_s],
            ArrivalsSpec::Segments { segments, .. } => {
                if segments.is_empty() || segments.iter().any(|segment| segment.duration_ms == 0) {
                    return refuse("a segment of the schedule is empty", "give each a duration");
                }
                segments.iter().flat_map(|segment| [segment.rate_begin_per_s, segment.rate_end_per_s]).collect()
            }
        };
        rates.into_iter().try_for_each(|rate| check_rate(rate, threads_all)).map_err(out_of_bounds)
    }

    /// Refuses times that nanoseconds cannot count.
    fn check_times(&self) -> Result<(), Fault> {
        let mut times = vec![
            ("warmup_ms", self.warmup_ms as f64),
            ("duration_ms", self.duration_ms as f64),
            ("drain_ms", self.drain_ms as f64),
            ("late_max_ms", self.late_max_ms.unwrap_or(0) as f64),
        ];
        match &self.arrivals {
            ArrivalsSpec::Think { ms, .. } => times.push(("think.ms", *ms)),
            ArrivalsSpec::Segments { segments, .. } => {
                times.extend(segments.iter().map(|segment| ("segments.duration_ms", segment.duration_ms as f64)));
            }
            _ => (),
        }
        times.into_iter().try_for_each(|(key, ms)| check_time(key, ms)).map_err(out_of_bounds)
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
        self.warmup_ms.saturating_add(self.duration_ms).saturating_mul(NS_PER_MS)
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

fn out_of_bounds(error: OutOfBounds) -> Fault {
    let data = json!({"key": error.key, "value": error.value, "most": error.most});
    Fault::new(error.message, error.remedy).coded(error.code, data)
}

fn fault(Refusal { message, remedy }: Refusal) -> Fault {
    Fault::new(message, remedy)
}

impl SegmentSpec {
    fn scaled(&self, share: f64) -> Segment {
        Segment {
            duration_ns: self.duration_ms.saturating_mul(NS_PER_MS),
            rate_begin_per_s: self.rate_begin_per_s * share,
            rate_end_per_s: self.rate_end_per_s * share,
        }
    }
}

#[cfg(test)]
mod tests {
    use pgdyno_workload::DURATION_MAX_MS;
    use serde_json::Value;

    use super::*;

    /// The code and data of the refusal, if a specification with these keys is refused.
    fn refusal(keys: Value) -> Option<(String, Value)> {
        let mut document = json!({
            "workload": "idle", "clients": 4, "threads": 2, "arrivals": {"think": {"ms": 1.0}}, "duration_ms": 1000,
        });
        let Value::Object(keys) = keys else { unreachable!("keys are an object") };
        document.as_object_mut().expect("it is an object").extend(keys);
        let spec: DriveSpec = serde_json::from_value(document).expect("it is a specification");
        spec.check().err().map(|fault| (fault.code.into_owned(), fault.data))
    }

    fn code(keys: Value) -> Option<String> {
        refusal(keys).map(|(code, _)| code)
    }

    #[test]
    fn a_rate_that_no_thread_can_begin_is_refused_also_in_a_ramp() {
        let ramp = |rate_end_per_s: f64| {
            json!({"arrivals": {"segments": {"poisson": true, "segments": [
                {"duration_ms": 1000, "rate_begin_per_s": 1.0, "rate_end_per_s": rate_end_per_s}]}}})
        };
        for rate_per_s in [2.1e6, 1e9, 1e300] {
            let most = Some((
                "drive.rate.too_high".to_owned(),
                json!({"key": "rate_per_s", "value": rate_per_s, "most": 2e6}),
            ));
            assert_eq!(refusal(json!({"arrivals": {"fixed": {"rate_per_s": rate_per_s}}})), most);
            assert_eq!(refusal(json!({"arrivals": {"poisson": {"rate_per_s": rate_per_s}}})), most);
            assert_eq!(refusal(ramp(rate_per_s)), most);
        }
        assert_eq!(code(json!({"arrivals": {"fixed": {"rate_per_s": -1.0}}})).as_deref(), Some("drive.rate.no_number"));
        assert_eq!(code(json!({"arrivals": {"fixed": {"rate_per_s": 2e6}}})), None);
        assert_eq!(code(ramp(2e6)), None);
    }

    #[test]
    fn a_time_that_nanoseconds_cannot_count_is_refused() {
        for key in ["warmup_ms", "duration_ms", "drain_ms", "late_max_ms"] {
            assert_eq!(code(json!({key: u64::MAX})).as_deref(), Some("drive.time.too_long"), "{key}");
            assert_eq!(code(json!({key: DURATION_MAX_MS})), None, "{key}");
        }
        assert_eq!(code(json!({"arrivals": {"think": {"ms": 1e300}}})).as_deref(), Some("drive.time.too_long"));
        assert_eq!(code(json!({"arrivals": {"think": {"ms": -1.0}}})).as_deref(), Some("drive.time.no_number"));
        assert_eq!(code(json!({"duration_ms": 0})).as_deref(), Some("drive.duration.zero"));
        let long = json!({"arrivals": {"segments": {"poisson": false, "segments": [
            {"duration_ms": u64::MAX, "rate_begin_per_s": 1.0, "rate_end_per_s": 1.0}]}}});
        assert_eq!(code(long).as_deref(), Some("drive.time.too_long"));
    }
}
