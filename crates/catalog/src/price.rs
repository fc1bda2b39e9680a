//! What a volume costs a month, by the provider's tiers.

use crate::file::{PriceFacts, Tier};
use crate::units::GIB;

/// US dollars a month for size, IOPS and throughput, rounded to cents.
pub(crate) fn usd_per_month(price: &PriceFacts, size_bytes: u64, iops: Option<u64>, mib_per_s: Option<f64>) -> f64 {
    let size = size_bytes as f64 / GIB as f64 * price.gib_month_usd.value;
    let iops = iops.map_or(0.0, |iops| in_tiers(&price.iops_month, iops as f64));
    let throughput = mib_per_s.map_or(0.0, |mib_per_s| in_tiers(&price.mib_per_s_month, mib_per_s));
    ((size + iops + throughput) * 100.0).round() / 100.0
}

fn in_tiers(tiers: &[Tier], amount: f64) -> f64 {
    let ends = tiers.iter().skip(1).map(|tier| tier.above as f64).chain([f64::INFINITY]);
    let share = |(tier, end): (&Tier, f64)| (amount.min(end) - tier.above as f64).max(0.0) * tier.usd.value;
    tiers.iter().zip(ends).map(share).sum()
}
