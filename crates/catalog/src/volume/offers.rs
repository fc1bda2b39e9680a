//! The cheapest volume of one type that carries a need at its sustained rate, without credits.
//!
//! What can be chosen depends on the size in steps (RDS gp3 from 400 GiB on). Within one step a larger size, more IOPS and more
//! throughput each cost more and allow more, so the least of each that suffices is the cheapest there; the steps are compared by
//! price.

use serde::{Deserialize, Serialize};

use crate::error::SpecError;
use crate::nearest::nearest_few;
use crate::units::{GIB, MIB, quoted};
use crate::volume::facts::file::{VolumeFile, catalog};
use crate::volume::facts::limits::above;
use crate::volume::facts::price::Prices;
use crate::volume::model_params::{Rates, sustained};
use crate::volume::request::Request;
use crate::volume::request::rules::{Figures, judge};
use crate::volume::resolved::{Burst, Limits, canonical, limits_follow_size, title};

/// Rounding of a sum in floating point: a billionth that is lacking is not.
const ROUNDING: f64 = 1e-9;
/// Names that a refusal lists.
const LISTED: usize = 3;

/// What one volume must have, as its type counts operations.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Need {
    /// The type's name.
    #[serde(rename = "type")]
    pub volume_type: String,
    /// The least size.
    pub least_bytes: u64,
    /// Operations each second, in the tokens that the type charges.
    pub ops_per_s: f64,
    /// Bytes each second.
    pub bytes_per_s: f64,
}

/// A volume that was found: as it resolves, without how long its requests take and what else is the same for every volume of its type.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Offer {
    /// The canonical specification.
    pub spec: String,
    /// The type's name.
    #[serde(rename = "type")]
    pub volume_type: String,
    /// For people.
    pub title: String,
    /// Size in bytes.
    pub size_bytes: u64,
    /// The limits, as the provider states them.
    pub limits: Limits,
    /// What it does beyond them while it has credits.
    pub burst: Option<Burst>,
    /// The largest I/O that counts as one.
    pub accounting_unit_kib: u64,
    /// What it costs a month; `None` if the catalogue does not know.
    pub usd_per_month: Option<f64>,
    /// Region of that price.
    pub price_region: Option<String>,
    /// What that price is made of.
    pub prices: Option<Prices>,
    /// Published yearly durability, in the provider's words.
    pub durability: Option<String>,
    /// Published annual failure rate, low and high.
    pub annual_failure_rate_percent: Option<[f64; 2]>,
    /// How it counts, and how fast it is.
    pub params: Rates,
}

impl Offer {
    fn of(request: &Request, figures: &Figures) -> Self {
        let (file, limits) = (request.file, Limits::of(figures));
        let prices = file.price.as_ref().map(|price| Prices::of(price, limits_follow_size(request, figures)));
        let month =
            |prices: &Prices| prices.usd_per_month(figures.size_bytes, limits.iops, limits.throughput_mib_per_s);
        let durability = file.durability.as_ref();
        Self {
            spec: canonical(request, figures),
            volume_type: file.name.clone(),
            title: title(request, figures, &limits),
            size_bytes: figures.size_bytes,
            limits,
            burst: Burst::of(figures),
            accounting_unit_kib: file.unit_kib(figures.iops),
            usd_per_month: prices.as_ref().map(month),
            price_region: file.price.as_ref().map(|price| price.region.clone()),
            prices,
            durability: durability.map(|facts| facts.yearly.value.clone()),
            annual_failure_rate_percent: durability.map(|facts| facts.annual_failure_rate_percent.value),
            params: Rates::of(request, figures),
        }
    }
}

/// The cheapest volume of the type that has what is needed without credits, in whole GiB; `None` if none has.
///
/// # Errors
/// An unknown type.
///
/// ```
/// use pgdyno_catalog::{Need, cheapest};
/// let need = |gib: u64| Need { volume_type: "rds-gp3".to_owned(), least_bytes: gib << 30, ops_per_s: 4_500.0, bytes_per_s: 1e6 };
/// let found = cheapest(&need(200)).unwrap().unwrap();
/// assert_eq!(found.spec, "rds-gp3:size=400GiB,iops=12000,throughput=500");
/// ```
pub fn cheapest(need: &Need) -> Result<Option<Offer>, SpecError> {
    let files = catalog()?;
    let Some(file) = files.iter().find(|file| file.name == need.volume_type) else {
        let names = files.iter().map(|file| file.name.as_str());
        return Err(SpecError {
            message: format!("no volume type is called {}", quoted(&need.volume_type)),
            remedy: nearest_few(&need.volume_type, names, LISTED).join(" or "),
        });
    };
    let found = steps(file, need.least_bytes).filter_map(|step| in_step(file, need, step));
    // Of equal prices the smaller one: the steps ascend, and `min_by` keeps the first.
    let price = |volume: &Offer| volume.usd_per_month.unwrap_or(f64::INFINITY);
    Ok(found.min_by(|a, b| price(a).total_cmp(&price(b))))
}

/// Ranges of whole GiB within which the same can be chosen, from the least size on.
fn steps(file: &VolumeFile, least_bytes: u64) -> impl Iterator<Item = (u64, u64)> {
    let smallest = (file.size.minimum_mib.value * MIB).max(least_bytes).div_ceil(GIB).max(1);
    let largest = file.size.maximum_mib.value * MIB / GIB;
    let iops = file.iops.iter().flat_map(|facts| {
        let chosen = facts.provisioned.iter().map(|piece| piece.above);
        chosen.chain(facts.by_gib.0.iter().map(|piece| piece.above))
    });
    let throughput = file.throughput.iter().flat_map(|facts| {
        let chosen = facts.provisioned.iter().map(|piece| piece.above);
        chosen.chain(facts.by_gib.0.iter().map(|piece| piece.above))
    });
    let mut begins: Vec<u64> = iops.chain(throughput).map(|above| above + 1).filter(|gib| *gib > smallest).collect();
    begins.push(smallest);
    begins.sort_unstable();
    begins.dedup();
    let ends: Vec<u64> = begins.iter().skip(1).map(|next| next - 1).chain([largest]).collect();
    begins
        .into_iter()
        .zip(ends)
        .map(move |(first, last)| (first, last.min(largest)))
        .filter(|(first, last)| first <= last)
}

/// The cheapest of one step: the least that can be chosen, and the smallest size that allows it.
fn in_step(file: &'static VolumeFile, need: &Need, (first, last): (u64, u64)) -> Option<Offer> {
    let at = first * GIB;
    let throughput = file.throughput.as_ref();
    let mib_per_s = whole(need.bytes_per_s / MIB as f64);
    let chosen = throughput.and_then(|facts| above(&facts.provisioned, at, |piece| piece.above));
    let throughput_mib_per_s = chosen.map(|choice| mib_per_s.max(choice.minimum_mib_per_s.value));
    let for_throughput = match (throughput, throughput_mib_per_s) {
        (Some(facts), Some(chosen)) => facts.iops_for(chosen),
        (Some(facts), None) if !facts.by_iops.is_empty() => facts.iops_for_bytes(need.bytes_per_s * (1.0 - ROUNDING)),
        _ => 0,
    };
    let choice = file.iops.as_ref().and_then(|facts| facts.choice(at));
    let iops = choice.map(|choice| whole(need.ops_per_s).max(choice.minimum.value).max(for_throughput));
    let request = |gib: u64| Request { size_bytes: Some(gib * GIB), iops, throughput_mib_per_s, ..Request::new(file) };
    let gib = least_size(first, last, |gib| carries(&request(gib), need))?;
    let request = request(gib);
    judge(&request).ok().map(|figures| Offer::of(&request, &figures))
}

/// The smallest size from `first` to `last` that suffices, where every larger one does, too.
fn least_size(first: u64, last: u64, suffices: impl Fn(u64) -> bool) -> Option<u64> {
    if suffices(first) {
        return Some(first);
    }
    let (mut low, mut high) = (first, last);
    if !suffices(high) {
        return None;
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if suffices(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(high)
}

fn carries(request: &Request, need: &Need) -> bool {
    let Ok(figures) = judge(request) else { return false };
    let (ops_per_s, bytes_per_s) = sustained(&figures);
    let enough = |has: Option<u64>, needed: f64| has.is_none_or(|has| has as f64 >= needed * (1.0 - ROUNDING));
    enough(ops_per_s, need.ops_per_s) && enough(bytes_per_s, need.bytes_per_s)
}

/// The least whole number that is not smaller, but for the rounding of a sum.
fn whole(number: f64) -> u64 {
    (number * (1.0 - ROUNDING)).ceil() as u64
}
