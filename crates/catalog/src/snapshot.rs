//! What snapshots cost, and what a policy may say that keeps them (`catalog/snapshot.toml`).

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::error::CatalogError;
use crate::fact::{Fact, FactsFile, Source, read};

const FILE: FactsFile = ("snapshot.toml", include_str!("../../../catalog/snapshot.toml"));

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SnapshotFile {
    schema_version: u32,
    sources: BTreeMap<String, Source>,
    taking: TakingTable,
    prices: PriceTable,
    policy: PolicyTable,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TakingTable {
    pending_max: Fact<u64>,
    pending_max_hdd: Fact<u64>,
    rate_mib_per_s: Fact<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceTable {
    gib_month_usd: Fact<f64>,
    archive_gib_month_usd: Fact<f64>,
    transfer_gib_usd: Fact<f64>,
    fast_restore_hour_usd: Fact<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyTable {
    schedules_max: Fact<u64>,
    interval_hours: Fact<Vec<u64>>,
    count_max: Fact<u64>,
    age_days_max: Fact<u64>,
    regions_max: Fact<u64>,
    zones_max: Fact<u64>,
    archive_days_min: Fact<u64>,
    archive_schedule_days_min: Fact<u64>,
    cron_hours_min: Fact<u64>,
    cron_days_max: Fact<u64>,
}

/// The figures of snapshots.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SnapshotFacts {
    /// How they are taken.
    pub taking: SnapshotTaking,
    /// US dollars.
    pub prices: SnapshotPrices,
    /// Bounds of what a policy says.
    pub policy: PolicyRules,
}

/// How snapshots are taken.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SnapshotTaking {
    /// Pending snapshots of a volume.
    pub pending_max: u64,
    /// The same of volumes of types st1 and sc1.
    pub pending_max_hdd: u64,
    /// MiB a second at which the changed blocks of a pending snapshot are stored.
    pub rate_mib_per_s: f64,
}

/// Prices of snapshots in US dollars.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SnapshotPrices {
    /// A GiB and month of incremental snapshots.
    pub gib_month_usd: f64,
    /// A GiB and month in the archive, where each snapshot is a full copy.
    pub archive_gib_month_usd: f64,
    /// A GiB that is copied to another region, once.
    pub transfer_gib_usd: f64,
    /// An hour of fast snapshot restore, for each snapshot and zone.
    pub fast_restore_hour_usd: f64,
}

/// Bounds of what a policy says.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PolicyRules {
    /// Schedules of a policy.
    pub schedules_max: u64,
    /// Hours from one snapshot to the next.
    pub interval_hours: Vec<u64>,
    /// Snapshots that are kept by count.
    pub count_max: u64,
    /// Days for which snapshots are kept by age.
    pub age_days_max: u64,
    /// Regions that they are copied to.
    pub regions_max: u64,
    /// Zones with fast snapshot restore.
    pub zones_max: u64,
    /// Days for which an archived snapshot is kept at least.
    pub archive_days_min: u64,
    /// Days from one archived snapshot to the next at least.
    pub archive_schedule_days_min: u64,
    /// Hours between two snapshots of a cron expression.
    pub cron_hours_min: u64,
    /// Days between two snapshots of a cron expression.
    pub cron_days_max: u64,
}

/// The figures of snapshots.
///
/// # Errors
/// A mistake in the catalogue file, which is a bug and which a test of this file would have found.
pub fn snapshots() -> Result<SnapshotFacts, CatalogError> {
    static PARSED: OnceLock<Result<SnapshotFacts, CatalogError>> = OnceLock::new();
    PARSED.get_or_init(|| parse(FILE.1)).clone()
}

fn parse(text: &str) -> Result<SnapshotFacts, CatalogError> {
    let SnapshotFile { taking, prices, policy, .. } = read(FILE.0, text)?;
    Ok(SnapshotFacts {
        taking: SnapshotTaking {
            pending_max: taking.pending_max.value,
            pending_max_hdd: taking.pending_max_hdd.value,
            rate_mib_per_s: taking.rate_mib_per_s.value,
        },
        prices: SnapshotPrices {
            gib_month_usd: prices.gib_month_usd.value,
            archive_gib_month_usd: prices.archive_gib_month_usd.value,
            transfer_gib_usd: prices.transfer_gib_usd.value,
            fast_restore_hour_usd: prices.fast_restore_hour_usd.value,
        },
        policy: PolicyRules {
            schedules_max: policy.schedules_max.value,
            interval_hours: policy.interval_hours.value,
            count_max: policy.count_max.value,
            age_days_max: policy.age_days_max.value,
            regions_max: policy.regions_max.value,
            zones_max: policy.zones_max.value,
            archive_days_min: policy.archive_days_min.value,
            archive_schedule_days_min: policy.archive_schedule_days_min.value,
            cron_hours_min: policy.cron_hours_min.value,
            cron_days_max: policy.cron_days_max.value,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_can_be_read_and_another_version_is_refused() {
        let facts = snapshots().expect("a sound file");
        // The provider's example of a day's fast restore in one zone for 30 days: 540 USD.
        assert!((facts.prices.fast_restore_hour_usd * 24.0 * 30.0 - 540.0).abs() < 1e-9);
        let error = parse(&FILE.1.replace("schema_version = 1", "schema_version = 2")).expect_err("another version");
        assert!(error.to_string().contains("schema_version"), "{error}");
    }
}
