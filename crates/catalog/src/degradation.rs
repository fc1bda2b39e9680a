//! How much of the time a volume has only a part of its limits (`catalog/degradation.toml`): what its provider leaves open, or a share
//! that is asked for. How long a period lasts and how little is left in it is a hypothesis.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use pgdyno_volume::{ALL_PPM, DegradationParams};
use serde::{Deserialize, Serialize};

use crate::error::CatalogError;
use crate::fact::{Fact, FactsFile, Source, read};

const FILE: FactsFile = ("degradation.toml", include_str!("../../../catalog/degradation.toml"));
const NS_PER_S: u64 = 1_000_000_000;
const PPM_PER_PERCENT: f64 = 1e4;
/// What is written for the provider's own share.
const PROMISE: &str = "promise";
/// RDS's storage is made of volumes of the same types.
const OF_RDS: &str = "rds-";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DegradationFile {
    schema_version: u32,
    sources: BTreeMap<String, Source>,
    promised_ppm: BTreeMap<String, Fact<u32>>,
    period: PeriodFacts,
    share_ppm: ShareFacts,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PeriodFacts {
    lasts_s: Fact<[u64; 2]>,
    left_ppm: Fact<[u32; 2]>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ShareFacts {
    minimum: Fact<u32>,
    maximum: Fact<u32>,
}

/// What `degraded=` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Degraded {
    /// The rest of what the provider promises.
    Promise,
    /// A share of the time, in parts per million.
    Share(u32),
}

/// How a volume is degraded. All but a promised share is a hypothesis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Degradation {
    /// Whether the share is what the provider leaves open.
    pub promised: bool,
    /// Per cent of the time.
    pub of_time_percent: f64,
    /// The shortest and the longest period.
    pub lasts_s: [u64; 2],
    /// The least and the most per cent of its limits that a volume has in a period.
    pub left_percent: [f64; 2],
}

fn file() -> Result<&'static DegradationFile, CatalogError> {
    static PARSED: OnceLock<Result<DegradationFile, CatalogError>> = OnceLock::new();
    PARSED.get_or_init(|| parse(FILE.1)).as_ref().map_err(Clone::clone)
}

fn parse(text: &str) -> Result<DegradationFile, CatalogError> {
    let parsed: DegradationFile = read(FILE.0, text)?;
    let widest = parsed.params(parsed.share_ppm.maximum.value);
    match widest.broken_rule() {
        Some(rule) => Err(CatalogError { file: FILE.0.to_owned(), problem: format!("period: {rule}") }),
        None => Ok(parsed),
    }
}

/// The facts: a file that cannot be read is a bug, which a test of this file finds.
fn facts() -> &'static DegradationFile {
    file().expect("the file is read by a test")
}

impl DegradationFile {
    fn params(&self, of_time_ppm: u32) -> DegradationParams {
        let PeriodFacts { lasts_s, left_ppm } = &self.period;
        DegradationParams { of_time_ppm, lasts_ns: lasts_s.value.map(|s| s * NS_PER_S), left_ppm: left_ppm.value }
    }
}

/// What a provider leaves open of a volume type, in parts per million of the time; `None` where it promises nothing.
/// A type of a year, or of RDS, has the promise of the type.
pub(crate) fn left_open_ppm(volume_type: &str) -> Option<u32> {
    let volume = volume_type.strip_prefix(OF_RDS).unwrap_or(volume_type);
    let volume = volume.split_once('-').map_or(volume, |(name, _)| name);
    facts().promised_ppm.get(volume).map(|promised| ALL_PPM - promised.value)
}

/// The least and the greatest share of the time that can be asked for, in parts per million.
pub(crate) fn shares_ppm() -> (u32, u32) {
    let ShareFacts { minimum, maximum } = &facts().share_ppm;
    (minimum.value, maximum.value)
}

impl Degraded {
    /// From what is written after `degraded=`; `None` if it is neither a name nor a percentage.
    pub fn read(value: &str) -> Option<Self> {
        if value.eq_ignore_ascii_case(PROMISE) {
            return Some(Self::Promise);
        }
        let digits = |byte: u8| byte.is_ascii_digit() || byte == b'.';
        let number = value.strip_suffix('%').map(str::trim_end).filter(|number| number.bytes().all(digits))?;
        let percent: f64 = number.parse().ok()?;
        // A percentage of more than all is refused by the rules, with what can be asked for.
        Some(Self::Share((percent * PPM_PER_PERCENT).round().min(f64::from(u32::MAX)) as u32))
    }

    /// What is written after `degraded=`.
    pub fn key(self) -> String {
        match self {
            Self::Promise => PROMISE.to_owned(),
            Self::Share(ppm) => percent_phrase(ppm).replace(' ', ""),
        }
    }

    /// Parts per million of the time, of such a type.
    fn of_time_ppm(self, volume_type: &str) -> Option<u32> {
        match self {
            Self::Promise => left_open_ppm(volume_type),
            Self::Share(ppm) => Some(ppm),
        }
    }

    /// For a title.
    pub fn phrase(self, volume_type: &str) -> String {
        let share = self.of_time_ppm(volume_type).map(percent_phrase).unwrap_or_default();
        format!("degraded {share} of the time")
    }

    /// What the volume model runs on.
    pub fn params(self, volume_type: &str) -> Option<DegradationParams> {
        self.of_time_ppm(volume_type).map(|ppm| facts().params(ppm))
    }

    /// What a volume of the type says of it.
    pub fn facts(self, volume_type: &str) -> Option<Degradation> {
        let DegradationParams { of_time_ppm, lasts_ns, left_ppm } = self.params(volume_type)?;
        Some(Degradation {
            promised: self == Self::Promise,
            of_time_percent: f64::from(of_time_ppm) / PPM_PER_PERCENT,
            lasts_s: lasts_ns.map(|ns| ns / NS_PER_S),
            left_percent: left_ppm.map(|ppm| f64::from(ppm) / PPM_PER_PERCENT),
        })
    }
}

/// `0.1 %`.
pub(crate) fn percent_phrase(ppm: u32) -> String {
    format!("{} %", f64::from(ppm) / PPM_PER_PERCENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_can_be_read_and_each_source_is_used() {
        let file = file().expect("a sound file");
        for source in file.sources.keys() {
            assert!(FILE.1.contains(&format!("source = \"{source}\"")), "nothing rests on {source}");
        }
        let error = parse(&FILE.1.replace("value = 500_000", "value = 600_000")).expect_err("no room for the longest");
        assert!(error.to_string().contains("fits into a cycle"), "{error}");
    }

    #[test]
    fn a_type_of_a_year_and_one_of_rds_have_the_promise_of_the_type() {
        for (name, left_open) in
            [("gp3", 10_000), ("gp2-2014", 10_000), ("rds-gp3", 10_000), ("io1-2013", 1_000), ("rds-io2bx", 1_000)]
        {
            assert_eq!(left_open_ppm(name), Some(left_open), "{name}");
        }
        for name in ["null", "azure-ultra", "instance-store", "gp3x"] {
            assert_eq!(left_open_ppm(name), None, "{name}");
        }
    }

    #[test]
    fn what_is_read_is_written_again() {
        for (text, ppm) in [("5%", 50_000), ("0.1 %", 1_000), ("12.5%", 125_000), ("0.0001%", 1)] {
            let read = Degraded::read(text).expect(text);
            assert_eq!(read, Degraded::Share(ppm), "{text}");
            assert_eq!(Degraded::read(&read.key()), Some(read), "{text}");
        }
        assert_eq!(Degraded::read("PROMISE"), Some(Degraded::Promise));
        for text in ["", "%", "5", "-1%", "1e3%", "nan%", "inf%", "1.2.3%", "promised"] {
            assert_eq!(Degraded::read(text), None, "{text}");
        }
    }
}
