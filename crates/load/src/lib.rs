//! Files into PostgreSQL: where their rows end, how they are cut, and how the chunks get into a table exactly once.
//!
//! ```text
//! file -> Rows (where each row ends, as COPY sees it) -> plan (chunks that begin and end with whole rows)
//!
//! source -> inflate -> cut (a planner for each) -> queue -> worker (a session each): BEGIN, COPY, ledger, COMMIT
//!           (thread)                                          | a row is refused
//!                                                             v
//!                                                           isolate -> reject
//! ```
//!
//! Bytes are never changed on their way: what COPY would make of the whole file, it makes of the chunks.

mod adapt;
mod body;
mod crew;
mod cut;
mod error;
mod format;
mod inflate;
mod isolate;
mod ledger;
mod locate;
mod order;
mod pace;
mod plan;
mod pool;
mod queue;
mod reject;
mod remote;
mod rows;
mod run;
mod send;
mod shared;
mod source;
mod spec;
mod statement;
mod tally;
mod usage;
mod worker;

pub use error::LoadError;
pub use format::{Format, LineEnd};
pub use order::{Compression, CopyFormat, LedgerSpec, LoadSpec, RejectSpec, RemoteSpec, SourceSpec};
pub use plan::{Chunk, Planner};
pub use rows::{Broken, Row, Rows, Rule};
pub use run::load;
pub use spec::{PlanSpec, plan};
