//! Fills a PostgreSQL server with the tables of a benchmark, by several sessions at a time, and says how far it is.
//!
//! ```text
//! spec -> plan: stages of jobs -> sessions take jobs until a stage is done -> JSON lines
//!                 |                  create, COPY, vacuum, keys, indexes
//!         dataset: definitions and rows
//! ```
//!
//! A table that one session writes is created in the transaction of its COPY, which may then write frozen rows: no
//! later visitor has hint bits to set, and no vacuum has to freeze them.

mod digest;
mod plan;
mod progress;
mod run;
mod spec;
mod undo;

pub use pgdyno_connection::Fault;
pub use run::run;
pub use spec::{Action, FillSpec};
