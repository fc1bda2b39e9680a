//! The catalogue. Volumes: dated facts about real volumes, and the rules that turn `gp3:size=100GiB,iops=6000` into
//! the integers that the volume model runs on.
//!
//! ```text
//! catalog/volumes/*.toml ──file──▶ VolumeFile ─┐
//! "gp3:iops=6000" ──request──▶ Request ──rules─┴──▶ Figures ──resolved──▶ Resolved { spec, price, params }
//!                                        └─ refused ──remedy──▶ SpecError { message, remedy }
//! ```
//!
//! An array of equal volumes is written around the specification of one: `8xgp3:iops=6000,chunk=64KiB` ([`Storage`]).
//!
//! Beside it the instance catalogue: memory, processors, EBS limits and prices of instance types by name
//! ([`InstanceType`], from `catalog/instances/`).
//!
//! A twin is a volume that was fitted to a disk: its file has the figures themselves ([`Resolved::of_twin`]).
//!
//! The files are part of the binary: a specification means the same wherever it is read.

mod array;
mod error;
mod fact;
mod file;
mod hash;
mod instance;
mod instance_file;
mod instance_history;
mod item;
mod law;
mod limit_facts;
mod model_params;
mod nearest;
mod price;
mod remedy;
mod request;
mod resolved;
mod rules;
mod rules_of_keys;
mod service_time;
mod store_facts;
mod twin;
mod types;
mod units;

pub use array::{ArrayFacts, Storage};
pub use error::{CatalogError, SpecError};
pub use fact::{Source, Status};
pub use hash::{MODEL_VERSION, model_hash};
pub use instance::{EbsLimits, InstanceType, instance_types};
pub use resolved::{Burst, Limits, Resolved};
pub use twin::twin_path;
pub use types::{Allowed, SourceUse, TypeSummary, types};
