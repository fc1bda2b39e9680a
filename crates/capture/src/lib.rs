//! Captures: what an application asked a PostgreSQL server, read from the server's logs. `record` makes them of what it relays.
//!
//! ```text
//! input: bytes of a file  ->  format: csvlog, jsonlog, stderr (prefix) -> entry
//!     ->  assemble: statement, parameters, time -> call, by session  ->  file: blocks, texts, index  ->  summary
//! ```
//!
//! A capture holds what the application sent, values included. Nothing here writes one anywhere but into the capture
//! file, which its owner alone may read, and into a summary that asks for values.

mod account;
mod assemble;
mod call;
mod entry;
mod error;
mod file;
mod format;
mod input;
mod language;
mod lex;
mod log;
mod message;
mod parameters;
mod password;
mod read;
mod shape;
mod sort;
mod sorted;
mod spread;
mod summary;
mod time;
mod transaction;
mod watch;
mod zones;

pub use account::{Account, LeftOut, RELAYED, ZoneTaken};
pub use assemble::takes_parameters;
pub use call::{Call, Ending, Protocol, SessionFacts};
pub use entry::beginning;
pub use error::CaptureError;
pub use file::{CaptureFile, Contents, Cursor, Writer};
pub use log::ReadSpec;
pub use password::{has_password, values_have_password};
pub use read::read;
pub use shape::{readings, shape};
pub use summary::{ShowSpec, show};
