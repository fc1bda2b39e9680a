//! A catalogue file as it is written, and the checks that a file must pass before anything is resolved with it.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use pgdyno_volume::Order;
use serde::{Deserialize, Serialize};

use crate::error::CatalogError;
use crate::fact::{Fact, Source, Status};
use crate::service_time::ServiceTimeFacts;

const SCHEMA_VERSION: u32 = 1;

/// The files, in the order in which they are listed to the user.
const FILES: [(&str, &str); 3] = [
    ("null.toml", include_str!("../../../catalog/volumes/null.toml")),
    ("gp3.toml", include_str!("../../../catalog/volumes/gp3.toml")),
    ("io2bx.toml", include_str!("../../../catalog/volumes/io2bx.toml")),
];

/// One volume type: everything its file says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct VolumeFile {
    pub schema_version: u32,
    /// What the user writes before the colon, in lower case.
    pub name: String,
    pub title: String,
    pub summary: String,
    #[serde(default)]
    pub aliases: Vec<Alias>,
    pub sources: BTreeMap<String, Source>,
    pub size: SizeFacts,
    /// `None`: no limit on I/Os per second.
    pub iops: Option<IopsFacts>,
    /// `None`: no limit on bytes per second.
    pub throughput: Option<ThroughputFacts>,
    pub accounting: AccountingFacts,
    pub queueing: QueueingFacts,
    pub durability: Option<DurabilityFacts>,
    /// `None`: nobody sells it.
    pub price: Option<PriceFacts>,
    pub service_time: ServiceTimeFacts,
}

/// Another name that is accepted for a type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Alias {
    pub name: String,
    pub reason: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SizeFacts {
    pub minimum_mib: Fact<u64>,
    pub maximum_mib: Fact<u64>,
    pub default_mib: Fact<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct IopsFacts {
    /// The least that can be asked for; it is allowed at every size.
    pub minimum: Fact<u64>,
    pub maximum: Fact<u64>,
    /// Used when no figure is given, or less where the size allows only less.
    pub default: Fact<u64>,
    pub maximum_per_gib: Fact<u64>,
    pub bucket_depth_ms: Fact<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ThroughputFacts {
    pub maximum_mib_per_s: Fact<u64>,
    /// Ratio of throughput to IOPS; per thousand, so that it is an integer.
    pub mib_per_s_per_1000_iops: Fact<u64>,
    pub bucket_depth_ms: Fact<u64>,
    /// `None`: the throughput cannot be chosen, it is the ratio times the IOPS up to the maximum.
    pub provisioned: Option<ProvisionedThroughput>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProvisionedThroughput {
    pub minimum_mib_per_s: Fact<u64>,
    pub default_mib_per_s: Fact<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AccountingFacts {
    pub unit_kib: Fact<u64>,
    pub merge_sequential: Fact<bool>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct QueueingFacts {
    /// In which order requests that wait for a limit are granted, unless another one is asked for.
    pub order: Fact<Order>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DurabilityFacts {
    pub yearly: Fact<String>,
    /// Low and high.
    pub annual_failure_rate_percent: Fact<[f64; 2]>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PriceFacts {
    pub region: String,
    pub gib_month_usd: Fact<f64>,
    #[serde(default)]
    pub iops_month: Vec<Tier>,
    #[serde(default)]
    pub mib_per_s_month: Vec<Tier>,
}

/// The price of each unit above `above`, up to where the next tier begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tier {
    pub above: u64,
    pub usd: Fact<f64>,
}

/// All volume types, read once.
pub(crate) fn catalog() -> Result<&'static [VolumeFile], CatalogError> {
    static CATALOG: OnceLock<Result<Vec<VolumeFile>, CatalogError>> = OnceLock::new();
    let read = || FILES.iter().map(|(file, text)| VolumeFile::read(file, text)).collect();
    CATALOG.get_or_init(read).as_deref().map_err(Clone::clone)
}

impl VolumeFile {
    /// Reads one file and checks it.
    pub fn read(file: &str, text: &str) -> Result<Self, CatalogError> {
        let broken = |problem: String| CatalogError { file: format!("volumes/{file}"), problem };
        let volume: VolumeFile = toml::from_str(text).map_err(|error| broken(error.to_string()))?;
        volume.check().map_err(broken)?;
        Ok(volume)
    }

    fn check(&self) -> Result<(), String> {
        if self.schema_version != SCHEMA_VERSION {
            return Err(format!("schema_version {} is not {SCHEMA_VERSION}", self.schema_version));
        }
        ascending("size", &[&self.size.minimum_mib, &self.size.default_mib, &self.size.maximum_mib])?;
        if self.size.minimum_mib.value == 0 {
            return Err("a volume without a byte cannot be formatted".to_owned());
        }
        if let Some(iops) = &self.iops {
            ascending("iops", &[&iops.minimum, &iops.default, &iops.maximum])?;
            if iops.minimum.value == 0 || iops.maximum_per_gib.value == 0 || iops.bucket_depth_ms.value == 0 {
                return Err("iops: a limit of zero never lets anything through".to_owned());
            }
        }
        if let Some(throughput) = &self.throughput {
            if self.iops.is_none() {
                return Err("throughput is bounded by IOPS, of which there is no limit".to_owned());
            }
            if throughput.mib_per_s_per_1000_iops.value == 0 || throughput.bucket_depth_ms.value == 0 {
                return Err("throughput: a limit of zero never lets anything through".to_owned());
            }
            if let Some(own) = &throughput.provisioned {
                let steps = [&own.minimum_mib_per_s, &own.default_mib_per_s, &throughput.maximum_mib_per_s];
                ascending("throughput", &steps)?;
                let iops = self.iops.as_ref().map_or(0, |iops| iops.minimum.value);
                if own.default_mib_per_s.value > iops * throughput.mib_per_s_per_1000_iops.value / 1000 {
                    return Err("throughput: the default is more than the least IOPS carry".to_owned());
                }
            }
        }
        if let Some(price) = &self.price {
            for tiers in [&price.iops_month, &price.mib_per_s_month] {
                if !tiers.is_sorted_by(|a, b| a.above < b.above) {
                    return Err("price: tiers are not ascending".to_owned());
                }
            }
        }
        for (source, _, _) in self.origins() {
            if !self.sources.contains_key(source) {
                return Err(format!("source {source:?} is not in [sources]"));
            }
        }
        self.service_time.params().map(|_| ()).map_err(|problem| format!("service_time.{problem}"))
    }

    /// Source, date and status of every fact in the file.
    pub fn origins(&self) -> Vec<(&str, &str, Status)> {
        let mut all = Vec::new();
        let size = &self.size;
        all.extend([&size.minimum_mib, &size.maximum_mib, &size.default_mib].map(origin));
        all.push(origin(&self.accounting.unit_kib));
        all.push(origin(&self.accounting.merge_sequential));
        all.push(origin(&self.queueing.order));
        if let Some(iops) = &self.iops {
            let facts = [&iops.minimum, &iops.maximum, &iops.default, &iops.maximum_per_gib, &iops.bucket_depth_ms];
            all.extend(facts.map(origin));
        }
        if let Some(throughput) = &self.throughput {
            let ThroughputFacts { maximum_mib_per_s, mib_per_s_per_1000_iops, bucket_depth_ms, provisioned } =
                throughput;
            all.extend([maximum_mib_per_s, mib_per_s_per_1000_iops, bucket_depth_ms].map(origin));
            if let Some(own) = provisioned {
                all.extend([&own.minimum_mib_per_s, &own.default_mib_per_s].map(origin));
            }
        }
        if let Some(durability) = &self.durability {
            all.push(origin(&durability.yearly));
            all.push(origin(&durability.annual_failure_rate_percent));
        }
        if let Some(price) = &self.price {
            all.push(origin(&price.gib_month_usd));
            all.extend(price.iops_month.iter().chain(&price.mib_per_s_month).map(|tier| origin(&tier.usd)));
        }
        for table in [&self.service_time.read, &self.service_time.write] {
            all.extend([&table.floor_ns, &table.mean_ns].map(origin));
            all.push(origin(&table.excess_ppm));
        }
        all
    }
}

fn origin<T>(fact: &Fact<T>) -> (&str, &str, Status) {
    (&fact.source, &fact.date, fact.status)
}

fn ascending(what: &str, facts: &[&Fact<u64>]) -> Result<(), String> {
    if facts.is_sorted_by(|a, b| a.value <= b.value) {
        Ok(())
    } else {
        Err(format!("{what}: minimum, default and maximum are not in this order"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_catalogue_can_be_read() {
        let names: Vec<&str> = catalog().unwrap().iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names, ["null", "gp3", "io2bx"]);
    }

    #[test]
    fn every_source_is_used() {
        for file in catalog().unwrap() {
            let used: Vec<&str> = file.origins().into_iter().map(|(source, _, _)| source).collect();
            for source in file.sources.keys() {
                assert!(used.contains(&source.as_str()), "{}: nothing rests on {source}", file.name);
            }
        }
    }

    /// A slip in a file is found when it is read, and the message says which.
    #[test]
    fn broken_files_are_refused() {
        let gp3 = FILES[1].1;
        for (from, to, complaint) in [
            ("schema_version = 1", "schema_version = 2", "schema_version"),
            ("minimum = { value = 3_000", "minimum = { value = 90_000", "not in this order"),
            ("minimum = { value = 3_000", "minimum = { value = 0", "never lets anything through"),
            (
                "default_mib_per_s = { value = 125",
                "default_mib_per_s = { value = 800",
                "more than the least IOPS carry",
            ),
            ("[sources.fio_2026]", "[sources.fio_2027]", "fio_2026"),
            ("date = 2026-03-27", "date = 2026-03-27T12:00:00Z", "a day"),
            ("date = 2026-03-27", "date = \"2026-03-27\"", "datetime"),
            ("maximum_per_gib", "maximum_per_gb", "maximum_per_gb"),
            ("status = \"hypothesis\"", "status = \"certain\"", "certain"),
            ("600_000, 622_000", "300_000, 622_000", "floor_ns is above mean_ns"),
            ("600_000, 622_000", "622_000", "one for each size"),
            ("0, 200_000, 325_000", "0, 400_000, 325_000", "excess_ppm must ascend"),
            ("0, 200_000, 325_000", "0, 220_000, 325_000", "away from 1"),
            ("0, 10_000, 50_000", "10_000, 50_000", "from 0 to 1,000,000"),
            ("size_kib = [4, 16", "size_kib = [16, 4", "size_kib must be ascending"),
        ] {
            assert!(gp3.contains(from), "the test looks for {from:?}, which is no longer in the file");
            let error = VolumeFile::read("gp3.toml", &gp3.replacen(from, to, 1)).unwrap_err();
            assert!(error.to_string().contains(complaint), "{from:?} -> {to:?}: {error}");
        }
    }
}
