//! What was measured: distributions, accounts whose sum is what was scheduled, and the lines in which they are written.
//!
//! ```text
//! Transaction -> Record: Account, Latency -> lines: Stretch, Second, Summary -> say: one JSON document a line
//! ```
//!
//! Nothing here reads a clock: times are arguments.

mod account;
mod latency;
mod lines;
mod record;

pub use account::Account;
pub use latency::{Figures, Latency};
pub use lines::{
    ClockShown, EndedBy, Line, Queries, Ready, Refused, ScriptFigures, Second, StatementFigures, Stretch, Summary, say,
};
pub use record::Record;
