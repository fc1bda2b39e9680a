//! What the core keeps of one volume.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use pgdyno_volume::{Op, RestoreCredits, VolumeId};

use crate::minutes::Minutes;
use crate::overhead::BaseOverhead;
use crate::slots::SlotIndex;
use crate::stats::{CounterRecord, HostStats};

/// How completion times come about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// At once: formatting, mounting, detaching.
    Bypass,
    /// After this many nanoseconds: calibration.
    Fixed(u64),
    /// As the model says.
    Model,
}

/// What a volume has under the lock.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) mode: Mode,
    pub(crate) volume: VolumeId,
    pub(crate) overhead: BaseOverhead,
    /// What the path of reads and of writes costs beyond `overhead` now. As everything here in the model's time.
    pub(crate) correction_ns: [i64; 2],
    pub(crate) free: Vec<SlotIndex>,
    /// Requests that wait for a slot.
    pub(crate) waiting: usize,
    /// Requests that are answered with an I/O error, since it was armed.
    pub(crate) failed: Arc<AtomicU64>,
    pub(crate) stats: HostStats,
    /// From when it was armed on.
    pub(crate) minutes: Option<Minutes<CounterRecord>>,
    /// Of the snapshot that it was made from, if that has fast snapshot restore.
    pub(crate) credits: Option<RestoreCredits>,
}

impl Lane {
    /// A volume that is not used yet.
    pub(crate) fn new(volume: VolumeId, free: Vec<SlotIndex>) -> Self {
        Self {
            mode: Mode::Bypass,
            volume,
            overhead: BaseOverhead::default(),
            correction_ns: [0; 2],
            free,
            waiting: 0,
            failed: Arc::default(),
            stats: HostStats::new(),
            minutes: None,
            credits: None,
        }
    }

    /// How much earlier than its completion a request is answered, so that it arrives in time.
    pub(crate) fn path_ns(&self, op: Op, len: u64) -> u64 {
        let (path, correction_ns) = match op {
            Op::Read => (self.overhead.read, self.correction_ns[0]),
            Op::Write => (self.overhead.write, self.correction_ns[1]),
        };
        path.ns(len).saturating_add_signed(correction_ns)
    }
}
