//! Power cuts: what a volume may hold after one, from a log of what was written to it.
//!
//! A write log has every write and discard of an instance's volumes with its data, when it came and when it was answered, and
//! every flush, in one order ([`WriteLog`]). A [`Reading`] says what a device does with what was not durable: which of it
//! stays, and whole or torn. [`View`] reads a log so, and gives for a position in it, a seed and a number one content of the
//! volumes ([`State`]): the same one each time.
//!
//! No clock, no file: a host reads the log and writes the content.

mod audit;
mod draw;
mod fate;
mod history;
mod log;
mod reading;
mod state;
mod view;

pub use audit::Audit;
pub use draw::{Random, Strata, Stratum};
pub use fate::Fate;
pub use history::{BLOCK_BYTES, History, Request};
pub use log::{Cache, EVENT_BYTES, Event, Header, LoggedVolume, MAGIC, What, WriteLog};
pub use reading::{Lie, Prevention, Reading, Tearing};
pub use state::{State, Undecided};
pub use view::View;
