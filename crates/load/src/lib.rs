//! Files into PostgreSQL: where their rows end, and how they are cut.
//!
//! ```text
//! file -> Rows (where each row ends, as COPY sees it) -> plan (chunks that begin and end with whole rows)
//! ```
//!
//! Bytes are never changed on their way: what COPY would make of the whole file, it makes of the chunks.

mod error;
mod format;
mod plan;
mod rows;
mod spec;

pub use error::LoadError;
pub use format::{Format, LineEnd};
pub use plan::{Chunk, Planner};
pub use rows::{Broken, Row, Rows, Rule};
pub use spec::{PlanSpec, plan};
