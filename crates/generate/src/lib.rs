//! Data sets as files, for whoever loads files.
//!
//! ```text
//! dataset: rows as a function of (file, unit)  ->  job: blocks of units, made by any thread and written in order
//!                                              ->  sink: a file, plain or gzip  ->  run: several files at a time
//! ```
//!
//! What is written depends on no clock and no thread: a seed gives the same bytes on every machine.

mod job;
mod run;
mod sink;

pub use pgdyno_dataset::{Refusal, imdb, tpch};
pub use run::{GenerateSpec, run};
