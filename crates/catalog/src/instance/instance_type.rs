//! Instance types by name, and instances made to measure: memory, processors, and the way to their volumes.

use std::collections::BTreeMap;

use pgdyno_volume::{InstanceLimits, InstanceRate};
use serde::Serialize;

use crate::error::{CatalogError, SpecError};
use crate::instance::file::{EbsRow, InstanceCatalog, Row, instance_catalog};
use crate::instance::history::{History, instance_history};
use crate::nearest::nearest_few;
use crate::units::{KIB, MIB, TIB, count_phrase, parse_count, parse_size, quoted, size_key, size_phrase};

/// The largest instance that is sold has 1,920 vCPUs; this leaves room and stops a slip of the finger.
const VCPUS_MAX: u64 = 4_096;

/// The largest that is sold has 32 TiB.
const MEMORY_BYTES_MAX: u64 = 64 * TIB;

/// How many names a refusal offers.
const OFFERED: usize = 3;

/// What the names of RDS's classes begin with. The rest is the name of the type of EC2 that they run on. Of a class vCPUs, memory and
/// the maximum bandwidth to storage are published (Amazon RDS User Guide, *Hardware specifications for DB instance classes*), and
/// neither baselines nor IOPS.
const RDS_PREFIX: &str = "db.";

/// Bytes in the provider's megabyte.
const MB: f64 = 1e6;

/// What an instance saves up of its IOPS at the maximum rate: fio on m6i.xlarge (40,000 IOPS) delivered a quarter of a
/// second more than the rate, once (public traces of 2025, derived).
const IOPS_DEPTH_NS: u64 = 250_000_000;

/// And of its bandwidth: fio on r5b.large delivered about a second more (public traces of 2020, derived).
const THROUGHPUT_DEPTH_NS: u64 = 1_000_000_000;

/// An instance: a type that is sold, or one made to measure (then without limits to its volumes and without a price).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InstanceType {
    /// Its name, or `vcpus=4,memory=16GiB`.
    pub instance: String,
    /// The type of EC2 whose figures these are, if it is a class of RDS (`db.r6g.large`): of classes no limits to volumes are published.
    pub figures_of: Option<String>,
    /// Processor architecture; `None` if made to measure.
    pub arch: Option<String>,
    /// Virtual processors.
    pub vcpus: u32,
    /// Whether RDS for PostgreSQL has a class of it.
    pub rds: bool,
    /// Whether its CPU is paid with credits.
    pub burstable: bool,
    /// Virtual processors that it may use for ever: all of them, or the baseline of a burstable type; `None`: not known.
    pub sustained_vcpus: Option<f64>,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Limits of the way to its EBS volumes, for all of them together; `None`: no dedicated bandwidth, or not known.
    pub ebs: Option<EbsLimits>,
    /// EBS volumes that it attaches at most; `None` if made to measure.
    pub attachments: Option<u32>,
    /// The most that one volume of a type does there, whatever it is provisioned with; empty on Nitro instances.
    pub volume_iops: BTreeMap<String, u64>,
    /// Linux, on demand; `None` if it is not sold by the hour there.
    pub usd_per_hour: Option<f64>,
    /// Region of the price.
    pub price_region: Option<String>,
    /// Where the figures come from.
    pub source: Option<String>,
    /// When that was so, `YYYY-MM-DD`.
    pub date: Option<String>,
    /// Where the price comes from.
    pub price_source: Option<String>,
    /// When that was so.
    pub price_date: Option<String>,
}

/// Dedicated bandwidth of an instance to its volumes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct EbsLimits {
    /// Without limit of time, at 128 KiB; the provider's decimal MB/s in MiB/s, rounded to three decimals.
    pub baseline_mib_per_s: f64,
    /// For 30 minutes in 24 hours if `burst`, else without limit of time.
    pub maximum_mib_per_s: f64,
    /// Without limit of time, at 16 KiB.
    pub baseline_iops: u64,
    /// For 30 minutes in 24 hours if `burst`, else without limit of time.
    pub maximum_iops: u64,
    /// Whether the maximum is above the baseline.
    pub burst: bool,
    /// Whether it comes with the type; `false`: only if the instance is launched so.
    pub always: bool,
    /// The same for the volume model, exact.
    #[serde(skip)]
    pub model: InstanceLimits,
}

impl InstanceType {
    /// Resolves a type's name, also with a month (`m5.xlarge@2018-12`) for the limits that it had then, or
    /// `vcpus=N,memory=SIZE`.
    ///
    /// # Errors
    /// An unknown type, with the nearest names; a month without record of it; a figure that cannot be read, or makes no
    /// instance.
    ///
    /// ```
    /// use pgdyno_catalog::InstanceType;
    /// let known = InstanceType::parse("r6g.large").unwrap();
    /// assert_eq!((known.vcpus, known.memory_bytes >> 30, known.ebs.unwrap().baseline_iops), (2, 16, 3600));
    /// assert_eq!(InstanceType::parse("memory=16384MiB,vcpus=4").unwrap().instance, "vcpus=4,memory=16GiB");
    /// ```
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let text = text.trim();
        if text.contains('=') {
            return made_to_measure(text);
        }
        if let Some(ec2) = of_rds(text) {
            return Self::class_of_rds(text, ec2);
        }
        if let Some((name, as_of)) = text.split_once('@') {
            return Self::of_then(name.trim(), as_of.trim());
        }
        let catalog = instance_catalog()?;
        let row = catalog.rows.iter().find(|row| row.name.eq_ignore_ascii_case(text));
        row.map(|row| Self::of(row, catalog)).ok_or_else(|| unknown_type(text, catalog))
    }

    /// A class of RDS with the figures of the type of EC2 that it runs on. What RDS asks for it is not known here.
    fn class_of_rds(text: &str, ec2: &str) -> Result<Self, SpecError> {
        let catalog = instance_catalog()?;
        let name = ec2.split('@').next().unwrap_or(ec2).trim();
        if !catalog.rows.iter().any(|row| row.name.eq_ignore_ascii_case(name)) {
            return Err(unknown_class(text, name, catalog));
        }
        Ok(Self::parse(ec2)?.under_rds())
    }

    fn under_rds(self) -> Self {
        let source = self.source.unwrap_or_default();
        Self {
            instance: format!("{RDS_PREFIX}{}", self.instance),
            source: Some(format!(
                "limits of EC2's {}, since of {RDS_PREFIX}* the maximum bandwidth alone is published; {source}",
                self.instance
            )),
            figures_of: Some(self.instance),
            attachments: None,
            usd_per_hour: None,
            price_region: None,
            price_source: None,
            price_date: None,
            ..self
        }
    }

    /// A type with the limits to its volumes that it had in a month. What was asked for it then is not known here.
    fn of_then(name: &str, as_of: &str) -> Result<Self, SpecError> {
        let today = Self::parse(name)?;
        let history = instance_history()?;
        let limits_of = |one: &History| one.rows.get(today.instance.as_str()).copied();
        let Some((then, limits)) =
            history.iter().find(|one| one.as_of == as_of).and_then(|one| Some((one, limits_of(one)?)))
        else {
            return Err(unknown_month(&today.instance, as_of, history));
        };
        let rest = today.source.unwrap_or_default();
        Ok(Self {
            instance: format!("{}@{as_of}", today.instance),
            ebs: Some(EbsLimits::of(&limits)),
            usd_per_hour: None,
            price_region: None,
            source: Some(format!("{}; processors and memory: {rest}", then.source)),
            date: Some(then.date.clone()),
            price_source: None,
            price_date: None,
            ..today
        })
    }

    fn of(row: &Row, catalog: &InstanceCatalog) -> Self {
        let origin = |column: &str| {
            let origin = &catalog.head.columns[column];
            (catalog.head.sources[&origin.source].title.clone(), origin.date.clone())
        };
        let (source, date) = origin("vcpus");
        let price = row.usd_per_hour.map(|_| origin("usd_per_hour"));
        let (price_source, price_date) = price.unzip();
        Self {
            instance: row.name.to_owned(),
            figures_of: None,
            arch: Some(row.arch.to_owned()),
            vcpus: row.vcpus,
            rds: catalog.head.is_of_rds(row.name),
            burstable: catalog.head.is_burstable(row.name),
            sustained_vcpus: catalog.head.sustained_vcpus(row.name, row.vcpus),
            memory_bytes: row.memory_mib * MIB,
            ebs: row.ebs.as_ref().map(EbsLimits::of),
            attachments: Some(row.attachments),
            volume_iops: catalog.head.volume_iops(row.name),
            usd_per_hour: row.usd_per_hour,
            price_region: row.usd_per_hour.map(|_| catalog.head.region.clone()),
            source: Some(source),
            date: Some(date),
            price_source,
            price_date,
        }
    }
}

impl EbsLimits {
    fn of(row: &EbsRow) -> Self {
        let mib_per_s = |mb_per_s: f64| (mb_per_s * MB / MIB as f64 * 1000.0).round() / 1000.0;
        Self {
            baseline_mib_per_s: mib_per_s(row.baseline_mb_per_s),
            maximum_mib_per_s: mib_per_s(row.maximum_mb_per_s),
            baseline_iops: row.baseline_iops,
            maximum_iops: row.maximum_iops,
            burst: row.baseline_mb_per_s < row.maximum_mb_per_s || row.baseline_iops < row.maximum_iops,
            always: row.always,
            model: InstanceLimits {
                iops: InstanceRate {
                    baseline_per_s: row.baseline_iops,
                    maximum_per_s: row.maximum_iops,
                    depth_ns: IOPS_DEPTH_NS,
                },
                throughput: InstanceRate {
                    baseline_per_s: (row.baseline_mb_per_s * MB).round() as u64,
                    maximum_per_s: (row.maximum_mb_per_s * MB).round() as u64,
                    depth_ns: THROUGHPUT_DEPTH_NS,
                },
            },
        }
    }
}

/// All types whose name contains `like`, in any case; all of them without it. By family, smallest first. With `db.` before a part
/// of a name, classes of RDS.
///
/// # Errors
/// A mistake in the catalogue, which is a bug and which the crate's tests would have found.
pub fn instance_types(like: Option<&str>) -> Result<Vec<InstanceType>, CatalogError> {
    let catalog = instance_catalog()?;
    let lower = like.unwrap_or_default().to_ascii_lowercase();
    let class = of_rds(&lower);
    let wanted = class.unwrap_or(&lower);
    let rows =
        catalog.rows.iter().filter(|row| class.map_or(row.name.contains(wanted), |part| row.name.starts_with(part)));
    Ok(rows
        .map(|row| InstanceType::of(row, catalog))
        .map(|found| if class.is_some() { found.under_rds() } else { found })
        .collect())
}

fn unknown_month(name: &str, as_of: &str, history: &[History]) -> SpecError {
    let months: Vec<&str> =
        history.iter().filter(|one| one.rows.contains_key(name)).map(|one| one.as_of.as_str()).collect();
    let known = if months.is_empty() {
        "no earlier ones are known".to_owned()
    } else {
        format!("known are those of {}", months.join(", "))
    };
    let message = format!("no limits of {name} are on record for {}; {known}, and today's", quoted(as_of));
    let then = months.iter().map(|month| format!("{name}@{month}"));
    SpecError { message, remedy: then.chain([name.to_owned()]).collect::<Vec<_>>().join(" or ") }
}

/// What follows `db.` in the name of a class of RDS.
fn of_rds(text: &str) -> Option<&str> {
    let prefix = text.get(..RDS_PREFIX.len())?;
    prefix.eq_ignore_ascii_case(RDS_PREFIX).then(|| &text[RDS_PREFIX.len()..])
}

/// A class without a type of EC2 of its name: the refusal offers classes that have one.
fn unknown_class(text: &str, ec2: &str, catalog: &'static InstanceCatalog) -> SpecError {
    let what = if ec2.eq_ignore_ascii_case("serverless") {
        format!("{} has no fixed size, and so no limits", quoted(text))
    } else {
        format!("{} runs on no type of EC2 that the catalogue has", quoted(text))
    };
    // Classes of Oracle have a suffix: db.r5.large.tpc1.mem2x.
    let size_of_two = ec2.split('.').take(2).collect::<Vec<_>>().join(".");
    let remedy = unknown_type(&size_of_two, catalog).remedy;
    let names = remedy.split(" or ").filter(|name| !name.contains('='));
    let known = catalog.rows.iter().find(|row| row.name.eq_ignore_ascii_case(&size_of_two)).map(|row| row.name);
    let offered: Vec<String> = match known {
        Some(name) => vec![format!("{RDS_PREFIX}{name}")],
        None => names.map(|name| format!("{RDS_PREFIX}{name}")).collect(),
    };
    SpecError { message: what, remedy: offered.join(" or ") }
}

fn unknown_type(name: &str, catalog: &'static InstanceCatalog) -> SpecError {
    let lower = name.to_ascii_lowercase();
    let family = lower.split('.').next().unwrap_or_default();
    let size_of =
        |row: &Row| row.name.split_once('.').filter(|(its, _)| *its == family).map(|(_, size)| size.to_owned());
    let sizes: Vec<String> = catalog.rows.iter().filter_map(size_of).collect();
    let what = if name.is_empty() {
        "an instance has a name, and none is given".to_owned()
    } else {
        format!("there is no instance type {}", quoted(name))
    };
    if sizes.is_empty() {
        let message = format!("{what}; {} are known", count_phrase(catalog.rows.len() as u64));
        let near = nearest_few(&lower, catalog.rows.iter().map(|row| row.name), OFFERED);
        let remedy = if near.is_empty() { vec!["m7i.large", "vcpus=2,memory=8GiB"] } else { near };
        return SpecError { message, remedy: remedy.join(" or ") };
    }
    let size = lower.split_once('.').map_or("", |(_, size)| size);
    let mut near = nearest_few(size, sizes.iter().map(String::as_str), OFFERED);
    if near.is_empty() {
        near = sizes.iter().map(String::as_str).take(OFFERED).collect();
    }
    let remedy: Vec<String> = near.iter().map(|size| format!("{family}.{size}")).collect();
    SpecError { message: format!("{what}; {family} has {}", sizes.join(", ")), remedy: remedy.join(" or ") }
}

/// An instance made to measure, as far as it has been read.
#[derive(Clone, Copy, Debug, Default)]
struct Measures {
    vcpus: Option<u64>,
    memory_bytes: Option<u64>,
}

impl Measures {
    /// A refusal that offers what was read, and something usual for the rest.
    fn refuse(self, message: String) -> SpecError {
        let vcpus = self.vcpus.unwrap_or(2).clamp(1, VCPUS_MAX);
        let whole_kib = self.memory_bytes.unwrap_or(8 << 30) / KIB * KIB;
        SpecError { message, remedy: written(vcpus, whole_kib.clamp(MIB, MEMORY_BYTES_MAX)) }
    }

    /// Reads one `key=value`.
    fn read(&mut self, part: &str) -> Result<(), SpecError> {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        let (key, value) = (key.trim().to_ascii_lowercase(), value.trim());
        let slot = match key.as_str() {
            "vcpus" => {
                let count = parse_count(value);
                let vcpus =
                    count.ok_or_else(|| self.refuse(format!("vcpus={}: write a whole number", quoted(value))))?;
                self.vcpus.replace(vcpus)
            }
            "memory" => {
                let bytes = parse_size(value).map_err(|bad| {
                    let meant = Self { memory_bytes: bad.meant_bytes.or(self.memory_bytes), ..*self };
                    meant.refuse(format!("memory={}: {}", quoted(value), bad.problem))
                })?;
                self.memory_bytes.replace(bytes)
            }
            _ => {
                let message = format!("there is no key {}; an instance is vcpus=4,memory=16GiB", quoted(&key));
                return Err(self.refuse(message));
            }
        };
        if slot.is_some() { Err(self.refuse(format!("{key} is given twice"))) } else { Ok(()) }
    }

    /// Both figures, if they make an instance.
    fn judge(self) -> Result<(u32, u64), SpecError> {
        let (Some(vcpus), Some(memory_bytes)) = (self.vcpus, self.memory_bytes) else {
            let missing = if self.vcpus.is_none() { "vcpus" } else { "memory" };
            return Err(self.refuse(format!("an instance has vcpus and memory, and {missing} is missing")));
        };
        let legal = u32::try_from(vcpus).ok().filter(|_| (1..=VCPUS_MAX).contains(&vcpus));
        let Some(legal_vcpus) = legal else {
            let (most, asked) = (count_phrase(VCPUS_MAX), count_phrase(vcpus));
            return Err(self.refuse(format!("an instance has 1 to {most} vCPUs, {asked} asked")));
        };
        if !(MIB..=MEMORY_BYTES_MAX).contains(&memory_bytes) {
            let (most, asked) = (size_phrase(MEMORY_BYTES_MAX), size_phrase(memory_bytes));
            return Err(self.refuse(format!("an instance has 1 MiB to {most} of memory, {asked} asked")));
        }
        Ok((legal_vcpus, memory_bytes))
    }
}

fn made_to_measure(text: &str) -> Result<InstanceType, SpecError> {
    let mut measures = Measures::default();
    text.split(',').try_for_each(|part| measures.read(part))?;
    let (vcpus, memory_bytes) = measures.judge()?;
    Ok(InstanceType {
        instance: written(u64::from(vcpus), memory_bytes),
        figures_of: None,
        arch: None,
        vcpus,
        rds: false,
        burstable: false,
        sustained_vcpus: Some(f64::from(vcpus)),
        memory_bytes,
        ebs: None,
        attachments: None,
        volume_iops: BTreeMap::new(),
        usd_per_hour: None,
        price_region: None,
        source: None,
        date: None,
        price_source: None,
        price_date: None,
    })
}

fn written(vcpus: u64, memory_bytes: u64) -> String {
    format!("vcpus={vcpus},memory={}", size_key(memory_bytes))
}
