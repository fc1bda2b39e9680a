//! Data sets as files, for whoever loads files.
//!
//! ```text
//! dataset: rows as a function of (seed, file, unit)  ->  sink: a file, plain or gzip  ->  run: several files at a time
//! ```
//!
//! What is written depends on no clock and no thread: a seed gives the same bytes on every machine.

mod run;
mod sink;

pub use pgdyno_dataset::{Refusal, imdb};
pub use run::{GenerateSpec, run};
