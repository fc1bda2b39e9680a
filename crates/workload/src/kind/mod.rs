//! The kinds of workload: a folder or a file each, and a line in [`WorkloadSpec`].

mod idle;
pub(crate) mod pgbench;
mod spec;
pub(crate) mod sysbench;
pub mod tpcc;

pub use spec::WorkloadSpec;
