//! Derived from TPC-C: five types of transaction of a wholesale supplier.
//!
//! Two profiles. `hammerdb` does what HammerDB's TPROC-C does, with its deviations from TPC-C; `spec` follows TPC-C 5.11. The
//! tables and the routines in the server are the data set's (`pgdyno-dataset`, `tpcc`); both are in a schema of their own.

mod asked;
mod built;
mod call;
mod draw;
mod names;
mod routine;
mod settings;
mod spec;
mod sql;
mod statements;
mod tally;
mod template;
mod user;
mod value;

pub use names::{
    CUSTOMERS, DISTRICTS, ITEMS, LAST_NAMES, NAME_BITS, NAME_CONSTANT_LOADED, NAME_LAST, ORDERS, SCHEMA,
    write_last_name,
};
pub use settings::{Profile, Routines, Schema, WAREHOUSES_MAX};
pub use spec::TpccSpec;
