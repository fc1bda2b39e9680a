//! A catalogue file as it is written, and the checks that a file must pass before anything is resolved with it.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use pgdyno_volume::{Order, ServiceTimeParams};
use serde::{Deserialize, Serialize};

use crate::error::CatalogError;
use crate::fact::{Fact, Origin, Source, ascending};
use crate::volume::facts::limits::{IopsFacts, ThroughputFacts};
use crate::volume::facts::service_time::ServiceTimeFacts;
use crate::volume::facts::store::StoreFacts;

/// A file's name and its text, which is part of the program.
macro_rules! volume_file {
    ($name:literal) => {
        (concat!($name, ".toml"), include_str!(concat!("../../../../../catalog/volumes/", $name, ".toml")))
    };
}

const SCHEMA_VERSION: u32 = 1;

/// The files, in the order in which they are listed to the user: what can be bought, by provider, then what was.
const FILES: [(&str, &str); 30] = [
    volume_file!("null"),
    volume_file!("gp3"),
    volume_file!("io2bx"),
    volume_file!("gp2"),
    volume_file!("io1"),
    volume_file!("st1"),
    volume_file!("sc1"),
    volume_file!("instance-store"),
    volume_file!("rds-gp3"),
    volume_file!("rds-gp2"),
    volume_file!("rds-io1"),
    volume_file!("rds-io2bx"),
    volume_file!("azure-premium-v1"),
    volume_file!("azure-premium-v2"),
    volume_file!("azure-ultra"),
    volume_file!("gcp-pd-standard"),
    volume_file!("gcp-pd-balanced"),
    volume_file!("gcp-pd-ssd"),
    volume_file!("gcp-hyperdisk-balanced"),
    volume_file!("gcp-hyperdisk-extreme"),
    volume_file!("huawei-sas"),
    volume_file!("huawei-gpssd"),
    volume_file!("huawei-ssd"),
    volume_file!("huawei-essd"),
    volume_file!("gp3-2023"),
    volume_file!("gp2-2018"),
    volume_file!("gp2-2014"),
    volume_file!("io2-2023"),
    volume_file!("io1-2018"),
    volume_file!("io1-2013"),
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
    /// Who sells it.
    pub provider: String,
    /// The last day on which it was sold as described, where that is past.
    #[serde(default)]
    pub until: Option<Fact<String>>,
    /// What its provider recommends it for.
    #[serde(default)]
    pub uses: Option<Fact<String>>,
    /// Whether its content ends with the instance that it belongs to.
    #[serde(default)]
    pub volatile: Option<Fact<bool>>,
    #[serde(default)]
    pub aliases: Vec<Alias>,
    pub sources: BTreeMap<String, Source>,
    pub size: SizeFacts,
    /// `None`: no limit on I/Os per second.
    pub iops: Option<IopsFacts>,
    /// `None`: no limit on bytes per second.
    pub throughput: Option<ThroughputFacts>,
    /// `None`: size and limits are not those of an instance type's own storage.
    pub instance_store: Option<StoreFacts>,
    pub accounting: AccountingFacts,
    pub queueing: QueueingFacts,
    pub durability: Option<DurabilityFacts>,
    /// `None`: it is not sold.
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
pub(crate) struct AccountingFacts {
    pub unit_kib: Fact<u64>,
    /// Other units of volumes with more IOPS than some figure.
    #[serde(default)]
    pub unit_by_iops: Vec<UnitFacts>,
    pub merge_sequential: Fact<bool>,
    /// Whether throughput is charged by whole units; without it by what was asked for.
    #[serde(default)]
    pub whole_units: Option<Fact<bool>>,
}

/// The unit of volumes with more IOPS than `above`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UnitFacts {
    pub above: u64,
    pub unit_kib: Fact<u64>,
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
    CATALOG.get_or_init(read_all).as_deref().map_err(Clone::clone)
}

fn read_all() -> Result<Vec<VolumeFile>, CatalogError> {
    let files: Vec<VolumeFile> =
        FILES.iter().map(|(file, text)| VolumeFile::read(file, text)).collect::<Result<_, _>>()?;
    for volume in &files {
        volume.service_time_in(&files).map_err(|problem| CatalogError {
            file: format!("volumes/{}.toml", volume.name),
            problem: format!("service_time.{problem}"),
        })?;
    }
    Ok(files)
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
            iops.check()?;
        }
        if let Some(throughput) = &self.throughput {
            throughput.check(self.iops.as_ref())?;
        }
        if let Some(store) = &self.instance_store {
            store.check()?;
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
        self.service_time.check().map_err(|problem| format!("service_time.{problem}"))
    }

    /// The service times of this type, which may be another's.
    pub fn service_time_in(&self, files: &[VolumeFile]) -> Result<ServiceTimeParams, String> {
        self.service_time.params(|name| files.iter().find(|file| file.name == name).map(|file| &file.service_time))
    }

    /// What the burst is paid with; `None` where there is no burst, or both kinds are needed for it.
    pub fn credit_kind(&self) -> Option<CreditKind> {
        let iops = self.iops.as_ref().and_then(|facts| facts.burst.as_ref());
        let throughput = self.throughput.as_ref().and_then(|facts| facts.burst.as_ref());
        match (iops, throughput) {
            (Some(_), None) => Some(CreditKind::Ios),
            (None, Some(_)) => Some(CreditKind::Bytes),
            _ => None,
        }
    }

    /// The largest I/O that counts as one, for a volume with this number of IOPS.
    pub fn unit_kib(&self, iops: Option<u64>) -> u64 {
        let other = self.accounting.unit_by_iops.iter().rev().find(|unit| iops.is_some_and(|iops| iops > unit.above));
        other.map_or(self.accounting.unit_kib.value, |unit| unit.unit_kib.value)
    }

    /// Source, date and status of every fact in the file.
    pub fn origins(&self) -> Vec<Origin<'_>> {
        let mut all = Vec::new();
        let size = &self.size;
        all.extend([&size.minimum_mib, &size.maximum_mib, &size.default_mib].map(Fact::origin));
        all.push(self.accounting.unit_kib.origin());
        all.push(self.accounting.merge_sequential.origin());
        all.push(self.queueing.order.origin());
        all.extend(self.accounting.unit_by_iops.iter().map(|unit| unit.unit_kib.origin()));
        all.extend([&self.until, &self.uses].into_iter().flatten().map(Fact::origin));
        all.extend([&self.accounting.whole_units, &self.volatile].into_iter().flatten().map(Fact::origin));
        all.extend(self.iops.iter().flat_map(IopsFacts::origins));
        all.extend(self.throughput.iter().flat_map(ThroughputFacts::origins));
        all.extend(self.instance_store.iter().flat_map(StoreFacts::origins));
        if let Some(durability) = &self.durability {
            all.push(durability.yearly.origin());
            all.push(durability.annual_failure_rate_percent.origin());
        }
        if let Some(price) = &self.price {
            all.push(price.gib_month_usd.origin());
            all.extend(price.iops_month.iter().chain(&price.mib_per_s_month).map(|tier| tier.usd.origin()));
        }
        all.extend(self.service_time.origins());
        all
    }
}

/// What `credits=` counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CreditKind {
    Ios,
    Bytes,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_catalogue_can_be_read_and_each_file_has_the_name_of_its_type() {
        for (volume, (file, _)) in catalog().unwrap().iter().zip(FILES) {
            assert_eq!(format!("{}.toml", volume.name), file);
        }
    }

    /// What can no longer be had has no price, so that nothing recommends it.
    #[test]
    fn what_is_past_is_not_sold() {
        for file in catalog().unwrap() {
            assert!(file.until.is_none() || file.price.is_none(), "{}", file.name);
        }
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
                "[[iops.provisioned]]",
                "[[iops.by_gib]]\nabove = 0\nbase = { value = 1, source = \"pgdyno\", date = 2026-11-21 }\n[[iops.provisioned]]",
                "either provisioned or by_gib",
            ),
            (
                "default_mib_per_s = { value = 125",
                "default_mib_per_s = { value = 800",
                "more than the least IOPS carry",
            ),
            ("slope = { value = [1, 4]", "slope = { value = [1, 0]", "must not be zero"),
            (
                "[[throughput.by_iops]]\nabove = 0",
                "[[throughput.by_iops]]\nabove = 9_000",
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
