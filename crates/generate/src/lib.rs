//! Data sets as files, for whoever loads files.
//!
//! ```text
//! imdb: rows as a function of (seed, file, title or person)  ->  sink: a file, plain or gzip  ->  run: several files at a time
//! ```
//!
//! What [`imdb`] makes depends on no clock, no thread and no other row: a seed gives the same bytes on every machine.

mod error;
pub mod imdb;
mod run;
mod sink;

pub use error::GenerateError;
pub use run::{GenerateSpec, run};
