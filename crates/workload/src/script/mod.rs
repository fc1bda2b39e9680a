//! pgbench's script language: SQL between commands that begin with a backslash.
//!
//! A source is cut into pieces, compiled into commands with numbered variables, and run by a machine for each client.
//! What it means is PostgreSQL 18's pgbench; where it differs, `docs/concept/scripts.md` says so.

mod command;
mod compile;
mod evaluate;
mod expression;
mod function;
mod machine;
mod source;

pub(crate) use command::Command;
pub use compile::{Compiler, compile};
pub(crate) use machine::{Machine, Shared};
