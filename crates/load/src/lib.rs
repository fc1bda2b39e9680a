//! Files into PostgreSQL: where their rows end, how they are split, and how the chunks get into a table exactly once.
//!
//! ```text
//! read/   source -> inflate (a thread each) -> blocks of memory
//!                                                 |
//! split/  splitter: rows -> plan (chunks of whole rows, as COPY sees them) -> queue
//!                                                                               |
//! send/   worker (a session each): BEGIN, COPY, a line in the ledger, COMMIT <--+
//!             | a row is refused
//!         bisect -> reject
//!
//! ledger/ which chunks are in the table
//! values/ types that return a file's values as they are, for a table that is to be made
//! ```
//!
//! Bytes are never changed on their way: what COPY would make of the whole file, it makes of the chunks.

mod counters;
mod error;
mod format;
mod ledger;
mod queue;
mod read;
mod run;
mod send;
mod shared;
mod spec;
mod split;
mod usage;
mod values;

pub use error::LoadError;
pub use format::{Format, LineEnd};
pub use run::load;
pub use spec::{
    ColumnType, Compression, CopyFormat, FileSpec, LedgerSpec, LoadSpec, RejectSpec, RemoteSpec, SourceSpec,
};
pub use split::command::{PlanSpec, plan};
pub use split::plan::{Chunk, Planner};
pub use split::rows::{Broken, ROW_BYTES_MAX, Row, Rows, Rule};
pub use values::command::{TypesSpec, types};
