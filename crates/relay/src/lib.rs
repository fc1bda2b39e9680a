//! Puts a distance between a client and a server on one machine: a TCP relay that hands on what it reads half a round
//! trip later.
//!
//! ```text
//! client  <- TCP ->  relay: epoll -> pair of sockets, a flow for each direction  <- TCP ->  server
//!                                     flow: bytes with the instants at which they arrive
//! ```
//!
//! It looks into nothing: TLS, passwords and requests to cancel pass as they are. What is sent in each direction keeps
//! its order, and a side that does not read is felt by the other, as on a network. A [`Tap`] may listen to both sides.

mod flow;
mod pair;
mod relay;
mod spec;
mod tally;
mod tap;

use std::io::Write;

use pgdyno_host::Result;
use pgdyno_measure::say;
use serde_json::json;

pub use relay::Relay;
pub use spec::{RelaySpec, To};
pub use tally::{Direction, Summary};
pub use tap::{Passage, Tap};

/// Relays until SIGTERM, SIGINT, or the end of standard input if that is asked for. Writes JSON lines to `out`: `ready`
/// with the port when clients may connect, `summary` at the end.
///
/// An error is one of the machine: an address that is taken, a limit that is reached. Connections that break are
/// relayed as such.
pub fn run(spec: &RelaySpec, out: &mut impl Write) -> Result<()> {
    let stop = pgdyno_signals::block().map_err(|error| relay::kernel("a signal descriptor", error))?;
    let relay = Relay::bind(spec)?;
    let address = relay.address();
    say(out, &json!({"ready": {"host": address.ip(), "port": address.port(), "rtt_ns": spec.rtt_ns}}));
    let summary = relay.run(stop)?;
    say(out, &json!({"summary": summary}));
    Ok(())
}
