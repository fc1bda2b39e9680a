//! Faults that a provider injects: which latencies it adds, and its ready scenarios (`catalog/faults.toml`).

use std::collections::BTreeMap;
use std::sync::OnceLock;

use pgdyno_volume::{ALL_PPM, Effect, Nanos, VolumeFault};
use serde::{Deserialize, Serialize};

use crate::error::{CatalogError, SpecError};
use crate::fact::{Fact, FactsFile, Source, read};

const FILE: FactsFile = ("faults.toml", include_str!("../../../catalog/faults.toml"));
const MS: Nanos = 1_000_000;
const SECOND: Nanos = 1_000_000_000;
/// Begins of the types whose latency is fine enough for the lower minimum.
const IO2: &str = "io2";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FaultFile {
    schema_version: u32,
    sources: BTreeMap<String, Source>,
    latency: LatencyFacts,
    template: BTreeMap<String, TemplateFacts>,
}

/// What may be added to which share of the requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LatencyFacts {
    share_min_ppm: Fact<u32>,
    added_min_ms: Fact<u64>,
    added_min_io2_ms: Fact<u64>,
    added_max_ms: Fact<u64>,
}

/// A scenario: one latency after the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TemplateFacts {
    reads_ppm: Fact<u32>,
    writes_ppm: Fact<u32>,
    added_ms: Fact<Vec<u64>>,
    lasts_s: Fact<Vec<u64>>,
    /// From the end of one to the begin of the next.
    between_s: Fact<u64>,
}

fn file() -> Result<&'static FaultFile, CatalogError> {
    static PARSED: OnceLock<Result<FaultFile, CatalogError>> = OnceLock::new();
    PARSED.get_or_init(|| parse(FILE.1)).as_ref().map_err(Clone::clone)
}

fn parse(text: &str) -> Result<FaultFile, CatalogError> {
    let broken = |problem: String| CatalogError { file: FILE.0.to_owned(), problem };
    let parsed: FaultFile = read(FILE.0, text)?;
    match parsed.template.iter().find(|(_, facts)| facts.added_ms.value.len() != facts.lasts_s.value.len()) {
        Some((name, _)) => Err(broken(format!("template {name} has another number of latencies than of durations"))),
        None => Ok(parsed),
    }
}

/// Latency on a share of reads and another of writes, from one instant to another. A share of zero is left out.
pub fn latency(added_ns: Nanos, reads_ppm: u32, writes_ppm: u32, from: Nanos, until: Nanos) -> Vec<VolumeFault> {
    let effect = Effect::Latency { added_ns };
    [(true, reads_ppm), (false, writes_ppm)]
        .into_iter()
        .filter(|(_, share_ppm)| *share_ppm > 0)
        .map(|(reads, share_ppm)| VolumeFault { from, until, reads, writes: !reads, share_ppm, effect })
        .collect()
}

/// Refuses a latency that the provider does not inject into a volume of this type.
///
/// # Errors
/// The range, and the nearest latency or share in it.
pub fn require_latency(volume_type: &str, added_ns: Nanos, shares_ppm: [u32; 2]) -> Result<(), SpecError> {
    let facts = &file()?.latency;
    let (min, max) = match volume_type.starts_with(IO2) {
        true => (facts.added_min_io2_ms.value, facts.added_max_ms.value),
        false => (facts.added_min_ms.value, facts.added_max_ms.value),
    };
    if !(min * MS..=max * MS).contains(&added_ns) {
        let added_ms = added_ns as f64 / MS as f64;
        return Err(SpecError {
            message: format!(
                "latency injection adds {min} to {max} ms to requests of {volume_type}, not {added_ms} ms"
            ),
            remedy: format!("use --add {}ms", if added_ns < min * MS { min } else { max }),
        });
    }
    let least = facts.share_min_ppm.value;
    let wrong = |share_ppm: &u32| *share_ppm > ALL_PPM || (1..least).contains(share_ppm);
    if shares_ppm.iter().any(wrong) || shares_ppm == [0, 0] {
        return Err(SpecError {
            message: format!(
                "latency is injected into {} to 100 per cent of the reads or writes",
                f64::from(least) / 1e4
            ),
            remedy: "use for example --reads 10% --writes 25%".to_owned(),
        });
    }
    Ok(())
}

/// The faults of the provider's scenario `name`, as of its begin.
///
/// # Errors
/// Which scenarios there are.
pub fn scenario(name: &str) -> Result<Vec<VolumeFault>, SpecError> {
    let templates = &file()?.template;
    let facts = templates.get(name).ok_or_else(|| {
        let names: Vec<&str> = templates.keys().map(String::as_str).collect();
        SpecError {
            message: format!("there is no latency scenario {name:?}"),
            remedy: format!("use one of {}", names.join(", ")),
        }
    })?;
    let (mut begin, mut faults) = (0, Vec::new());
    for (added_ms, lasts_s) in facts.added_ms.value.iter().zip(&facts.lasts_s.value) {
        let end = begin + lasts_s * SECOND;
        faults.extend(latency(added_ms * MS, facts.reads_ppm.value, facts.writes_ppm.value, begin, end));
        begin = end + facts.between_s.value * SECOND;
    }
    Ok(faults)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_scenario_is_what_the_provider_says_and_lasts_fifteen_minutes() {
        let steps = |name: &str| -> Vec<(u64, u64, u64)> {
            let faults = scenario(name).expect("a scenario");
            assert_eq!(faults.iter().map(|fault| fault.until).max(), Some(900 * SECOND), "{name}");
            let reads = faults.iter().filter(|fault| fault.reads);
            reads.map(|fault| (fault.from / SECOND, fault.until / SECOND, added_ms(fault))).collect()
        };
        assert_eq!(steps("sustained"), [(0, 900, 500)]);
        let ramp = |added: [u64; 5]| added.into_iter().zip(0..).map(|(ms, i)| (180 * i, 180 * (i + 1), ms)).collect();
        let wanted: Vec<_> = ramp([50, 200, 700, 1_000, 15_000]);
        assert_eq!(steps("increasing"), wanted);
        assert_eq!(steps("intermittent"), [(0, 60, 30_000), (360, 480, 10_000), (780, 900, 20_000)]);
        let wanted: Vec<_> = ramp([20_000, 5_000, 900, 300, 40]);
        assert_eq!(steps("decreasing"), wanted);
        let error = scenario("none").expect_err("no such scenario");
        assert_eq!(error.remedy, "use one of decreasing, increasing, intermittent, sustained");
    }

    fn added_ms(fault: &VolumeFault) -> u64 {
        let Effect::Latency { added_ns } = fault.effect else { panic!("a latency") };
        added_ns / MS
    }

    #[test]
    fn what_the_provider_does_not_inject_is_refused_with_the_nearest() {
        let refused =
            |kind: &str, added_ns, shares| require_latency(kind, added_ns, shares).expect_err("refused").remedy;
        assert_eq!(refused("gp3", 9 * MS, [ALL_PPM; 2]), "use --add 10ms");
        assert_eq!(refused("io2bx", 60_001 * MS, [ALL_PPM; 2]), "use --add 60000ms");
        assert!(refused("gp3", 10 * MS, [999, 0]).contains("--reads"));
        assert!(refused("gp3", 10 * MS, [0, 0]).contains("--reads"));
        assert_eq!(require_latency("io2bx", MS, [1_000, 0]), Ok(()));
    }
}
