//! The catalogue. Volumes: dated facts about real volumes, and the rules that turn `gp3:size=100GiB,iops=6000` into
//! the integers that the volume model runs on.
//!
//! ```text
//! catalog/volumes/*.toml ──volume/facts──▶ VolumeFile ─┐
//! "gp3:iops=6000" ──volume/request──▶ Request ──rules──┴──▶ Figures ──resolved──▶ Resolved { spec, price, params }
//!                                         └─ Violation ──remedy──▶ SpecError { message, remedy }
//! ```
//!
//! An array of equal volumes is written around the specification of one: `8xgp3:iops=6000,chunk=64KiB` ([`Storage`]).
//!
//! Beside it the instance catalogue: memory, processors, EBS limits and prices of instance types by name
//! ([`InstanceType`], from `catalog/instances/`).
//!
//! A twin is a volume that was fitted to a disk: its file has the figures themselves ([`Resolved::of_twin`]).
//!
//! Faults that a provider injects, and its scenarios, are in `catalog/faults.toml` ([`scenario`]).
//!
//! How the blocks of a snapshot come to a volume is in `catalog/restore.toml` ([`Initialization`]).
//!
//! How much of the time a volume has only a part of its limits is in `catalog/degradation.toml` ([`Degradation`]).
//!
//! How snapshots are taken, what they cost, and what a policy of them may say, is in `catalog/snapshot.toml` ([`snapshots`]).
//!
//! The files are part of the binary: a specification means the same wherever it is read.

mod degradation;
mod error;
mod fact;
mod fault;
mod hash;
mod instance;
mod nearest;
mod restore;
mod snapshot;
mod units;
mod volume;

pub use degradation::Degradation;
pub use error::{CatalogError, SpecError};
pub use fact::{Source, Status};
pub use fault::{latency, require_latency, scenario};
pub use hash::{MODEL_VERSION, model_hash};
pub use instance::instance_type::{EbsLimits, InstanceType, instance_types};
pub use restore::{CreationCredits, Initialization, credit_params};
pub use snapshot::{PolicyRules, SnapshotFacts, SnapshotPrices, SnapshotTaking, snapshots};
pub use units::size_key;
pub use volume::array::{ArrayFacts, Storage};
pub use volume::facts::price::{PriceTier, Prices};
pub use volume::model_params::Rates;
pub use volume::offers::{Need, Offer, cheapest};
pub use volume::resolved::{Burst, Limits, Resolved};
pub use volume::twin::twin_path;
pub use volume::types::{Allowed, SourceUse, TypeSummary, types};
