//! Drives a PostgreSQL server: carries the statements of [`pgdyno_workload`]'s clients over non-blocking sockets, with
//! the real clock, and keeps whole distributions.
//!
//! ```text
//! spec -> login (blocking) -> worker: epoll -> link (protocol) <-> workload::Client
//!                               | each second
//!                               v
//!                             record (HDR histograms, accounts) -> run (adds up) -> JSON lines
//! ```
//!
//! Response time counts from when a transaction was to begin, service time from when it did: a server that stalls
//! shows in the former, whatever the number of clients.

mod clock;
mod conninfo;
mod error;
mod frame;
mod idle;
mod link;
mod login;
mod reconnect;
mod record;
mod run;
mod spec;
mod stream;
mod sysbench;
mod talk;
mod tls;
mod user;
mod vanish;
mod wait;
mod wire;
mod worker;
mod workload;

pub use error::DriveError;
pub use frame::Said;
pub use run::{check, run};
pub use spec::{ArrivalsSpec, DriveSpec, Protocol, ScriptSpec, SegmentSpec, WorkloadSpec};
pub use sysbench::{RandType, SysbenchSpec};
pub use talk::{CopyIn, Talk, Told};
