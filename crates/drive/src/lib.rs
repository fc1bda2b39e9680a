//! Drives a PostgreSQL server: carries the statements of [`pgdyno_workload`]'s clients over non-blocking sockets, with
//! the real clock, and keeps whole distributions.
//!
//! ```text
//! spec -> login (blocking) -> worker: epoll -> link (protocol) <-> workload::Client
//!                               | each second
//!                               v
//!                             measure::Record (histograms, accounts) -> run (adds up) -> JSON lines
//! ```
//!
//! Response time counts from when a transaction was to begin, service time from when it did: a server that stalls
//! shows in the former, whatever the number of clients.

mod begin;
mod clock;
mod ears;
mod ending;
mod link;
mod reconnect;
mod run;
mod seats;
mod spec;
mod worker;

pub use run::{check, run};
pub use spec::{ArrivalsSpec, BeginSpec, DriveSpec, SegmentSpec, ShareSpec};
