//! The eight tables of TPC-H, byte for byte as dbgen makes them.
//!
//! The rows are the crate `tpchgen`'s, which is compared with dbgen; here are the scales at which that holds, the parts in
//! which the rows are made, and how a row is written. dbgen's seeds are fixed: a table's rows depend on the scale alone.

mod answers;
mod batches;
mod definitions;
mod file;
mod line;
mod profile;
mod refresh;
mod rows;
mod scale;
mod tables;

pub use answers::answers;
pub use file::{Ending, TableFile};
pub use profile::Profile;
pub use refresh::refresh_files;
pub use rows::files;
pub use scale::Scale;
pub use tables::TpchTables;
