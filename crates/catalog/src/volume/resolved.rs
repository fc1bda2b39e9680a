//! A volume with every figure settled: what the engine attaches and what a run's record says it was.

use pgdyno_volume::VolumeParams;
use serde::{Deserialize, Serialize, Serializer};

use crate::degradation::Degradation;
use crate::error::SpecError;
use crate::hash::model_hash;
use crate::restore::{Init, Initialization};
use crate::units::{MIB, count_phrase, size_key, size_phrase};
use crate::volume::facts::file::{VolumeFile, catalog};
use crate::volume::facts::price::Prices;
use crate::volume::model_params::params;
use crate::volume::request::Request;
use crate::volume::request::item::order_name;
use crate::volume::request::remedy;
use crate::volume::request::rules::{BurstFigures, Figures, judge};

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
    /// What it does beyond its limits while it has credits; `None` if it never does.
    #[serde(default)]
    pub burst: Option<Burst>,
    /// How it gets the blocks of the snapshot that it was made from; `None` if they are there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initialization: Option<Initialization>,
    /// How much of the time it has only a part of its limits; `None`: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub degradation: Option<Degradation>,
    /// Whether its content ends with the instance that it belongs to.
    #[serde(default)]
    pub volatile: bool,
    /// The largest I/O that counts as one.
    pub accounting_unit_kib: u64,
    /// What it costs a month; `None` if it is not sold, as when its service time is pgdyno's own.
    pub usd_per_month: Option<f64>,
    /// Region of that price.
    pub price_region: Option<String>,
    /// What that price is made of.
    #[serde(default)]
    pub prices: Option<Prices>,
    /// Published yearly durability, in the provider's words.
    pub durability: Option<String>,
    /// Published annual failure rate, low and high.
    pub annual_failure_rate_percent: Option<[f64; 2]>,
    /// [`model_hash`] of `params`, 16 hexadecimal digits.
    pub model_hash: String,
    /// What the volume model runs on.
    pub params: VolumeParams,
}

/// The limits of a volume, which do not change with time; `None` is unlimited.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// I/O units per second; of reads alone where `write_iops` is given.
    pub iops: Option<u64>,
    /// Written I/O units per second, where they have a limit of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_iops: Option<u64>,
    /// Rounded to three decimals; the exact figure is in the parameters.
    #[serde(serialize_with = "whole_if_possible")]
    pub throughput_mib_per_s: Option<f64>,
}

/// Rates that are paid with credits, and the credits. A kind of which there are none is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Burst {
    /// I/O units per second while I/O credits last.
    pub iops: Option<u64>,
    /// The most I/O credits that are kept; one is an I/O unit. They are earned at `limits.iops` each second.
    pub io_credits: Option<u64>,
    /// I/O credits at first.
    pub io_credits_initial: Option<u64>,
    /// MiB per second while throughput credits last.
    #[serde(serialize_with = "whole_if_possible")]
    pub throughput_mib_per_s: Option<f64>,
    /// The most throughput credits that are kept, in bytes. They are earned at `limits.throughput_mib_per_s`.
    pub throughput_credits_bytes: Option<u64>,
    /// Throughput credits at first.
    pub throughput_credits_initial_bytes: Option<u64>,
}

impl Limits {
    pub(crate) fn of(figures: &Figures) -> Self {
        let Figures { iops, write_iops, throughput_bytes_per_s, .. } = *figures;
        Limits { iops, write_iops, throughput_mib_per_s: throughput_bytes_per_s.map(mib_per_s) }
    }
}

impl Burst {
    pub(crate) fn of(figures: &Figures) -> Option<Self> {
        let Figures { iops_burst, throughput_burst, .. } = figures;
        iops_burst.or(*throughput_burst).map(|_| Burst {
            iops: iops_burst.map(|burst| burst.rate_per_s),
            io_credits: iops_burst.map(|burst| burst.capacity),
            io_credits_initial: iops_burst.map(|burst| burst.initial),
            throughput_mib_per_s: throughput_burst.map(|burst| mib_per_s(burst.rate_per_s)),
            throughput_credits_bytes: throughput_burst.map(|burst| burst.capacity),
            throughput_credits_initial_bytes: throughput_burst.map(|burst| burst.initial),
        })
    }
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
        let Figures { size_bytes, iops, .. } = figures;
        let params = params(request, &figures);
        let limits = Limits::of(&figures);
        let durability = file.durability.as_ref();
        let price = file.price.as_ref().filter(|_| !request.is_made_up());
        let prices = price.map(|price| Prices::of(price, limits_follow_size(request, &figures)));
        let month = |prices: &Prices| prices.usd_per_month(size_bytes, limits.iops, limits.throughput_mib_per_s);
        Resolved {
            spec: canonical(request, &figures),
            volume_type: file.name.clone(),
            title: title(request, &figures, &limits),
            size_bytes,
            limits,
            burst: Burst::of(&figures),
            initialization: request.init.map(|init| init.facts(size_bytes)),
            degradation: request.degraded.and_then(|degraded| degraded.facts(&file.name)),
            volatile: file.volatile.as_ref().is_some_and(|fact| fact.value),
            accounting_unit_kib: file.unit_kib(iops),
            usd_per_month: prices.as_ref().map(month),
            price_region: price.map(|price| price.region.clone()),
            prices,
            durability: durability.map(|facts| facts.yearly.value.clone()),
            annual_failure_rate_percent: durability.map(|facts| facts.annual_failure_rate_percent.value),
            model_hash: format!("{:016x}", model_hash(&params)),
            params,
        }
    }
}

impl Request {
    /// The request with every figure that can be chosen written out.
    pub(crate) fn settled(&self, figures: &Figures) -> Self {
        let (iops, throughput) = (self.file.iops.as_ref(), self.file.throughput.as_ref());
        let iops = iops.and_then(|facts| facts.choice(figures.size_bytes)).and(figures.iops);
        let throughput =
            throughput.and_then(|facts| facts.choice(figures.size_bytes)).and(figures.throughput_bytes_per_s);
        Self {
            size_bytes: Some(figures.size_bytes),
            iops,
            throughput_mib_per_s: throughput.map(|bytes_per_s| bytes_per_s / MIB),
            ..*self
        }
    }
}

/// Whether the largest volume of the type, with the IOPS and the throughput that were chosen, has higher limits or more burst.
pub(crate) fn limits_follow_size(request: &Request, figures: &Figures) -> bool {
    let largest = Request { size_bytes: Some(request.file.size.maximum_mib.value * MIB), ..request.settled(figures) };
    let other = |at: &Figures| Figures { size_bytes: figures.size_bytes, ..*at };
    let full = judge(&Request { credits: None, init: None, ..request.settled(figures) });
    judge(&Request { credits: None, init: None, ..largest }).is_ok_and(|at| full.is_ok_and(|here| other(&at) != here))
}

/// Only what can be chosen: io2's throughput follows from its IOPS and is not a key. An order is named if it is not the
/// type's own, credits if they are not full.
pub(crate) fn canonical(request: &Request, figures: &Figures) -> String {
    let (file, size_bytes) = (request.file, figures.size_bytes);
    let store = request.instance_store().map(|store| format!("instance={},", store.name)).unwrap_or_default();
    let mut spec = format!("{}:{store}size={}", file.name, size_key(size_bytes));
    let iops_choice = file.iops.as_ref().and_then(|facts| facts.choice(size_bytes));
    if let Some((_, iops)) = iops_choice.zip(figures.iops) {
        spec += &format!(",iops={iops}");
    }
    let throughput_choice = file.throughput.as_ref().and_then(|facts| facts.choice(size_bytes));
    if let Some((_, bytes_per_s)) = throughput_choice.zip(figures.throughput_bytes_per_s) {
        spec += &format!(",throughput={}", bytes_per_s / MIB);
    }
    for key in credits_key(request, figures).into_iter().chain(request.behaviour_keys(request.other_order())) {
        spec += &format!(",{key}");
    }
    spec
}

/// `credits=` unless they are full, which is the default.
fn credits_key(request: &Request, figures: &Figures) -> Option<String> {
    let bursts = [figures.iops_burst, figures.throughput_burst];
    request.credits_key().filter(|_| bursts.iter().flatten().any(|burst| burst.initial < burst.capacity))
}

pub(crate) fn title(request: &Request, figures: &Figures, limits: &Limits) -> String {
    let mut parts = vec![request.file.title.clone()];
    parts.extend(request.instance_store().map(|store| store.name.clone()));
    parts.push(size_phrase(figures.size_bytes));
    let burst = |burst: Option<BurstFigures>, rate: &dyn Fn(u64) -> String| {
        burst.map_or(String::new(), |burst| format!(" ({} with credits)", rate(burst.rate_per_s)))
    };
    parts.extend(limits.iops.map(|iops| match limits.write_iops {
        Some(writes) => format!("{} reads/s, {} writes/s", count_phrase(iops), count_phrase(writes)),
        None => format!("{} IOPS{}", count_phrase(iops), burst(figures.iops_burst, &count_phrase)),
    }));
    let faster = burst(figures.throughput_burst, &|rate| decimal_phrase(mib_per_s(rate)));
    parts.extend(limits.throughput_mib_per_s.map(|mib_per_s| format!("{} MiB/s{faster}", decimal_phrase(mib_per_s))));
    if limits.iops.is_none() && limits.throughput_mib_per_s.is_none() {
        parts.push("no limits".to_owned());
    }
    let credits = credits_key(request, figures).and_then(|key| Some(key.split_once('=')?.1.to_owned()));
    parts.extend(credits.map(|credits| format!("{credits} credits at first")));
    parts.extend(request.init.map(Init::phrase));
    parts.extend(request.degraded.map(|degraded| degraded.phrase(&request.file.name)));
    parts.extend(request.other_order().map(|order| format!("{} order", order_name(order))));
    parts.extend(request.bucket_ms.map(|ms| format!("bucket of {} ms", count_phrase(ms))));
    parts.extend(request.service_us.map(|us| format!("{} us each", count_phrase(us))));
    parts.join(", ")
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
