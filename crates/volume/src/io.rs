//! What goes into the model and what comes out.

use crate::params::BucketParams;

/// Nanoseconds since the instance was attached; never decreasing from call to call.
pub type Nanos = u64;

/// A volume of an instance: its index in the order of [`crate::Instance::add_volume`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct VolumeId(pub u16);

/// The host's name for a request; the model only hands it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IoId(pub u64);

/// What a request does. A flush costs nothing here: its price is in the write (`docs/decision/0004`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Read.
    Read,
    /// Write, durable when done.
    Write,
}

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    /// The host's name for it, unique among outstanding requests.
    pub id: IoId,
    /// Read or write.
    pub op: Op,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub len: u32,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IoResult {
    /// As asked.
    Ok,
    /// It reached past the end of the volume.
    OutOfRange,
    /// A fault ended it with an I/O error.
    Failed,
}

impl IoResult {
    /// Of a request that reaches past the end or not, and that a fault hit or not.
    pub(crate) fn of(in_range: bool, failed: bool) -> Self {
        match (failed, in_range) {
            (true, _) => Self::Failed,
            (false, true) => Self::Ok,
            (false, false) => Self::OutOfRange,
        }
    }

    /// What a host is told of the request when it is granted.
    pub(crate) fn granted(self, id: IoId, done_at: Nanos) -> Event {
        match self {
            Self::Failed => Event::Failing { id, done_at },
            Self::Ok | Self::OutOfRange => Event::Granted { id, done_at },
        }
    }
}

/// What the model tells its host, in order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The limits let the request pass; it completes at `done_at`, which is final.
    Granted {
        /// Which request.
        id: IoId,
        /// When it completes.
        done_at: Nanos,
    },
    /// The limits let the request pass, and a fault hit it: it ends at `done_at` with an I/O error.
    Failing {
        /// Which request.
        id: IoId,
        /// When it ends.
        done_at: Nanos,
    },
    /// The request is complete.
    Done {
        /// Which request.
        id: IoId,
        /// How it ended.
        result: IoResult,
    },
}

/// An intervention from outside. It touches requests that are not granted yet, never those that are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// New limits, as a volume modification sets them. What is in a bucket stays, up to the new depth.
    Limits {
        /// Which volume.
        volume: VolumeId,
        /// The new IOPS limit.
        iops_limit: Option<BucketParams>,
        /// The new throughput limit.
        throughput_limit: Option<BucketParams>,
    },
    /// Sets how full both buckets are.
    Credit {
        /// Which volume.
        volume: VolumeId,
        /// Parts per million of the depth.
        level_ppm: u32,
    },
    /// A volume with credits does its baseline and no more, as one with a pending snapshot may.
    Baseline {
        /// Which volume.
        volume: VolumeId,
        /// Until this instant.
        until: Nanos,
    },
    /// Sets how full the reserves of the instance are, from which it does more than its baseline.
    InstanceCredit {
        /// Parts per million of the reserve.
        level_ppm: u32,
    },
    /// Adds a fault.
    Fault {
        /// Which volume.
        volume: VolumeId,
        /// What goes wrong, and when.
        fault: VolumeFault,
    },
    /// Ends all faults of a volume but the loss of it.
    Heal {
        /// Which volume.
        volume: VolumeId,
    },
}

/// Parts per million that mean all.
pub const ALL_PPM: u32 = 1_000_000;

/// What a fault does to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// No request is granted.
    Pause,
    /// A request takes so much longer.
    Latency {
        /// What is added to its response time.
        added_ns: Nanos,
    },
    /// A request that touches this range ends with an I/O error.
    Error {
        /// First byte.
        begin: u64,
        /// The byte after the last one.
        end: u64,
        /// Only the first request that it hits.
        once: bool,
    },
    /// Every request ends with an I/O error, and [`Change::Heal`] does not end that.
    Lose,
}

/// A fault, and when it is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VolumeFault {
    /// From this instant on.
    pub from: Nanos,
    /// Until this instant; `Nanos::MAX`: until it is healed.
    pub until: Nanos,
    /// Whether it hits reads.
    pub reads: bool,
    /// Whether it hits writes.
    pub writes: bool,
    /// The share of these that it hits, in parts per million. A pause and a loss hit all.
    pub share_ppm: u32,
    /// What it does.
    pub effect: Effect,
}

impl VolumeFault {
    pub(crate) fn in_force(&self, at: Nanos) -> bool {
        self.from <= at && at < self.until
    }

    /// Whether it may hit `io`, if the share has it.
    pub(crate) fn concerns(&self, io: &Io) -> bool {
        let kind = match io.op {
            Op::Read => self.reads,
            Op::Write => self.writes,
        };
        let touched = match self.effect {
            Effect::Error { begin, end, .. } => io.offset < end && begin < io.offset.saturating_add(u64::from(io.len)),
            _ => true,
        };
        kind && touched
    }
}
