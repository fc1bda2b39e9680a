//! The list of volume types, for people who choose one.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::error::CatalogError;
use crate::fact::{Source, Status};
use crate::units::{GIB, MIB};
use crate::volume::facts::file::{VolumeFile, catalog};
use crate::volume::facts::limits::ThroughputFacts;
use crate::volume::facts::piecewise::Piecewise;
use crate::volume::facts::store::StoreFacts;
use crate::volume::request::item::keys;
use crate::volume::resolved::Resolved;

/// A volume type and the range of what is sold.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TypeSummary {
    /// What is written before the colon.
    #[serde(rename = "type")]
    pub volume_type: String,
    /// For people.
    pub title: String,
    /// One line on what it is.
    pub summary: String,
    /// Who sells it.
    pub provider: String,
    /// The last day on which it was sold as described, where that is past.
    pub until: Option<String>,
    /// What its provider recommends it for; `None` where that is not in the catalogue.
    pub uses: Option<String>,
    /// Whether its content ends with the instance that it belongs to.
    pub volatile: bool,
    /// Instance types that it may be the storage of, in the order in which they are listed; empty for any other type.
    pub instances: Vec<String>,
    /// Other accepted names, each with the reason.
    pub aliases: BTreeMap<String, String>,
    /// Keys that the type understands.
    pub keys: Vec<&'static str>,
    /// Size in bytes.
    pub size_bytes: Allowed,
    /// I/O units per second, without credits and of reads alone where writes have a limit of their own; `None` is
    /// unlimited.
    pub iops: Option<Allowed>,
    /// Written I/O units per second, where they have a limit of their own.
    pub write_iops: Option<Allowed>,
    /// The highest rate that is paid with I/O credits.
    pub burst_iops_max: Option<u64>,
    /// IOPS that each GiB allows.
    pub iops_per_gib_max: Option<u64>,
    /// MiB per second, a derived minimum rounded down; `None` is unlimited.
    pub throughput_mib_per_s: Option<Allowed>,
    /// The highest rate that is paid with throughput credits.
    pub burst_throughput_mib_per_s_max: Option<u64>,
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
    let ends = Ends::of(file);
    let (iops, throughput) = (file.iops.as_ref(), file.throughput.as_ref());
    TypeSummary {
        volume_type: file.name.clone(),
        title: file.title.clone(),
        summary: file.summary.clone(),
        provider: file.provider.clone(),
        until: file.until.as_ref().map(|fact| fact.value.clone()),
        uses: file.uses.as_ref().map(|fact| fact.value.clone()),
        volatile: default.volatile,
        instances: file.instance_store.iter().flat_map(|facts| &facts.types).map(|one| one.name.clone()).collect(),
        aliases: file.aliases.iter().map(|alias| (alias.name.clone(), alias.reason.clone())).collect(),
        keys: keys(file),
        size_bytes: Allowed {
            minimum: file.size.minimum_mib.value * MIB,
            maximum: file.size.maximum_mib.value * MIB,
            default: Some(default.size_bytes),
        },
        iops: ends.iops(file, default.limits.iops),
        write_iops: ends.write_iops(file),
        burst_iops_max: iops.and_then(|facts| ends.highest(&facts.burst.as_ref()?.by_gib)),
        iops_per_gib_max: iops.and_then(|facts| facts.provisioned.last()).map(|piece| piece.maximum_per_gib.value),
        throughput_mib_per_s: throughput.map(|facts| ends.throughput(file, facts)),
        burst_throughput_mib_per_s_max: throughput.and_then(|facts| ends.highest(&facts.burst.as_ref()?.by_gib)),
        throughput_mib_per_s_per_iops: throughput
            .and_then(|facts| facts.by_iops.0.first())
            .and_then(|piece| piece.slope.as_ref())
            .map(|slope| slope.value[0] as f64 / slope.value[1] as f64),
        durability: default.durability,
        default_spec: default.spec,
        default_usd_per_month: default.usd_per_month,
        price_region: default.price_region,
        sources: sources(file),
    }
}

/// The smallest and the largest volume of a type, between which everything lies that it can have.
struct Ends {
    smallest_bytes: u64,
    largest_bytes: u64,
}

impl Ends {
    fn of(file: &VolumeFile) -> Self {
        Self { smallest_bytes: file.size.minimum_mib.value * MIB, largest_bytes: file.size.maximum_mib.value * MIB }
    }

    /// The range of what follows from the size; it cannot be chosen, so it has no default.
    fn range(&self, by_gib: &Piecewise) -> Option<Allowed> {
        let at = |bytes| by_gib.at(bytes, GIB, 1);
        Some(Allowed { minimum: at(self.smallest_bytes)?.max(1), maximum: at(self.largest_bytes)?, default: None })
    }

    fn highest(&self, by_gib: &Piecewise) -> Option<u64> {
        let beginnings = by_gib.0.iter().map(|piece| (piece.above + 1) * GIB);
        beginnings.chain([self.smallest_bytes, self.largest_bytes]).filter_map(|bytes| by_gib.at(bytes, GIB, 1)).max()
    }

    fn iops(&self, file: &VolumeFile, default: Option<u64>) -> Option<Allowed> {
        if let Some(store) = &file.instance_store {
            return store_range(store, 0);
        }
        let facts = file.iops.as_ref()?;
        match (facts.provisioned.first(), facts.provisioned.last()) {
            (Some(first), Some(last)) => {
                Some(Allowed { minimum: first.minimum.value, maximum: last.maximum.value, default })
            }
            _ => self.range(&facts.by_gib),
        }
    }

    fn write_iops(&self, file: &VolumeFile) -> Option<Allowed> {
        match &file.instance_store {
            Some(store) => store_range(store, 1),
            None => self.range(&file.iops.as_ref()?.write_by_gib),
        }
    }

    fn throughput(&self, file: &VolumeFile, facts: &ThroughputFacts) -> Allowed {
        if let (Some(first), Some(last)) = (facts.provisioned.first(), facts.provisioned.last()) {
            return Allowed {
                minimum: first.minimum_mib_per_s.value,
                maximum: last.maximum_mib_per_s.value,
                default: Some(first.default_mib_per_s.value),
            };
        }
        let by_iops = |iops: u64| facts.by_iops.at(iops, 1, 1).unwrap_or(0);
        self.range(&facts.by_gib).unwrap_or_else(|| {
            let iops = self.iops(file, None).unwrap_or(Allowed { minimum: 1, maximum: 1, default: None });
            Allowed { minimum: by_iops(iops.minimum), maximum: by_iops(iops.maximum), default: None }
        })
    }
}

fn store_range(store: &StoreFacts, operation: usize) -> Option<Allowed> {
    let figures = || store.types.iter().map(|one| one.read_write_iops.value[operation]);
    Some(Allowed { minimum: figures().min()?, maximum: figures().max()?, default: None })
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
