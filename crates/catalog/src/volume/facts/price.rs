//! What a volume costs a month, by the provider's tiers.

use serde::{Deserialize, Serialize};

use crate::units::GIB;
use crate::volume::facts::file::{PriceFacts, Tier};

/// The prices behind a volume's monthly price, in US dollars a month.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// Of one more GiB, with IOPS and throughput as they are unless they follow from the size.
    pub gib_month_usd: f64,
    /// The price of each I/O unit per second; nothing below the first tier.
    pub iops_month_usd: Vec<PriceTier>,
    /// The price of each MiB per second; nothing below the first tier.
    pub mib_per_s_month_usd: Vec<PriceTier>,
    /// Whether a larger volume has higher limits, or bursts for longer.
    pub limits_follow_size: bool,
}

/// The price of each unit above `above`, up to where the next tier begins.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceTier {
    /// Where the tier begins, in units of the whole volume.
    pub above: u64,
    /// US dollars a month for each unit.
    pub usd: f64,
}

impl Prices {
    /// The prices of one volume of a type.
    pub(crate) fn of(price: &PriceFacts, limits_follow_size: bool) -> Self {
        let tiers = |tiers: &[Tier]| {
            tiers.iter().map(|tier| PriceTier { above: tier.above, usd: tier.usd.value }).collect::<Vec<_>>()
        };
        Self {
            gib_month_usd: price.gib_month_usd.value,
            iops_month_usd: tiers(&price.iops_month),
            mib_per_s_month_usd: tiers(&price.mib_per_s_month),
            limits_follow_size,
        }
    }

    /// The prices of an array of such volumes, of which `bought` are paid for and `columns` add up.
    pub(crate) fn of_array(&self, bought: u64, columns: u64) -> Self {
        let times = bought as f64 / columns as f64;
        let tiers = |tiers: &[PriceTier]| {
            tiers
                .iter()
                .map(|tier| PriceTier { above: tier.above * columns, usd: tier.usd * times })
                .collect::<Vec<_>>()
        };
        Self {
            gib_month_usd: self.gib_month_usd * times,
            iops_month_usd: tiers(&self.iops_month_usd),
            mib_per_s_month_usd: tiers(&self.mib_per_s_month_usd),
            limits_follow_size: self.limits_follow_size,
        }
    }

    /// What size, IOPS and throughput cost together, rounded to cents.
    pub(crate) fn usd_per_month(&self, size_bytes: u64, iops: Option<u64>, mib_per_s: Option<f64>) -> f64 {
        let size = size_bytes as f64 / GIB as f64 * self.gib_month_usd;
        let iops = iops.map_or(0.0, |iops| in_tiers(&self.iops_month_usd, iops as f64));
        let throughput = mib_per_s.map_or(0.0, |mib_per_s| in_tiers(&self.mib_per_s_month_usd, mib_per_s));
        ((size + iops + throughput) * 100.0).round() / 100.0
    }
}

fn in_tiers(tiers: &[PriceTier], amount: f64) -> f64 {
    let ends = tiers.iter().skip(1).map(|tier| tier.above as f64).chain([f64::INFINITY]);
    let share = |(tier, end): (&PriceTier, f64)| (amount.min(end) - tier.above as f64).max(0.0) * tier.usd;
    tiers.iter().zip(ends).map(share).sum()
}
