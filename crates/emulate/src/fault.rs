//! Faults on purpose, as they are asked for and as they are shown. What they do is the model's
//! (`crates/volume/src/stage/fault.rs`); which latencies a provider injects is the catalogue's.

use pgdyno_catalog::{SpecError, Storage, latency, require_latency, scenario};
use pgdyno_host::{Fault, Result};
use pgdyno_volume::{ALL_PPM, Effect, Nanos, VolumeFault};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::pipeline::Pipeline;

/// A fault as it is asked for. Its times are the volume's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wanted {
    kind: Kind,
    /// The member of an array, from 0; all of them if omitted.
    #[serde(default)]
    pub(crate) member: Option<usize>,
    /// How long it is in force; until it is healed if omitted.
    #[serde(default)]
    for_ns: Option<Nanos>,
    /// Shares of the requests that it hits.
    #[serde(default = "all")]
    reads_ppm: u32,
    #[serde(default = "all")]
    writes_ppm: u32,
}

fn all() -> u32 {
    ALL_PPM
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Pause,
    Latency {
        added_ns: Nanos,
    },
    /// One of the provider's scenarios of latency.
    Scenario(String),
    Error {
        /// First byte of the range, and its bytes; the whole volume if omitted.
        #[serde(default)]
        offset: u64,
        #[serde(default)]
        bytes: Option<u64>,
        #[serde(default)]
        once: bool,
    },
    Lose,
}

impl Wanted {
    /// The faults, their instants as of now, or what forbids them on this volume of `members` members.
    pub(crate) fn faults(&self, storage: &Storage, members: usize) -> Result<Vec<VolumeFault>> {
        if let Some(member) = self.member.filter(|member| *member >= members) {
            return Err(Fault::new(
                format!("the volume has no member {member}"),
                format!("its members are 0 to {}", members - 1),
            ));
        }
        let until = self.for_ns.unwrap_or(Nanos::MAX);
        let whole =
            |effect, until| vec![VolumeFault { from: 0, until, reads: true, writes: true, share_ppm: ALL_PPM, effect }];
        match &self.kind {
            Kind::Pause => Ok(whole(Effect::Pause, until)),
            Kind::Lose => Ok(whole(Effect::Lose, Nanos::MAX)),
            Kind::Latency { added_ns } => {
                let shares = [self.reads_ppm, self.writes_ppm];
                require_latency(&storage.member().volume_type, *added_ns, shares).map_err(refused)?;
                Ok(latency(*added_ns, self.reads_ppm, self.writes_ppm, 0, until))
            }
            Kind::Scenario(name) => scenario(name).map_err(refused),
            Kind::Error { offset, bytes, once } => {
                if members > 1 {
                    return Err(Fault::new(
                        "the range of an error is that of one volume, and this is an array",
                        "lose a member of it (`lose --member 0`), or attach one volume",
                    ));
                }
                let size_bytes = storage.total.size_bytes;
                let end = bytes.map_or(Some(size_bytes), |bytes| offset.checked_add(bytes));
                let Some(end) = end.filter(|end| offset < end && *end <= size_bytes) else {
                    return Err(Fault::new(
                        "the range of the error is empty or reaches past the end of the volume",
                        format!("the volume has {size_bytes} bytes"),
                    ));
                };
                let effect = Effect::Error { begin: *offset, end, once: *once };
                if *once {
                    let (reads, writes) = (self.reads_ppm > 0, self.writes_ppm > 0);
                    let share_ppm = self.reads_ppm.max(self.writes_ppm);
                    return Ok(vec![VolumeFault { from: 0, until, reads, writes, share_ppm, effect }]);
                }
                let by_operation = latency(0, self.reads_ppm, self.writes_ppm, 0, until).into_iter();
                Ok(by_operation.map(|fault| VolumeFault { effect, ..fault }).collect())
            }
        }
    }
}

fn refused(error: SpecError) -> Fault {
    Fault::new(error.message, error.remedy)
}

/// The faults of a volume that are in force or will be, for people and programs.
pub(crate) fn seen(pipeline: &Pipeline) -> Vec<Value> {
    let (now, faults) = pipeline.faults();
    let seconds = |ns: Nanos| ns.saturating_sub(now) as f64 / 1e9;
    let described = faults.into_iter().map(|(member, fault)| {
        let effect = match fault.effect {
            Effect::Pause => json!({"kind": "pause"}),
            Effect::Latency { added_ns } => json!({"kind": "latency", "added_ms": added_ns as f64 / 1e6}),
            Effect::Error { begin, end, once } => {
                json!({"kind": "error", "offset": begin, "bytes": end - begin, "once": once})
            }
            Effect::Lose => json!({"kind": "lose"}),
        };
        let ends_in_s = (fault.until < Nanos::MAX).then(|| seconds(fault.until));
        let mut all = json!({"member": member, "begins_in_s": seconds(fault.from), "ends_in_s": ends_in_s,
            "reads": fault.reads, "writes": fault.writes, "share": f64::from(fault.share_ppm) / f64::from(ALL_PPM)});
        if let (Value::Object(all), Value::Object(effect)) = (&mut all, effect) {
            all.extend(effect);
        }
        all
    });
    described.collect()
}

/// Refuses to keep the content of a volume that is lost, or of an array with a lost member; `remedy` says what else to do.
pub(crate) fn require_content(pipeline: &Pipeline, remedy: &str) -> Result<()> {
    if pipeline.faults().1.iter().any(|(_, fault)| fault.effect == Effect::Lose) {
        return Err(Fault::new("the volume, or a member of it, is lost, so its content cannot be saved", remedy));
    }
    Ok(())
}
