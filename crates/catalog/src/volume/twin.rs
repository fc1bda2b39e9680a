//! A twin: a volume whose figures come from measurements of a disk that exists, and not from the catalogue.
//!
//! `pgdyno volume fit` writes the file; a person may edit it. This crate opens nothing, so it is handed the text.

use pgdyno_volume::{
    Accounting, BucketParams, Cost, Order, QuantileRow, QuantileTable, ServiceTimeParams, VolumeParams,
};
use serde::Deserialize;

use crate::error::SpecError;
use crate::hash::model_hash;
use crate::units::{KIB, MIB, count_phrase, size_phrase};
use crate::volume::resolved::{Limits, Resolved};

const SCHEMA_VERSION: u32 = 1;
const NS_PER_MS: u64 = 1_000_000;
/// No disk is larger, and larger sizes would overflow.
const SIZE_MIB_MAX: u64 = 1 << 40;
/// Far above any device, and so that products of two rates stay within 64 bits.
const RATE_MAX: u64 = u32::MAX as u64;
/// A request through FUSE is at most this large, and so is the unit that the emulated device is split by.
const UNIT_KIB_MAX: u64 = 1_024;
/// A page: below it a device cannot be asked.
const UNIT_KIB_MIN: u64 = 4;
/// As for a specification: no disk saves up more than a day.
const BUCKET_MS_MAX: u64 = 86_400_000;

/// The file. Tables named `fitted` and `measured` are for people and are not read.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TwinFile {
    schema_version: u32,
    title: String,
    size_mib: u64,
    /// `None`: no limit was met.
    iops: Option<IopsTable>,
    /// `None`: no limit was met.
    throughput: Option<ThroughputTable>,
    accounting: AccountingTable,
    queueing: QueueingTable,
    service_time: ServiceTable,
    #[serde(rename = "fitted")]
    _fitted: Option<toml::Table>,
    #[serde(rename = "measured")]
    _measured: Option<toml::Table>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct IopsTable {
    reads_per_s: u64,
    writes_per_s: u64,
    bucket_ms: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ThroughputTable {
    bytes_per_s: u64,
    bucket_ms: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AccountingTable {
    unit_kib: u64,
    merge_sequential: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct QueueingTable {
    order: Order,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ServiceTable {
    size_kib: Vec<u64>,
    probability_ppm: Vec<u32>,
    read_ns: Vec<Vec<u64>>,
    write_ns: Vec<Vec<u64>>,
}

/// The file that a specification names as a twin: `twin:PATH`, or a path that ends in `.toml`. `None` if it names none.
pub fn twin_path(spec: &str) -> Option<&str> {
    let spec = spec.trim();
    let named = spec.split_once(':').filter(|(kind, _)| kind.trim().eq_ignore_ascii_case("twin"));
    match named {
        Some((_, path)) => Some(path.trim()),
        None => spec.to_ascii_lowercase().ends_with(".toml").then_some(spec),
    }
}

impl Resolved {
    /// Resolves the twin whose file is at `path` and holds `text`.
    ///
    /// # Errors
    /// A text that is not a twin of this version, or figures that no volume can have; the message names the key.
    pub fn of_twin(path: &str, text: &str) -> Result<Self, SpecError> {
        let refuse = |problem: String| SpecError {
            message: format!("{path} is not a twin: {problem}"),
            remedy: "fit it again with `pgdyno volume fit`, or correct the file".to_owned(),
        };
        let file: TwinFile = toml::from_str(text).map_err(|error| refuse(error.to_string().trim().to_owned()))?;
        let params = file.params().map_err(refuse)?;
        let limits = file.limits();
        Ok(Resolved {
            spec: format!("twin:{path}"),
            volume_type: "twin".to_owned(),
            title: file.title_with(&limits),
            size_bytes: params.size_bytes,
            limits,
            burst: None,
            initialization: None,
            degradation: None,
            volatile: false,
            accounting_unit_kib: file.accounting.unit_kib,
            usd_per_month: None,
            price_region: None,
            prices: None,
            durability: None,
            annual_failure_rate_percent: None,
            model_hash: format!("{:016x}", model_hash(&params)),
            params,
        })
    }
}

impl TwinFile {
    fn params(&self) -> Result<VolumeParams, String> {
        if self.schema_version != SCHEMA_VERSION {
            return Err(format!(
                "its schema_version is {}, and this pgdyno reads {SCHEMA_VERSION}",
                self.schema_version
            ));
        }
        within("size_mib", self.size_mib, 1, SIZE_MIB_MAX)?;
        within("accounting.unit_kib", self.accounting.unit_kib, UNIT_KIB_MIN, UNIT_KIB_MAX)?;
        if !self.accounting.unit_kib.is_power_of_two() {
            return Err(format!("accounting.unit_kib is a power of two, {} given", self.accounting.unit_kib));
        }
        let (iops_limit, cost) = match &self.iops {
            Some(table) => table.params().map(|(bucket, cost)| (Some(bucket), cost))?,
            None => (None, Cost::default()),
        };
        Ok(VolumeParams {
            size_bytes: self.size_mib * MIB,
            iops_limit,
            throughput_limit: self.throughput.as_ref().map(ThroughputTable::params).transpose()?,
            iops_credit: None,
            throughput_credit: None,
            accounting: Accounting {
                unit_bytes: self.accounting.unit_kib * KIB,
                merge_sequential: self.accounting.merge_sequential,
            },
            cost,
            service_time: self.service_time.params()?,
            order: self.queueing.order,
            first_touch: None,
            degradation: None,
        })
    }

    fn limits(&self) -> Limits {
        let in_mib = |table: &ThroughputTable| (table.bytes_per_s as f64 / MIB as f64 * 1000.0).round() / 1000.0;
        let own = |table: &IopsTable| (table.reads_per_s != table.writes_per_s).then_some(table.writes_per_s);
        Limits {
            iops: self.iops.as_ref().map(|table| table.reads_per_s),
            write_iops: self.iops.as_ref().and_then(own),
            throughput_mib_per_s: self.throughput.as_ref().map(in_mib),
        }
    }

    fn title_with(&self, limits: &Limits) -> String {
        let mut parts = vec![self.title.clone(), size_phrase(self.size_mib * MIB)];
        parts.extend(self.iops.as_ref().map(IopsTable::phrase));
        parts.extend(limits.throughput_mib_per_s.map(|mib_per_s| format!("{mib_per_s} MiB/s")));
        parts.join(", ")
    }
}

impl IopsTable {
    /// Where reads and writes have rates of their own the device's time is what they share: of R reads or W writes per
    /// second a read costs W tokens and a write R, of R x W that arrive, both divided by what they have in common.
    fn params(&self) -> Result<(BucketParams, Cost), String> {
        let Self { reads_per_s, writes_per_s, bucket_ms } = *self;
        within("iops.reads_per_s", reads_per_s, 1, RATE_MAX)?;
        within("iops.writes_per_s", writes_per_s, 1, RATE_MAX)?;
        let common = greatest_common_divisor(reads_per_s, writes_per_s);
        let tokens = |rate: u64| u32::try_from(rate / common).expect("rates were checked against their maximum");
        let cost = Cost { read_tokens: tokens(writes_per_s), write_tokens: tokens(reads_per_s), whole_units: false };
        Ok((bucket("iops.bucket_ms", reads_per_s / common * writes_per_s, bucket_ms)?, cost))
    }

    fn phrase(&self) -> String {
        let (reads, writes) = (count_phrase(self.reads_per_s), count_phrase(self.writes_per_s));
        if reads == writes { format!("{reads} IOPS") } else { format!("{reads} reads/s, {writes} writes/s") }
    }
}

impl ThroughputTable {
    fn params(&self) -> Result<BucketParams, String> {
        within("throughput.bytes_per_s", self.bytes_per_s, 1, RATE_MAX * KIB)?;
        bucket("throughput.bucket_ms", self.bytes_per_s, self.bucket_ms)
    }
}

impl ServiceTable {
    fn params(&self) -> Result<ServiceTimeParams, String> {
        let read = self.table("read_ns", &self.read_ns)?;
        Ok(ServiceTimeParams { read, write: self.table("write_ns", &self.write_ns)? })
    }

    fn table(&self, key: &str, quantiles: &[Vec<u64>]) -> Result<QuantileTable, String> {
        if quantiles.len() != self.size_kib.len() {
            return Err(format!("service_time.{key} has one row for each of size_kib"));
        }
        let row = |(&kib, service_ns): (&u64, &Vec<u64>)| QuantileRow {
            size_bytes: kib.saturating_mul(KIB),
            service_ns: service_ns.clone(),
        };
        let rows = self.size_kib.iter().zip(quantiles).map(row).collect();
        let table = QuantileTable { probability_ppm: self.probability_ppm.clone(), rows };
        table.broken_rule().map_or(Ok(table), |rule| Err(format!("service_time.{key}: {rule}")))
    }
}

fn bucket(key: &str, rate_per_s: u64, depth_ms: u64) -> Result<BucketParams, String> {
    within(key, depth_ms, 0, BUCKET_MS_MAX)?;
    Ok(BucketParams { rate_per_s, depth_ns: depth_ms * NS_PER_MS })
}

fn within(key: &str, value: u64, minimum: u64, maximum: u64) -> Result<(), String> {
    if (minimum..=maximum).contains(&value) {
        return Ok(());
    }
    Err(format!("{key} is {} to {}, {} given", count_phrase(minimum), count_phrase(maximum), count_phrase(value)))
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}
