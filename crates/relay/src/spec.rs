//! What to relay, and how late: one JSON document on standard input.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use pgdyno_host::{Fault, Result};
use serde::Deserialize;

/// A second, in a world that is slowed sixty times; a larger number is one in the wrong unit.
const RTT_NS_MAX: u64 = 60_000_000_000;
/// What Linux lets a sender have under way by default (the largest of `net.ipv4.tcp_wmem`), so that a distance limits
/// a stream of bytes as much as it does between two machines.
const WINDOW_BYTES: usize = 4 << 20;
/// Without a distance nothing is under way but what a receiver does not take, for which the kernel has buffers too.
const WINDOW_AT_ONCE_BYTES: usize = 128 << 10;

/// Where a server listens.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum To {
    /// At a port.
    Tcp(SocketAddr),
    /// At a socket of this machine.
    Unix(PathBuf),
}

/// A relay.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RelaySpec {
    /// Where clients connect. Port 0, the default on 127.0.0.1, takes a free one.
    #[serde(default = "any_local_port")]
    pub listen: SocketAddr,
    /// Where the server is.
    pub to: To,
    /// The round trip; each direction takes half of it.
    pub rtt_ns: u64,
    /// Bytes that a direction of a connection has under way at most; then its sender waits.
    #[serde(default = "window_bytes")]
    pub window_bytes: usize,
    /// Whether the end of standard input ends the relay, so that it does not outlive the process that started it.
    #[serde(default)]
    pub ends_with_stdin: bool,
}

impl RelaySpec {
    /// Clients of `listen` come to `to` at once.
    pub fn at_once(listen: SocketAddr, to: To, ends_with_stdin: bool) -> Self {
        Self { listen, to, rtt_ns: 0, window_bytes: WINDOW_AT_ONCE_BYTES, ends_with_stdin }
    }

    /// Refuses what cannot be meant.
    pub(crate) fn check(&self) -> Result<()> {
        if self.rtt_ns > RTT_NS_MAX {
            let ms = self.rtt_ns / 1_000_000;
            return Err(Fault::new(
                format!("a round trip of {ms} ms is longer than the {} s allowed", RTT_NS_MAX / 1_000_000_000),
                "give the round trip in nanoseconds",
            ));
        }
        if self.window_bytes == 0 {
            return Err(Fault::new("window_bytes must be above 0", "omit window_bytes"));
        }
        Ok(())
    }
}

fn any_local_port() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

fn window_bytes() -> usize {
    WINDOW_BYTES
}
