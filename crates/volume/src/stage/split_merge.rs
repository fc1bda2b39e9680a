//! How many I/O units a request costs.
//!
//! A request above the unit (256 KiB for SSD volumes) counts as several. Physically sequential requests that are
//! outstanding together are merged and share a unit: eight sequential requests of 32 KiB cost one, eight random ones
//! cost eight (Amazon EBS user guide, "EBS I/O characteristics"). A request that comes after its predecessor completed
//! starts a new unit, since nothing was left to merge it with; the guide does not say this, it follows from merging.

use crate::io::{Io, IoId, Nanos, Op};
use crate::params::{Accounting, Cost};

/// Sequential runs followed at once: more than PostgreSQL keeps open on one volume (WAL, checkpoint, scans).
const RUNS: usize = 16;

/// A request that comes so shortly before its predecessor completes was sent by somebody who had its answer: a host
/// sends answers ahead by what the way back takes, and sees requests when they have made the way there. The two need
/// not cancel for each request. One reader that waits for each answer must not merge with itself.
const JOIN_MARGIN_NS: Nanos = 100_000;

#[derive(Clone, Copy, Debug)]
struct Run {
    op: Op,
    end: u64,
    /// Bytes already in the run's last unit, 0 < filled <= unit.
    filled: u64,
    last: IoId,
    /// When the run's last request completes; `None` until it is granted.
    done_at: Option<Nanos>,
}

impl Run {
    fn can_be_joined(&self, now: Nanos) -> bool {
        self.done_at.is_none_or(|done_at| done_at > now.saturating_add(JOIN_MARGIN_NS))
    }
}

/// What a request takes from the limits and their credits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charge {
    /// From the limit on IOPS.
    pub tokens: u64,
    /// From the limit on throughput.
    pub bytes: u64,
}

/// The stage: remembers the last few sequential runs.
#[derive(Clone, Debug)]
pub struct SplitMerge {
    accounting: Accounting,
    cost: Cost,
    runs: [Option<Run>; RUNS],
    next_slot: usize,
}

impl SplitMerge {
    /// No run yet.
    pub fn new(accounting: Accounting, cost: Cost) -> Self {
        assert!(accounting.unit_bytes > 0, "an I/O unit has a size");
        Self { accounting, cost, runs: [None; RUNS], next_slot: 0 }
    }

    /// Counts otherwise from now on; sequences go on.
    pub fn modify(&mut self, accounting: Accounting, cost: Cost) {
        assert!(accounting.unit_bytes > 0, "an I/O unit has a size");
        for run in self.runs.iter_mut().flatten() {
            run.filled = run.filled.min(accounting.unit_bytes);
        }
        (self.accounting, self.cost) = (accounting, cost);
    }

    /// The cost of `io`, submitted at `now`, in I/O units; 0 when it fits into its predecessor's unit.
    pub fn units(&mut self, now: Nanos, io: &Io) -> u32 {
        let unit = self.accounting.unit_bytes;
        let len = u64::from(io.len);
        let end = io.offset.saturating_add(len);
        // A host uses an id again once its request is done: what that one left can be joined no more.
        self.forget(io.id);
        let found = self
            .runs
            .iter_mut()
            .flatten()
            .find(|run| run.op == io.op && run.end == io.offset && run.can_be_joined(now));
        if let Some(run) = found.filter(|_| self.accounting.merge_sequential) {
            let total = run.filled + len;
            let units = total.div_ceil(unit) - 1;
            *run = Run { op: io.op, end, filled: last_unit_fill(total, unit), last: io.id, done_at: None };
            return u32::try_from(units).unwrap_or(u32::MAX);
        }
        self.runs[self.next_slot] =
            Some(Run { op: io.op, end, filled: last_unit_fill(len, unit), last: io.id, done_at: None });
        self.next_slot = (self.next_slot + 1) % RUNS;
        u32::try_from(len.div_ceil(unit)).unwrap_or(u32::MAX)
    }

    fn forget(&mut self, id: IoId) {
        for run in self.runs.iter_mut().filter(|run| run.is_some_and(|run| run.last == id)) {
            *run = None;
        }
    }

    /// What `io` takes, given that it costs `units`.
    pub fn charge(&self, io: &Io, units: u32) -> Charge {
        let each = match io.op {
            Op::Read => self.cost.read_tokens,
            Op::Write => self.cost.write_tokens,
        };
        let units = u64::from(units);
        let bytes = if self.cost.whole_units { units * self.accounting.unit_bytes } else { u64::from(io.len) };
        Charge { tokens: units * u64::from(each), bytes }
    }

    /// Tokens of the dearest unit.
    pub fn unit_tokens(&self) -> u64 {
        u64::from(self.cost.read_tokens.max(self.cost.write_tokens))
    }

    /// The largest request that is one unit.
    pub fn unit_bytes(&self) -> u64 {
        self.accounting.unit_bytes
    }

    /// Tells the stage when a request completes, so that it knows how long a run can still be joined.
    pub fn granted(&mut self, id: IoId, done_at: Nanos) {
        if let Some(run) = self.runs.iter_mut().flatten().find(|run| run.last == id) {
            run.done_at = Some(done_at);
        }
    }
}

fn last_unit_fill(bytes: u64, unit: u64) -> u64 {
    if bytes == 0 { 0 } else { (bytes - 1) % unit + 1 }
}
