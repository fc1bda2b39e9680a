//! sysbench's OLTP tests on PostgreSQL: the legacy transaction, and the scripts of 1.0.20.
//!
//! The tables are `sbtest1`, `sbtest2`, … with `id`, `k`, `c` and `pad`. Statements, their order and how their values are
//! drawn are those of the scripts that come with sysbench 1.0.20 (Debian, read 2026-11).

mod event;
mod oltp;
mod plan;
mod settings;
mod spec;
mod text;

pub use settings::{Sysbench, SysbenchTest};
pub use spec::SysbenchSpec;
pub use text::{C_GROUPS, PAD_GROUPS, write_groups};
