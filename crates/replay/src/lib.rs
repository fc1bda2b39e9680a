//! Replay: the statements of a capture, sent to a server at their times, each held against what was recorded of it.
//!
//! ```text
//! lanes: which session takes whose place  ->  lane: a thread, its sessions one after another  ->  link: one statement
//!     left_out: what is not sent, and why     tally: what came of it     shared: where and when     run: all of it
//! ```

mod lane;
mod lanes;
mod left_out;
mod link;
mod run;
mod shared;
mod tally;

pub use run::{ReplaySpec, run};
