//! The list of volume types, for people who choose one.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::error::CatalogError;
use crate::fact::{Source, Status};
use crate::file::{VolumeFile, catalog};
use crate::item::keys;
use crate::resolved::Resolved;
use crate::units::MIB;

/// A volume type and the range of what can be had.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TypeSummary {
    /// What is written before the colon.
    #[serde(rename = "type")]
    pub volume_type: String,
    /// For people.
    pub title: String,
    /// One line on what it is.
    pub summary: String,
    /// Other accepted names, each with the reason.
    pub aliases: BTreeMap<String, String>,
    /// Keys that the type understands.
    pub keys: Vec<&'static str>,
    /// Size in bytes.
    pub size_bytes: Allowed,
    /// I/O units per second; `None` is unlimited.
    pub iops: Option<Allowed>,
    /// IOPS that each GiB allows.
    pub iops_per_gib_max: Option<u64>,
    /// MiB per second, a derived minimum rounded down; `None` is unlimited.
    pub throughput_mib_per_s: Option<Allowed>,
    /// MiB per second that each IOPS allows.
    pub throughput_mib_per_s_per_iops: Option<f64>,
    /// Published yearly durability.
    pub durability: Option<String>,
    /// The specification without a key, resolved.
    pub default_spec: String,
    /// Its price.
    pub default_usd_per_month: Option<f64>,
    /// Region of the price.
    pub price_region: Option<String>,
    /// Where the facts come from.
    pub sources: Vec<SourceUse>,
}

/// The least, the most, and what one gets without asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Allowed {
    /// The least.
    pub minimum: u64,
    /// The most.
    pub maximum: u64,
    /// Without asking, at the default size; `None` if it cannot be chosen.
    pub default: Option<u64>,
}

/// A source, how many facts rest on it, how they follow from it, and their newest date.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SourceUse {
    /// The source.
    #[serde(flatten)]
    pub source: Source,
    /// Newest day on which it was read or for which it says it holds.
    pub date: String,
    /// How many facts follow from it in which way.
    pub facts: BTreeMap<Status, usize>,
}

/// All volume types, in the order in which they are listed.
///
/// # Errors
/// A mistake in a catalogue file, which is a bug and which the crate's tests would have found.
pub fn types() -> Result<Vec<TypeSummary>, CatalogError> {
    Ok(catalog()?.iter().map(summary).collect())
}

fn summary(file: &'static VolumeFile) -> TypeSummary {
    let default = Resolved::of_defaults(file);
    let (iops, throughput) = (file.iops.as_ref(), file.throughput.as_ref());
    TypeSummary {
        volume_type: file.name.clone(),
        title: file.title.clone(),
        summary: file.summary.clone(),
        aliases: file.aliases.iter().map(|alias| (alias.name.clone(), alias.reason.clone())).collect(),
        keys: keys(file),
        size_bytes: Allowed {
            minimum: file.size.minimum_mib.value * MIB,
            maximum: file.size.maximum_mib.value * MIB,
            default: Some(default.size_bytes),
        },
        iops: iops.map(|facts| Allowed {
            minimum: facts.minimum.value,
            maximum: facts.maximum.value,
            default: default.limits.iops,
        }),
        iops_per_gib_max: iops.map(|facts| facts.maximum_per_gib.value),
        throughput_mib_per_s: throughput.map(|facts| {
            let derived = iops.map_or(0, |iops| iops.minimum.value) * facts.mib_per_s_per_1000_iops.value / 1000;
            let own = facts.provisioned.as_ref();
            Allowed {
                minimum: own.map_or(derived, |own| own.minimum_mib_per_s.value),
                maximum: facts.maximum_mib_per_s.value,
                default: own.map(|own| own.default_mib_per_s.value),
            }
        }),
        throughput_mib_per_s_per_iops: throughput.map(|facts| facts.mib_per_s_per_1000_iops.value as f64 / 1000.0),
        durability: default.durability,
        default_spec: default.spec,
        default_usd_per_month: default.usd_per_month,
        price_region: default.price_region,
        sources: sources(file),
    }
}

fn sources(file: &VolumeFile) -> Vec<SourceUse> {
    let mut uses: BTreeMap<&str, (&str, BTreeMap<Status, usize>)> = BTreeMap::new();
    for (source, date, status) in file.origins() {
        let (newest, facts) = uses.entry(source).or_insert((date, BTreeMap::new()));
        *newest = date.max(*newest);
        *facts.entry(status).or_default() += 1;
    }
    let described = |(key, (date, facts)): (&str, (&str, _))| SourceUse {
        source: file.sources[key].clone(),
        date: date.to_owned(),
        facts,
    };
    uses.into_iter().map(described).collect()
}
