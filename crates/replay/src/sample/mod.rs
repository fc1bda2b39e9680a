//! Samples: transactions of a capture, drawn whole with their values, for any number of clients and any rate.
//!
//! ```text
//! spec: what is asked  ->  pool: the transactions, with the keys that each needs and makes  ->  client: a thread, which draws and sends
//!     given: keys that this run was given     course: seconds and the whole, in the lines of the driver     run: all of it
//! ```

mod client;
mod course;
mod given;
mod pool;
mod run;
mod spec;

pub use run::sample;
pub use spec::SampleSpec;
