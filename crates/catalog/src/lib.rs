//! The volume catalogue: dated facts about real volumes, and the rules that turn `gp3:size=100GiB,iops=6000` into
//! the integers that the volume model runs on.
//!
//! ```text
//! catalog/volumes/*.toml ──file──▶ VolumeFile ─┐
//! "gp3:iops=6000" ──request──▶ Request ──rules─┴──▶ Figures ──resolved──▶ Resolved { spec, price, params }
//!                                        └─ refused ──remedy──▶ SpecError { message, remedy }
//! ```
//!
//! The files are part of the binary: a specification means the same wherever it is read.

mod error;
mod fact;
mod file;
mod hash;
mod item;
mod nearest;
mod remedy;
mod request;
mod resolved;
mod rules;
mod service_time;
mod types;
mod units;

pub use error::{CatalogError, SpecError};
pub use fact::{Source, Status};
pub use hash::{MODEL_VERSION, model_hash};
pub use resolved::{Limits, Resolved};
pub use types::{Allowed, SourceUse, TypeSummary, types};
