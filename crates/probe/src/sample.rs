//! One sample: a line of JSON. Instants are nanoseconds of CLOCK_MONOTONIC, counters are cumulative.

use std::collections::BTreeMap;
use std::io;

use serde::Serialize;
use serde_json::value::RawValue;

/// Everything that was read for one deadline. A part that could not be read is absent and named in `gaps`.
#[derive(Debug, Default, Serialize)]
pub struct Sample {
    /// When it should have begun.
    pub due_ns: u64,
    /// When reading began.
    pub t_begin_ns: u64,
    /// When reading ended.
    pub t_end_ns: u64,
    /// Deadlines before this one that passed without a sample.
    pub missed: u64,
    /// The block devices that could be read.
    pub disks: Vec<Stamped<Disk>>,
    /// The emulated volumes that answered.
    pub volumes: Vec<Stamped<Volume>>,
    /// CPU time by role.
    pub cpu: Stamped<Cpu>,
    /// Memory by role.
    pub memory: Stamped<Memory>,
    /// What could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<Gap>,
}

/// A part of a sample with the instant at which it was read.
#[derive(Debug, Default, Serialize)]
pub struct Stamped<T> {
    /// Middle of the reading.
    pub t_ns: u64,
    /// What was read.
    #[serde(flatten)]
    pub value: T,
}

/// A block device's counters, as the kernel's `Documentation/block/stat.rst` defines them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Disk {
    /// The volume that the device is of: `data`, `wal`, ...
    pub volume: String,
    /// Reads that completed.
    pub reads: u64,
    /// Writes that completed.
    pub writes: u64,
    /// Read, in units of 512 bytes times 512.
    pub read_bytes: u64,
    /// Written.
    pub write_bytes: u64,
    /// Sum over reads, waiting included.
    pub read_time_ms: u64,
    /// Sum over writes, waiting included.
    pub write_time_ms: u64,
    /// Requests now.
    pub in_flight: u64,
    /// Time with at least one request.
    pub io_time_ms: u64,
    /// Integral of requests over time.
    pub weighted_time_ms: u64,
}

/// CPU time by role.
#[derive(Debug, Default, Serialize)]
pub struct Cpu {
    /// Nanoseconds; `host_busy`, `host_steal` and `host_idle` are sums over all cores.
    pub cpu_ns: BTreeMap<String, u64>,
}

/// Memory by role.
#[derive(Debug, Default, Serialize)]
pub struct Memory {
    /// Role, then name.
    pub bytes: BTreeMap<String, BTreeMap<&'static str, u64>>,
}

/// An emulated volume's counters, as its daemon gave them.
#[derive(Debug, Serialize)]
pub struct Volume {
    /// Which of the server's volumes: `data`, `wal`, ...
    pub volume: String,
    /// Name and value.
    pub counters: Box<RawValue>,
}

/// Something that could not be read.
#[derive(Debug, Serialize)]
pub struct Gap {
    /// `server.cgroup_cpu`, `driver.pid.42`, `disk.data`, `volume.wal`, ...
    pub what: String,
    /// The kernel's reason.
    pub why: String,
}

impl Gap {
    pub(crate) fn new(what: impl Into<String>, error: &io::Error) -> Self {
        Self { what: what.into(), why: error.to_string() }
    }
}
