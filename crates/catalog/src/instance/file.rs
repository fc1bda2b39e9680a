//! The instance catalogue as it is written: one table of types, and where each of its columns comes from.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::error::CatalogError;
use crate::fact::{Fact, Source, Status, day};

pub(crate) const SCHEMA_VERSION: u32 = 1;
const FILE: (&str, &str) = ("ec2.toml", include_str!("../../../../catalog/instances/ec2.toml"));
const ROWS: (&str, &str) = ("ec2.csv", include_str!("../../../../catalog/instances/ec2.csv"));

const COLUMNS: [&str; 11] = [
    "name",
    "arch",
    "vcpus",
    "memory_mib",
    "ebs",
    "baseline_mb_per_s",
    "maximum_mb_per_s",
    "baseline_iops",
    "maximum_iops",
    "usd_per_hour",
    "attachments",
];

/// Every type, and what the file says of them all.
#[derive(Debug)]
pub(crate) struct InstanceCatalog {
    pub head: InstanceFile,
    pub rows: Vec<Row>,
}

/// The file beside the table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct InstanceFile {
    pub schema_version: u32,
    /// Region of the prices.
    pub region: String,
    /// Name of the table's file.
    pub rows: String,
    pub sources: BTreeMap<String, Source>,
    pub xen: XenFacts,
    pub burstable: BurstableFacts,
    pub rds: RdsFacts,
    pub columns: BTreeMap<String, Origin>,
}

/// What is not of the Nitro System.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct XenFacts {
    /// What is before the dot in the names of its types.
    pub families: Fact<Vec<String>>,
    /// The most that one volume of a type does there.
    pub volume_iops: BTreeMap<String, Fact<u64>>,
}

/// Types whose CPU is paid with credits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BurstableFacts {
    /// What is before the dot in the names of its types.
    pub families: Fact<Vec<String>>,
    /// What each vCPU of a type may use for ever, in per cent.
    pub baseline_percent: BTreeMap<String, Fact<f64>>,
}

/// What RDS has of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RdsFacts {
    /// What is before the dot in the names of the types that RDS has classes of.
    pub families: Fact<Vec<String>>,
}

/// Where the values of a column come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Origin {
    /// Key into the file's `[sources]`.
    pub source: String,
    #[serde(deserialize_with = "day")]
    pub date: String,
    #[serde(default)]
    pub status: Status,
}

/// One type.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub name: &'static str,
    pub arch: &'static str,
    pub vcpus: u32,
    pub memory_mib: u64,
    pub ebs: Option<EbsRow>,
    pub usd_per_hour: Option<f64>,
    /// EBS volumes that it attaches, at most.
    pub attachments: u32,
}

/// Its dedicated bandwidth to volumes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct EbsRow {
    pub always: bool,
    pub baseline_mb_per_s: f64,
    pub maximum_mb_per_s: f64,
    pub baseline_iops: u64,
    pub maximum_iops: u64,
}

/// The instance types, read once.
pub(crate) fn instance_catalog() -> Result<&'static InstanceCatalog, CatalogError> {
    static CATALOG: OnceLock<Result<InstanceCatalog, CatalogError>> = OnceLock::new();
    CATALOG.get_or_init(|| InstanceCatalog::read(FILE.1, ROWS.1)).as_ref().map_err(Clone::clone)
}

impl InstanceCatalog {
    /// Reads both files and checks them.
    pub fn read(head: &str, rows: &'static str) -> Result<Self, CatalogError> {
        let broken = |file: &str, problem: String| CatalogError { file: format!("instances/{file}"), problem };
        let head: InstanceFile = toml::from_str(head).map_err(|error| broken(FILE.0, error.to_string()))?;
        head.check().map_err(|problem| broken(FILE.0, problem))?;
        let rows = read_rows(rows).map_err(|problem| broken(ROWS.0, problem))?;
        Ok(Self { head, rows })
    }
}

impl InstanceFile {
    fn check(&self) -> Result<(), String> {
        if self.schema_version != SCHEMA_VERSION {
            return Err(format!("schema_version {} is not {SCHEMA_VERSION}", self.schema_version));
        }
        if self.rows != ROWS.0 {
            return Err(format!("rows is {:?} and not {:?}", self.rows, ROWS.0));
        }
        let mut used = vec![&self.xen.families.source];
        used.extend(self.xen.volume_iops.values().map(|most| &most.source));
        used.extend([&self.burstable.families.source, &self.rds.families.source]);
        used.extend(self.burstable.baseline_percent.values().map(|percent| &percent.source));
        let wrong = self.burstable.baseline_percent.iter().find(|(_, percent)| !(0.0..=100.0).contains(&percent.value));
        if let Some((name, percent)) = wrong {
            return Err(format!("the baseline of {name} is {} %", percent.value));
        }
        for column in &COLUMNS[1..] {
            let origin = self.columns.get(*column).ok_or(format!("column {column} has no source"))?;
            used.push(&origin.source);
        }
        match used.into_iter().find(|source| !self.sources.contains_key(*source)) {
            Some(source) => Err(format!("source {source:?} is not in [sources]")),
            None => Ok(()),
        }
    }

    /// The most that one volume of a type does on an instance; a type that is not in it does what it is provisioned with.
    pub fn volume_iops(&self, instance: &str) -> BTreeMap<String, u64> {
        let is_xen = is_of(instance, &self.xen.families.value);
        let all = self.xen.volume_iops.iter().filter(|_| is_xen);
        all.map(|(volume_type, most)| (volume_type.clone(), most.value)).collect()
    }
}

impl InstanceFile {
    /// Whether a type's CPU is paid with credits.
    pub fn is_burstable(&self, instance: &str) -> bool {
        is_of(instance, &self.burstable.families.value)
    }

    /// Whether RDS for PostgreSQL has a class of the type.
    pub fn is_of_rds(&self, instance: &str) -> bool {
        is_of(instance, &self.rds.families.value)
    }

    /// vCPUs that a type may use in the long run: its baseline where the CPU is paid with credits. `None`: it has one that is not known.
    pub fn sustained_vcpus(&self, instance: &str, vcpus: u32) -> Option<f64> {
        if !self.is_burstable(instance) {
            return Some(f64::from(vcpus));
        }
        let percent = self.burstable.baseline_percent.get(instance)?.value;
        Some(percent * f64::from(vcpus) / 100.0)
    }
}

fn is_of(instance: &str, families: &[String]) -> bool {
    let family = instance.split('.').next().unwrap_or(instance);
    families.iter().any(|one| one == family)
}

fn read_rows(text: &'static str) -> Result<Vec<Row>, String> {
    let mut lines = text.lines();
    if lines.next() != Some(COLUMNS.join(",").as_str()) {
        return Err(format!("the first line is not {}", COLUMNS.join(",")));
    }
    let numbered = lines.enumerate();
    let rows = numbered.map(|(i, line)| read_row(line).map_err(|problem| format!("line {}: {problem}", i + 2)));
    let rows: Vec<Row> = rows.collect::<Result<_, _>>()?;
    let mut names: Vec<&str> = rows.iter().map(|row| row.name).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("{} is there twice", pair[0])),
        None => Ok(rows),
    }
}

fn read_row(line: &'static str) -> Result<Row, String> {
    let fields: Vec<&str> = line.split(',').collect();
    let &[name, arch, vcpus, memory_mib, ebs, base_mb, max_mb, base_iops, max_iops, usd, attachments] =
        fields.as_slice()
    else {
        return Err(format!("{} fields are not {}", fields.len(), COLUMNS.len()));
    };
    let row = Row {
        name,
        arch,
        vcpus: number("vcpus", vcpus)?,
        memory_mib: number("memory_mib", memory_mib)?,
        ebs: read_ebs(ebs, [base_mb, max_mb, base_iops, max_iops])?,
        usd_per_hour: if usd.is_empty() { None } else { Some(number("usd_per_hour", usd)?) },
        attachments: number("attachments", attachments)?,
    };
    if row.vcpus == 0 || row.memory_mib == 0 {
        return Err("an instance has a processor and memory".to_owned());
    }
    Ok(row)
}

/// The limits of one line; `None` for a type that has none of its own.
pub(crate) fn read_ebs(ebs: &str, limits: [&str; 4]) -> Result<Option<EbsRow>, String> {
    let always = match ebs {
        "default" => true,
        "supported" => false,
        "unsupported" if limits.iter().all(|limit| limit.is_empty()) => return Ok(None),
        other => return Err(format!("ebs is {other:?}")),
    };
    let [baseline_mb_per_s, maximum_mb_per_s, baseline_iops, maximum_iops] = limits;
    let row = EbsRow {
        always,
        baseline_mb_per_s: number("baseline_mb_per_s", baseline_mb_per_s)?,
        maximum_mb_per_s: number("maximum_mb_per_s", maximum_mb_per_s)?,
        baseline_iops: number("baseline_iops", baseline_iops)?,
        maximum_iops: number("maximum_iops", maximum_iops)?,
    };
    // Written so that a figure that is not a number is refused as well.
    let sound = row.baseline_mb_per_s > 0.0 && row.maximum_mb_per_s >= row.baseline_mb_per_s;
    if !sound || row.baseline_iops == 0 || row.maximum_iops < row.baseline_iops {
        return Err("a baseline is above nothing and not above its maximum".to_owned());
    }
    Ok(Some(row))
}

fn number<T: std::str::FromStr>(column: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{column} is {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "name,arch,vcpus,memory_mib,ebs,baseline_mb_per_s,maximum_mb_per_s,baseline_iops,\
                          maximum_iops,usd_per_hour,attachments";

    #[test]
    fn the_table_can_be_read() {
        assert_eq!(instance_catalog().unwrap().rows.len(), 1_395);
    }

    #[test]
    fn every_family_of_xen_is_there_and_nothing_twice() {
        let catalog = instance_catalog().unwrap();
        let families = &catalog.head.xen.families.value;
        assert!(families.is_sorted_by(|a, b| a < b), "{families:?}");
        let names = || catalog.rows.iter().map(|row| row.name);
        for family in families {
            assert!(names().any(|name| name.strip_prefix(family.as_str()).is_some_and(|rest| rest.starts_with('.'))));
        }
        // As many as the API calls xen.
        assert_eq!(names().filter(|name| !catalog.head.volume_iops(name).is_empty()).count(), 74);
        for volume_type in catalog.head.xen.volume_iops.keys() {
            assert!(crate::types().unwrap().iter().any(|one| one.volume_type == *volume_type), "{volume_type}");
        }
    }

    #[test]
    fn every_burstable_type_that_is_sold_has_its_baseline_and_no_other_type() {
        let catalog = instance_catalog().unwrap();
        let sustained = |name: &str| {
            let row = catalog.rows.iter().find(|row| row.name == name).unwrap();
            catalog.head.sustained_vcpus(name, row.vcpus)
        };
        // The guide: a t3.xlarge earns 96 credits an hour, which is 40 % of each of its 4 vCPUs.
        assert_eq!((sustained("t4g.xlarge"), sustained("t2.2xlarge")), (Some(1.6), Some(1.36)));
        assert_eq!((sustained("r6g.large"), sustained("t8i.medium")), (Some(2.0), None));
        let burstable: Vec<_> = catalog.rows.iter().filter(|row| catalog.head.is_burstable(row.name)).collect();
        assert!(burstable.iter().all(|row| row.usd_per_hour.is_none() || sustained(row.name).is_some()));
        let baselines = &catalog.head.burstable.baseline_percent;
        assert_eq!(baselines.len(), 28);
        for family in &catalog.head.rds.families.value {
            assert!(catalog.rows.iter().any(|row| row.name.split('.').next() == Some(family)), "{family}");
        }
        for name in baselines.keys() {
            assert!(burstable.iter().any(|row| row.name == *name), "{name}");
        }
    }

    #[test]
    fn a_mistake_names_its_line() {
        for (row, complaint) in [
            ("a.b,x86_64,2,1024,default,1,2,3,4", "fields are not 11"),
            ("a.b,x86_64,2.5,1024,default,1,2,3,4,0.1,25", "vcpus is \"2.5\""),
            ("a.b,x86_64,0,1024,default,1,2,3,4,0.1,25", "has a processor"),
            ("a.b,x86_64,2,1024,perhaps,1,2,3,4,0.1,25", "ebs is \"perhaps\""),
            ("a.b,x86_64,2,1024,unsupported,1,,,,0.1,25", "ebs is \"unsupported\""),
            ("a.b,x86_64,2,1024,default,,,,,0.1,25", "baseline_mb_per_s is \"\""),
            ("a.b,x86_64,2,1024,default,NaN,2,3,4,0.1,25", "not above its maximum"),
            ("a.b,x86_64,2,1024,default,1,2,3,4,0.1,many", "attachments is \"many\""),
            ("a.b,x86_64,2,1024,default,1,2,5,4,0.1,25", "not above its maximum"),
            ("a.b,x86_64,2,1024,default,1,2,3,4,free,25", "usd_per_hour is \"free\""),
            ("a.b,x86_64,2,1,default,1,2,3,4,,25\na.b,x86_64,2,1,default,1,2,3,4,,25", "a.b is there twice"),
        ] {
            let text: &'static str = format!("{HEADER}\n{row}\n").leak();
            let error = InstanceCatalog::read(FILE.1, text).unwrap_err().to_string();
            assert!(error.contains(complaint) && error.contains("instances/ec2.csv"), "{row}: {error}");
        }
        let error = InstanceCatalog::read(FILE.1, "name,arch\n").unwrap_err().to_string();
        assert!(error.contains("the first line"), "{error}");
    }

    #[test]
    fn every_column_has_a_known_source() {
        for (from, to, complaint) in [
            ("usd_per_hour =", "usd_an_hour =", "usd_per_hour has no source"),
            ("[sources.ec2_prices]", "[sources.prices]", "ec2_prices"),
            ("[sources.ebs_piops_guide]", "[sources.guide]", "ebs_piops_guide"),
            ("date = 2026-07-20", "date = \"2026-07-20\"", "datetime"),
            ("rows = \"ec2.csv\"", "rows = \"other.csv\"", "other.csv"),
        ] {
            let error = InstanceCatalog::read(&FILE.1.replacen(from, to, 1), ROWS.1).unwrap_err().to_string();
            assert!(error.contains(complaint), "{error}");
        }
    }
}
