//! Workloads: what a client of PostgreSQL asks for, and when, as a function of time and answers.
//!
//! Time is an argument, in nanoseconds since the beginning of the run. Nothing in this crate reads a clock, opens a
//! socket or draws from an unseeded generator: the driver (real clock, real server) and a simulator (virtual clock,
//! modelled server) run the same code. What a transaction asks for derives from (seed, client, transaction ordinal).
//!
//! The seam is [`Client`]; what it hands out are [`Statement`]s, transactions that are over, and times to wait for.

mod answer;
mod arrivals;
mod client;
pub mod data;
mod error;
mod hash;
pub mod keys;
mod pgbench;
mod random;
pub mod script;
mod session;
mod sysbench;
mod template;
mod value;
mod workload;

pub use answer::{Answer, ResultSet};
pub use arrivals::{Arrivals, Claim, Pattern, Segment, Spacing, Think};
pub use client::*;
pub use error::{Position, RunError, ScriptError};
pub use hash::{fnv1a, murmur2, permute};
pub use pgbench::{ACCOUNTS_PER_SCALE, Builtin, TELLERS_PER_SCALE};
pub use random::{Purpose, Random};
pub use session::{Identity, Retries};
pub use sysbench::{Sysbench, SysbenchTest};
pub use template::{
    Access, AccessKind, Class, PARAMETERS_MAX, Parameter, ParameterBuffer, Parameters, Template, write_integer,
};
pub use value::{Value, Variable};
pub use workload::{Groups, Mix, ScriptInfo, Workload};
