//! How the blocks of a snapshot come to a volume that is made from it (`catalog/restore.toml`): as they are asked for, at a rate
//! that is paid for, or before the volume is there.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use pgdyno_volume::{FirstTouchParams, QuantileRow, QuantileTable, RestoreCreditParams, RestoreCredits};
use serde::{Deserialize, Serialize};

use crate::error::CatalogError;
use crate::fact::{Fact, FactsFile, Source, read};
use crate::units::{GIB, KIB, MIB, TIB};

const FILE: FactsFile = ("restore.toml", include_str!("../../../catalog/restore.toml"));
/// Whose volumes are made from snapshots in these ways.
pub(crate) const PROVIDER: &str = "AWS EBS";
const NS_PER_US: u64 = 1_000;
const NS_PER_MINUTE: u64 = 60_000_000_000;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RestoreFile {
    schema_version: u32,
    sources: BTreeMap<String, Source>,
    block: BlockFacts,
    lazy: LazyFacts,
    rate: RateFacts,
    fast: FastFacts,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BlockFacts {
    kib: Fact<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LazyFacts {
    mib_per_s: Fact<u64>,
    probability_ppm: Vec<u32>,
    fetch_us: Fact<Vec<u64>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RateFacts {
    minimum_mib_per_s: Fact<u64>,
    maximum_mib_per_s: Fact<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FastFacts {
    per_hour_max: Fact<u64>,
    gib_per_hourly_credit: Fact<u64>,
    kept_min: Fact<u64>,
    optimizing_min_per_tib: Fact<u64>,
    snapshot_max_tib: Fact<u64>,
}

/// What `init=` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Init {
    /// As they are asked for, and slowly in the background.
    Lazy(Times),
    /// In the background at so many MiB/s.
    Rate(u64),
    /// Before the volume is there.
    Fast,
}

/// The times of a lazy volume: what is assumed of them, half of it, or twice as much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Times {
    Half,
    Assumed,
    Double,
}

/// Those without a figure by their names.
const NAMES: [(&str, Init); 4] = [
    ("lazy", Init::Lazy(Times::Assumed)),
    ("lazy_half", Init::Lazy(Times::Half)),
    ("lazy_double", Init::Lazy(Times::Double)),
    ("fsr", Init::Fast),
];

/// How a volume that was made from a snapshot gets its blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Initialization {
    /// `lazy`, `rate` or `fsr`.
    pub kind: String,
    /// The rate that all fetches share; `None`: the blocks are there from the start.
    pub mib_per_s: Option<f64>,
    /// The 50th, 90th and 99th percentile of what the first request to a block waits at least; `None` where that follows from the rate.
    pub first_touch_ms: Option<[f64; 3]>,
    /// Half and double of the rate where it is a hypothesis.
    pub hypothesis_mib_per_s: Option<[f64; 2]>,
    /// Credits of fast snapshot restore of a snapshot as large as the volume.
    pub credits: Option<CreationCredits>,
}

/// Volume creation credits of a snapshot in one zone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreationCredits {
    /// Earned in an hour.
    pub per_hour: f64,
    /// The most that are kept.
    pub most: f64,
    /// From the end of optimizing to the first one.
    pub first_after_minutes: f64,
    /// From when it is enabled until the snapshot is optimized.
    pub optimizing_minutes: f64,
}

fn file() -> Result<&'static RestoreFile, CatalogError> {
    static PARSED: OnceLock<Result<RestoreFile, CatalogError>> = OnceLock::new();
    PARSED.get_or_init(|| parse(FILE.1)).as_ref().map_err(Clone::clone)
}

fn parse(text: &str) -> Result<RestoreFile, CatalogError> {
    let broken = |problem: String| CatalogError { file: FILE.0.to_owned(), problem };
    let parsed: RestoreFile = read(FILE.0, text)?;
    match parsed.table(1, 1).broken_rule() {
        Some(rule) => Err(broken(format!("lazy: {rule}"))),
        None => Ok(parsed),
    }
}

/// The facts: a file that cannot be read is a bug, which a test of this file finds.
fn facts() -> &'static RestoreFile {
    file().expect("the file is read by a test")
}

impl RestoreFile {
    /// Times of a fetch, by a factor of `times` / `per`.
    fn table(&self, times: u64, per: u64) -> QuantileTable {
        let service_ns = self.lazy.fetch_us.value.iter().map(|us| us * NS_PER_US * times / per).collect();
        let row = QuantileRow { size_bytes: self.block.kib.value * KIB, service_ns };
        QuantileTable { probability_ppm: self.lazy.probability_ppm.clone(), rows: vec![row] }
    }
}

impl Times {
    /// As a fraction.
    fn factor(self) -> (u64, u64) {
        match self {
            Self::Half => (1, 2),
            Self::Assumed => (1, 1),
            Self::Double => (2, 1),
        }
    }
}

impl Init {
    /// The names, for people.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.into_iter().map(|(name, _)| name)
    }

    /// The one of a name.
    pub fn named(name: &str) -> Option<Self> {
        NAMES.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, init)| init)
    }

    /// What is written after `init=`.
    pub fn key(self) -> String {
        match self {
            Self::Rate(mib_per_s) => format!("{mib_per_s}MiB/s"),
            named => NAMES.into_iter().find(|(_, init)| *init == named).map_or("", |(name, _)| name).to_owned(),
        }
    }

    /// For a title.
    pub fn phrase(self) -> String {
        match self {
            Self::Lazy(Times::Assumed) => "loaded lazily".to_owned(),
            Self::Lazy(Times::Half) => "loaded lazily in half the time".to_owned(),
            Self::Lazy(Times::Double) => "loaded lazily in twice the time".to_owned(),
            Self::Rate(mib_per_s) => format!("initialized at {mib_per_s} MiB/s"),
            Self::Fast => "fast snapshot restore".to_owned(),
        }
    }

    /// What the volume model runs on; `None`: nothing is missing.
    pub fn params(self) -> Option<FirstTouchParams> {
        let facts = facts();
        let block_bytes = facts.block.kib.value * KIB;
        match self {
            Self::Fast => None,
            Self::Rate(mib_per_s) => {
                Some(FirstTouchParams { block_bytes, bytes_per_s: mib_per_s * MIB, fetch: QuantileTable::constant(0) })
            }
            Self::Lazy(scale) => {
                let (times, per) = scale.factor();
                let bytes_per_s = facts.lazy.mib_per_s.value * MIB * per / times;
                Some(FirstTouchParams { block_bytes, bytes_per_s, fetch: facts.table(times, per) })
            }
        }
    }

    /// What a volume of so many bytes says of it.
    pub fn facts(self, size_bytes: u64) -> Initialization {
        let params = self.params();
        let in_mib = |bytes_per_s: u64| bytes_per_s as f64 / MIB as f64;
        let mib_per_s = params.as_ref().map(|params| in_mib(params.bytes_per_s));
        let lazy = matches!(self, Self::Lazy(_));
        let percentiles = params.filter(|_| lazy).map(|params| {
            let at = |ppm: u32| {
                let place = params.fetch.probability_ppm.iter().position(|known| *known == ppm);
                place.map_or(0.0, |place| params.fetch.rows[0].service_ns[place] as f64 / 1e6)
            };
            [500_000, 900_000, 990_000].map(at)
        });
        Initialization {
            kind: match self {
                Self::Lazy(_) => "lazy",
                Self::Rate(_) => "rate",
                Self::Fast => "fsr",
            }
            .to_owned(),
            mib_per_s,
            first_touch_ms: percentiles,
            hypothesis_mib_per_s: mib_per_s.filter(|_| lazy).map(|rate| [rate / 2.0, rate * 2.0]),
            credits: (self == Self::Fast).then(|| CreationCredits::of(size_bytes)),
        }
    }
}

impl CreationCredits {
    fn of(snapshot_bytes: u64) -> Self {
        let bucket = RestoreCredits::empty(credit_params(), snapshot_bytes, 0);
        let optimizing_min = facts().fast.optimizing_min_per_tib.value as f64;
        let whole = |millionths: u64| millionths as f64 / 1e6;
        Self {
            per_hour: whole(bucket.per_hour_millionths()),
            most: whole(bucket.capacity_millionths()),
            first_after_minutes: bucket.ready_at(0) as f64 / NS_PER_MINUTE as f64,
            optimizing_minutes: optimizing_min * snapshot_bytes as f64 / TIB as f64,
        }
    }
}

/// The rule of the credits of fast snapshot restore.
pub fn credit_params() -> RestoreCreditParams {
    let fast = &facts().fast;
    RestoreCreditParams {
        per_hour_max: fast.per_hour_max.value,
        shared_bytes: fast.gib_per_hourly_credit.value * GIB,
        capacity_min: fast.kept_min.value,
    }
}

/// The least and the most MiB/s that a volume is initialized at.
pub(crate) fn rates_mib_per_s() -> (u64, u64) {
    let rate = &facts().rate;
    (rate.minimum_mib_per_s.value, rate.maximum_mib_per_s.value)
}

/// The largest snapshot that fast snapshot restore takes.
pub(crate) fn fast_bytes_max() -> u64 {
    facts().fast.snapshot_max_tib.value * TIB
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
        let error = parse(&FILE.1.replace("schema_version = 1", "schema_version = 2")).expect_err("another version");
        assert!(error.to_string().contains("schema_version"), "{error}");
        let error = parse(&FILE.1.replace("[1_000, 2_060", "[3_000, 2_060")).expect_err("a table that descends");
        assert!(error.to_string().contains("never descend"), "{error}");
    }

    /// The mean of a table whose values are interpolated is that of the middles of its parts. CloudWatch showed 35 ms where each of
    /// the first reads was in it, with service and queue.
    #[test]
    fn the_first_touch_takes_on_average_nearly_what_was_measured() {
        let FirstTouchParams { fetch, .. } = Init::Lazy(Times::Assumed).params().expect("a lazy volume");
        let (p, ns) = (&fetch.probability_ppm, &fetch.rows[0].service_ns);
        let parts = (1..p.len()).map(|i| f64::from(p[i] - p[i - 1]) / 1e6 * (ns[i] + ns[i - 1]) as f64 / 2.0);
        let mean_ms = parts.sum::<f64>() / 1e6;
        assert!((30.0..35.0).contains(&mean_ms), "{mean_ms} ms");
    }

    #[test]
    fn half_the_time_is_twice_the_rate() {
        let of = |times| Init::Lazy(times).params().expect("a lazy volume");
        let (half, whole, double) = (of(Times::Half), of(Times::Assumed), of(Times::Double));
        assert_eq!((half.bytes_per_s, double.bytes_per_s), (2 * whole.bytes_per_s, whole.bytes_per_s / 2));
        let median = |params: &FirstTouchParams| params.fetch.rows[0].service_ns[5];
        assert_eq!((2 * median(&half), median(&double)), (median(&whole), 2 * median(&whole)));
    }

    #[test]
    fn credits_are_the_providers_examples() {
        let of = |gib: u64| Init::Fast.facts(gib * GIB).credits.expect("credits");
        let CreationCredits { per_hour, most, first_after_minutes, optimizing_minutes } = of(128);
        assert_eq!((per_hour, most, first_after_minutes, optimizing_minutes), (8.0, 8.0, 7.5, 7.5));
        let CreationCredits { per_hour, most, first_after_minutes, optimizing_minutes } = of(4096);
        assert_eq!((per_hour, most, first_after_minutes, optimizing_minutes), (0.25, 1.0, 240.0, 240.0));
    }
}
