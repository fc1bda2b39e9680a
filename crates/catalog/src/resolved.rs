//! A volume with every figure settled: what the engine attaches and what a run's record says it was.

use pgdyno_volume::{Accounting, BucketParams, Cost, QuantileTable, ServiceTimeParams, VolumeParams};
use serde::{Deserialize, Serialize, Serializer};

use crate::error::SpecError;
use crate::file::{PriceFacts, Tier, VolumeFile, catalog};
use crate::hash::model_hash;
use crate::item::order_name;
use crate::remedy;
use crate::request::Request;
use crate::rules::{Figures, judge};
use crate::units::{GIB, KIB, MIB, count_phrase, size_key, size_phrase};

const NS_PER_US: u64 = 1_000;
const NS_PER_MS: u64 = 1_000_000;

/// A resolved volume specification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resolved {
    /// The canonical specification: type and every figure. It resolves to this same volume.
    pub spec: String,
    /// The catalogue's name of the type.
    #[serde(rename = "type")]
    pub volume_type: String,
    /// For people: `gp3, 100 GiB, 3,000 IOPS, 125 MiB/s`.
    pub title: String,
    /// Size in bytes, a multiple of 1 MiB.
    pub size_bytes: u64,
    /// The limits, as the provider states them.
    pub limits: Limits,
    /// The largest I/O that counts as one.
    pub accounting_unit_kib: u64,
    /// What it costs a month; `None` if nobody sells it, as when its service time is the laboratory's.
    pub usd_per_month: Option<f64>,
    /// Region of that price.
    pub price_region: Option<String>,
    /// Published yearly durability, in the provider's words.
    pub durability: Option<String>,
    /// Published annual failure rate, low and high.
    pub annual_failure_rate_percent: Option<[f64; 2]>,
    /// [`model_hash`] of `params`, 16 hexadecimal digits.
    pub model_hash: String,
    /// What the volume model runs on.
    pub params: VolumeParams,
}

/// The limits of a volume; `None` is unlimited.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// I/O units per second.
    pub iops: Option<u64>,
    /// Rounded to three decimals; the exact figure is in the parameters.
    #[serde(serialize_with = "whole_if_possible")]
    pub throughput_mib_per_s: Option<f64>,
}

impl Resolved {
    /// Resolves `TYPE[:key=value,...]` by the catalogue's rules.
    ///
    /// # Errors
    /// An unknown type or key, a value that cannot be read, or figures that cannot be had together; the error's remedy
    /// holds specifications that are accepted.
    ///
    /// ```
    /// use pgdyno_catalog::Resolved;
    /// let volume = Resolved::parse("gp3:iops=6000,throughput=250").unwrap();
    /// assert_eq!(volume.spec, "gp3:size=100GiB,iops=6000,throughput=250");
    /// assert_eq!(volume.usd_per_month, Some(28.0));
    ///
    /// let refused = Resolved::parse("gp3:iops=20000,size=10GiB").unwrap_err();
    /// assert_eq!(refused.remedy, "gp3:size=40GiB,iops=20000 or gp3:size=10GiB,iops=5000");
    /// ```
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let request = Request::parse(text, catalog()?)?;
        let figures = judge(&request)
            .map_err(|violation| SpecError { message: violation.message, remedy: remedy::text(violation.fixes) })?;
        Ok(Resolved::new(&request, figures))
    }

    /// The volume that a type gives when nothing is asked for.
    pub(crate) fn of_defaults(file: &'static VolumeFile) -> Self {
        let request = Request::new(file);
        let figures = judge(&request).expect("a type's defaults keep its own rules: checked with the file");
        Resolved::new(&request, figures)
    }

    /// What the volume model runs on.
    pub fn params(&self) -> &VolumeParams {
        &self.params
    }

    /// Fingerprint of the model with these parameters.
    pub fn model_hash(&self) -> u64 {
        model_hash(&self.params)
    }

    fn new(request: &Request, figures: Figures) -> Self {
        let file = request.file;
        let Figures { size_bytes, iops, throughput_bytes_per_s } = figures;
        let params = params(request, figures);
        let limits = Limits { iops, throughput_mib_per_s: throughput_bytes_per_s.map(mib_per_s) };
        let durability = file.durability.as_ref();
        let price = file.price.as_ref().filter(|_| !request.is_made_up());
        Resolved {
            spec: canonical(request, &figures),
            volume_type: file.name.clone(),
            title: title(request, size_bytes, &limits),
            size_bytes,
            limits,
            accounting_unit_kib: file.accounting.unit_kib.value,
            usd_per_month: price.map(|price| usd_per_month(price, size_bytes, &limits)),
            price_region: price.map(|price| price.region.clone()),
            durability: durability.map(|facts| facts.yearly.value.clone()),
            annual_failure_rate_percent: durability.map(|facts| facts.annual_failure_rate_percent.value),
            model_hash: format!("{:016x}", model_hash(&params)),
            params,
        }
    }
}

fn params(request: &Request, figures: Figures) -> VolumeParams {
    let file = request.file;
    let bucket = |rate_per_s, own_depth_ms| {
        let depth_ms = request.bucket_ms.unwrap_or(own_depth_ms);
        BucketParams { rate_per_s, depth_ns: depth_ms * NS_PER_MS }
    };
    let iops_limit = file.iops.as_ref().zip(figures.iops);
    let throughput_limit = file.throughput.as_ref().zip(figures.throughput_bytes_per_s);
    VolumeParams {
        size_bytes: figures.size_bytes,
        iops_limit: iops_limit.map(|(facts, rate)| bucket(rate, facts.bucket_depth_ms.value)),
        throughput_limit: throughput_limit.map(|(facts, rate)| bucket(rate, facts.bucket_depth_ms.value)),
        iops_credit: None,
        throughput_credit: None,
        accounting: Accounting {
            unit_bytes: file.accounting.unit_kib.value * KIB,
            merge_sequential: file.accounting.merge_sequential.value,
        },
        cost: Cost::default(),
        service_time: service_time(request),
        order: request.order.unwrap_or(file.queueing.order.value),
    }
}

fn service_time(request: &Request) -> ServiceTimeParams {
    match request.service_us {
        Some(us) => {
            let constant = QuantileTable::constant(us * NS_PER_US);
            ServiceTimeParams { read: constant.clone(), write: constant }
        }
        None => request.file.service_time.params().expect("the tables were checked when the file was read"),
    }
}

/// Only what can be chosen: io2's throughput follows from its IOPS and is no key. An order is named if it is not the
/// type's own.
fn canonical(request: &Request, figures: &Figures) -> String {
    let file = request.file;
    let mut spec = format!("{}:size={}", file.name, size_key(figures.size_bytes));
    if let Some(iops) = figures.iops {
        spec += &format!(",iops={iops}");
    }
    let chosen = file.throughput.as_ref().is_some_and(|facts| facts.provisioned.is_some());
    if let Some(bytes_per_s) = figures.throughput_bytes_per_s.filter(|_| chosen) {
        spec += &format!(",throughput={}", bytes_per_s / MIB);
    }
    for key in request.behaviour_keys(request.other_order()) {
        spec += &format!(",{key}");
    }
    spec
}

fn title(request: &Request, size_bytes: u64, limits: &Limits) -> String {
    let mut parts = vec![request.file.title.clone(), size_phrase(size_bytes)];
    parts.extend(limits.iops.map(|iops| format!("{} IOPS", count_phrase(iops))));
    parts.extend(limits.throughput_mib_per_s.map(|mib_per_s| format!("{} MiB/s", decimal_phrase(mib_per_s))));
    if limits.iops.is_none() && limits.throughput_mib_per_s.is_none() {
        parts.push("no limits".to_owned());
    }
    parts.extend(request.other_order().map(|order| format!("{} order", order_name(order))));
    parts.extend(request.bucket_ms.map(|ms| format!("bucket of {} ms", count_phrase(ms))));
    parts.extend(request.service_us.map(|us| format!("{} us each", count_phrase(us))));
    parts.join(", ")
}

/// Size, IOPS and throughput by their tiers, rounded to cents.
fn usd_per_month(price: &PriceFacts, size_bytes: u64, limits: &Limits) -> f64 {
    let size = size_bytes as f64 / GIB as f64 * price.gib_month_usd.value;
    let iops = limits.iops.map_or(0.0, |iops| in_tiers(&price.iops_month, iops as f64));
    let throughput = limits.throughput_mib_per_s.map_or(0.0, |mib_per_s| in_tiers(&price.mib_per_s_month, mib_per_s));
    ((size + iops + throughput) * 100.0).round() / 100.0
}

fn in_tiers(tiers: &[Tier], amount: f64) -> f64 {
    let ends = tiers.iter().skip(1).map(|tier| tier.above as f64).chain([f64::INFINITY]);
    let share = |(tier, end): (&Tier, f64)| (amount.min(end) - tier.above as f64).max(0.0) * tier.usd.value;
    tiers.iter().zip(ends).map(share).sum()
}

fn mib_per_s(bytes_per_s: u64) -> f64 {
    (bytes_per_s as f64 / MIB as f64 * 1000.0).round() / 1000.0
}

fn decimal_phrase(number: f64) -> String {
    let whole = count_phrase(number.trunc() as u64);
    let fraction = format!("{:.3}", number.fract());
    format!("{whole}{}", fraction[1..].trim_end_matches('0').trim_end_matches('.'))
}

/// 125 and not 125.0, so that the figure reads as it was given.
fn whole_if_possible<S: Serializer>(number: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match number {
        Some(number) if number.fract() == 0.0 => serializer.serialize_some(&(*number as u64)),
        other => other.serialize(serializer),
    }
}
