//! What the relay did, and how late it was by its own clock.

use pgdyno_measure::Latency;
use serde::Serialize;

/// Later than this is counted here: a relay that was not run for ten seconds has other troubles.
const LATE_NS_MAX: u64 = 10_000_000_000;

/// What is counted of one direction of all connections.
pub(crate) struct Tally {
    bytes: u64,
    held_bytes_max: usize,
    delay_ns_min: Option<u64>,
    late_ns: Latency,
}

impl Tally {
    /// Nothing yet.
    pub(crate) fn new() -> Self {
        Self { bytes: 0, held_bytes_max: 0, delay_ns_min: None, late_ns: Latency::new(LATE_NS_MAX) }
    }

    /// One connection holds this number of bytes now.
    pub(crate) fn held(&mut self, bytes: usize) {
        self.held_bytes_max = self.held_bytes_max.max(bytes);
    }

    /// What was read at once arrives, so long after it was read and after it was due.
    pub(crate) fn arrived(&mut self, bytes: usize, delay_ns: u64, late_ns: u64) {
        self.bytes += bytes as u64;
        self.delay_ns_min = Some(self.delay_ns_min.map_or(delay_ns, |least| least.min(delay_ns)));
        self.late_ns.record(late_ns);
    }

    /// As it is reported.
    pub(crate) fn direction(&self) -> Direction {
        let late = self.late_ns.figures();
        Direction {
            bytes: self.bytes,
            chunks: late.count,
            held_bytes_max: self.held_bytes_max,
            delay_ns_min: self.delay_ns_min,
            late_ns_p50: late.p50,
            late_ns_p99: late.p99,
            late_ns_max: late.max,
            late_ns: self.late_ns.encoded(),
        }
    }
}

/// One direction of all connections.
#[derive(Debug, Clone, Serialize)]
pub struct Direction {
    /// Bytes that arrived.
    pub bytes: u64,
    /// In how many parts they were read.
    pub chunks: u64,
    /// The most that one connection had under way.
    pub held_bytes_max: usize,
    /// The shortest time between reading and handing on. None when nothing arrived.
    pub delay_ns_min: Option<u64>,
    /// The middle one of the times by which parts were handed on too late.
    pub late_ns_p50: u64,
    /// One in a hundred was later than this.
    pub late_ns_p99: u64,
    /// The latest.
    pub late_ns_max: u64,
    /// All of them: base64 of HDR's compressed V2 encoding. None when nothing arrived.
    pub late_ns: Option<String>,
}

/// What the relay says at its end.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// The round trip that was asked for.
    pub rtt_ns: u64,
    /// Connections of clients.
    pub connections: u64,
    /// The most at a time.
    pub connections_max: usize,
    /// Connections that the server did not take.
    pub unreachable: u64,
    /// How often clients waited because the machine lacked descriptors for another connection.
    pub short: u64,
    /// CPU of the whole process, user and system.
    pub cpu_ns: u64,
    /// What clients said.
    pub to_server: Direction,
    /// What the server said.
    pub to_client: Direction,
}
