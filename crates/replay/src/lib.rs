//! Replay: the statements of a capture, sent to a server at their times, each held against what was recorded of it.
//!
//! ```text
//! asked: which part of a capture  ->  lanes: which session takes whose place  ->  lane: its sessions one after another
//!     ->  link: one statement     turns: how lanes share threads     errands: what blocks
//!     keys: the server's keys in the places of production's
//!     types: of parameters     made: rows of COPY     left_out: what is not sent, and why     patience: locks that are not given     tally, shapes, seconds: what came of it     shared: where and when     run: all of it
//! ```
//!
//! `sample` draws its transactions instead, for any number of clients.

mod alarms;
mod asked;
mod errands;
mod keys;
mod lane;
mod lanes;
mod left_out;
mod link;
mod made;
mod patience;
mod run;
mod sample;
mod seconds;
mod shapes;
mod shared;
mod tally;
#[cfg(test)]
mod testing;
mod turns;
mod types;

pub use asked::{AskedSpec, plan};
pub use run::{ReplaySpec, run};
pub use sample::{SampleSpec, sample};
