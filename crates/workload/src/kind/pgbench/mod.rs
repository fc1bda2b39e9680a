//! pgbench's workloads: its built-in scripts and the user's, mixed by weights.

mod builtin;
mod mix;
mod scripts;
mod spec;

pub use builtin::{ACCOUNTS_PER_SCALE, Builtin, TELLERS_PER_SCALE};
pub use mix::Mix;
pub use spec::{PgbenchSpec, ScriptSpec};
