//! Workloads: what a client of PostgreSQL asks for, and when, as a function of time and answers.
//!
//! Time is an argument, in nanoseconds since the beginning of the run. Nothing in this crate reads a clock, opens a
//! socket or draws from an unseeded generator: the driver (real clock, real server) and a simulator (virtual clock,
//! modelled server) run the same code. What a transaction asks for derives from (seed, client, transaction ordinal).
//!
//! ```text
//! WorkloadSpec (as asked for) -> Kind: scripts, statements -> Workload -> Client, which a host drives
//!                                        Program: the steps of one transaction; session: pauses, retries, accounts
//! ```
//!
//! The seam to a host is [`Client`]; what it hands out are [`Statement`]s, transactions that are over, and times to wait for.
//! The seam to a kind is [`Kind`] with its [`Program`].

mod answer;
mod arrivals;
mod bounds;
mod client;
mod error;
mod groups;
mod hash;
pub mod keys;
mod kind;
mod mixture;
mod program;
mod random;
mod retries;
pub mod script;
mod session;
mod template;
mod time;
mod value;
mod workload;

pub use answer::{Answer, ResultSet};
pub use arrivals::{Arrivals, Claim, Pattern, Segment, Skip, Spacing, Think};
pub use bounds::{DURATION_MAX_MS, OutOfBounds, RATE_MAX_PER_S, check_rate, check_time};
pub use client::*;
pub use error::{Position, Refusal, RunError, ScriptError};
pub use groups::Groups;
pub use hash::{fnv1a, murmur2, permute};
pub use kind::WorkloadSpec;
pub use kind::pgbench::{ACCOUNTS_PER_SCALE, Builtin, Mix, PgbenchSpec, ScriptSpec, TELLERS_PER_SCALE};
pub use kind::sysbench::{C_GROUPS, PAD_GROUPS, Sysbench, SysbenchSpec, SysbenchTest, write_groups};
pub use kind::tpcc;
pub use mixture::{Mixing, ScriptInfo};
pub use program::{Program, Reply, Step};
pub use random::{Purpose, Random, SplitMix};
pub use retries::Retries;
pub use session::Identity;
pub use template::{
    Access, AccessKind, Class, PARAMETERS_MAX, Parameter, ParameterBuffer, Parameters, Template, write_integer,
};
pub use time::Nanos;
pub use value::{Value, Variable};
pub use workload::{Clients, Kind, Protocol, Workload};
