//! Data sets: the tables that workloads begin with, and data as files.
//!
//! ```text
//! Tables (as asked for) -> Table: statements and Rows -> fill: COPY
//!   imdb, tpch: files   -> DataFile: head and Rows     -> generate: files
//! ```
//!
//! [`Rows`] is what all of them have: units, each with any number of rows, each a function of its number and the seed.

mod file;
pub mod imdb;
mod pgbench;
mod rows;
mod sysbench;
mod table;
mod tables;
mod tpcc;
pub mod tpch;

pub use file::DataFile;
pub use pgbench::PgbenchTables;
pub use pgdyno_workload::Refusal;
pub use rows::Rows;
pub use sysbench::SysbenchTables;
pub use table::{Batch, Batches, DataSet, PartBatches, Table};
pub use tables::Tables;
pub use tpcc::TpccTables;
