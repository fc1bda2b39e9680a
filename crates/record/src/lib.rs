//! A capture of what clients send through a relay: exact times, sessions, errors, and whatever a server's log lacks.
//!
//! ```text
//! relay: bytes of both sides  ->  messages  ->  session: who it is (opening), what is sent (asked), what comes of it (answered)
//!     ->  call (values: binary ones as text)  ->  store: the capture file, the account
//! ```
//!
//! Of answers only their ends and errors are looked at, and keys that they give. Messages of authentication are skipped without being kept. TLS is answered with
//! "no", as what is encrypted cannot be recorded.

#[cfg(panic = "abort")]
compile_error!(
    "a bug in reading one session would end the recording of all: their panics are caught, which needs unwinding"
);

mod answer;
mod answered;
mod asked;
mod binary;
mod ledger;
mod messages;
mod opening;
mod place_of_panic;
mod recorder;
mod rows;
mod run;
mod session;
mod store;

pub use run::{RecordSpec, run};
