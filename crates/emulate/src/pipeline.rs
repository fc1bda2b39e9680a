//! The way of a request through the daemon: submit to the model, move the data, answer when it is time.
//!
//! One lock orders submits; under it the clock is read, the model is told and the release is scheduled. Data is moved
//! outside that lock, under the lock of the request's own slot, so that a release that comes early waits for the data
//! and not the other way round. Slots, buffers and heaps are allocated before the first request.
//!
//! Lock order: state, then slot. Nobody takes the state while holding a slot.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard};

use fuser::{Errno, ReplyData, ReplyWrite};
use pgdyno_volume::log::Record;
use pgdyno_volume::{Change, Event, Instance, Io, IoId, Op, VolumeId};

use crate::alarm::Alarm;
use crate::clock::Clock;
use crate::error::Result;
use crate::follow::{Answered, Totals};
use crate::overhead::BaseOverhead;
use crate::release::START_AHEAD_NS;
use crate::stats::{CounterRecord, Histograms, HostStats, Released};
use crate::store::{AlignedBuffer, Store};
use crate::submit_log::LogBuffer;
use crate::work_queue::WorkQueue;

/// Twice what a loop device keeps in flight.
pub(crate) const SLOTS: usize = 256;

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

/// The answer that a request waits for.
#[derive(Debug)]
pub(crate) enum Reply {
    Read(ReplyData),
    Write(ReplyWrite),
}

/// One outstanding request: its answer and its data.
#[derive(Debug)]
pub(crate) struct Slot {
    buffer: AlignedBuffer,
    len: usize,
    reply: Option<Reply>,
    failed: bool,
    /// What a worker still moves, when the store is on a disk.
    moving: Option<Moving>,
}

/// A transfer that a worker has not finished.
#[derive(Clone, Copy, Debug)]
struct Moving {
    op: Op,
    offset: u64,
    /// The answer is due and goes out as soon as the data is there.
    wanted: bool,
}

#[derive(Clone, Copy, Debug)]
struct Schedule {
    op: Op,
    len: u32,
    submitted_at: u64,
    done_at: u64,
    target: u64,
    held: bool,
}

/// Everything under the one lock.
#[derive(Debug)]
pub(crate) struct State {
    mode: Mode,
    model: Instance,
    volume: VolumeId,
    overhead: BaseOverhead,
    /// What the path of reads and of writes costs beyond `overhead` now.
    correction_ns: [i64; 2],
    free: Vec<u16>,
    schedule: Vec<Schedule>,
    releases: BinaryHeap<Reverse<(u64, u16)>>,
    events: Vec<Event>,
    stats: HostStats,
    log: Option<LogBuffer>,
    /// What the alarm is set to; `u64::MAX` while there is nothing to wait for.
    pub(crate) alarm: u64,
    /// How much earlier than a release the alarm is set: what the machine takes to wake the release thread.
    pub(crate) ahead_ns: u64,
    /// Whether the model's time has begun. Before that it must not hear of any instant.
    armed: bool,
    pub(crate) stopping: bool,
}

/// The shared heart of the daemon.
#[derive(Debug)]
pub(crate) struct Pipeline {
    pub(crate) clock: Clock,
    store: Store,
    slots: Vec<Mutex<Slot>>,
    state: Mutex<State>,
    /// Wakes the release thread.
    pub(crate) alarm: Alarm,
    /// Requests whose data a worker must move; `None` when the store is in memory and the event loop moves it.
    disk: Option<WorkQueue>,
}

/// A request as it came in.
pub(crate) enum Payload<'a> {
    Read(ReplyData, u32),
    Write(ReplyWrite, &'a [u8]),
}

impl Pipeline {
    pub(crate) fn new(
        store: Store,
        on_disk: bool,
        model: Instance,
        volume: VolumeId,
        request_bytes: usize,
    ) -> io::Result<Self> {
        // A volume in memory asks for memory with every new block that is written; one on a disk never has to.
        let buffer =
            || if on_disk { AlignedBuffer::resident(request_bytes) } else { AlignedBuffer::new(request_bytes) };
        let slot = || Slot { buffer: buffer(), len: 0, reply: None, failed: false, moving: None };
        let idle = Schedule { op: Op::Read, len: 0, submitted_at: 0, done_at: 0, target: 0, held: false };
        let state = State {
            mode: Mode::Bypass,
            model,
            volume,
            overhead: BaseOverhead::default(),
            correction_ns: [0; 2],
            free: (0..SLOTS as u16).rev().collect(),
            schedule: vec![idle; SLOTS],
            releases: BinaryHeap::with_capacity(SLOTS),
            events: Vec::with_capacity(4 * SLOTS),
            stats: HostStats::new(),
            log: None,
            alarm: u64::MAX,
            ahead_ns: START_AHEAD_NS,
            armed: false,
            stopping: false,
        };
        Ok(Self {
            clock: Clock::start(),
            store,
            slots: (0..SLOTS).map(|_| Mutex::new(slot())).collect(),
            state: Mutex::new(state),
            alarm: Alarm::new()?,
            disk: on_disk.then(|| WorkQueue::new(SLOTS)),
        })
    }

    /// Takes a request in. It is answered here when it is due at once, else by the release thread.
    pub(crate) fn submit(&self, offset: u64, payload: Payload<'_>) {
        let (op, len) = match &payload {
            Payload::Read(_, len) => (Op::Read, *len),
            Payload::Write(_, data) => (Op::Write, data.len() as u32),
        };
        let mut state = self.lock();
        let Some(index) = state.free.pop() else {
            state.stats.refused_ops += 1;
            drop(state);
            return refuse(payload);
        };
        let mut slot = self.slot(index);
        let now = self.clock.now();
        let due_now = state.submit(now, index, Io { id: IoId(u64::from(index)), op, offset, len });
        self.bring_alarm_forward(&mut state);
        drop(state);
        slot.len = len as usize;
        slot.moving = Some(Moving { op, offset, wanted: due_now });
        match (&self.disk, payload) {
            (_, Payload::Read(reply, _)) => slot.reply = Some(Reply::Read(reply)),
            (Some(_), Payload::Write(reply, data)) => {
                slot.reply = Some(Reply::Write(reply));
                slot.buffer[..data.len()].copy_from_slice(data);
            }
            (None, Payload::Write(reply, data)) => {
                // As it came: nobody needs it after this.
                slot.reply = Some(Reply::Write(reply));
                slot.failed = self.store.write(data, offset).is_err();
                slot.moving = None;
            }
        }
        if let Some(disk) = &self.disk {
            disk.push(index);
        } else {
            self.move_data(&mut slot);
            if due_now {
                slot.answer();
                drop(slot);
                self.finish(index, false);
            }
        }
    }

    /// Moves a request's data between its buffer and the store.
    fn move_data(&self, slot: &mut Slot) {
        let Some(Moving { op, offset, .. }) = slot.moving.take() else {
            return;
        };
        let len = slot.len;
        let moved = match op {
            Op::Read => self.store.read(&mut slot.buffer[..len], offset),
            Op::Write => self.store.write(&slot.buffer[..len], offset),
        };
        slot.failed = moved.is_err();
    }

    /// A worker of a store on a disk: moves data until the daemon stops, and answers what was due meanwhile.
    pub(crate) fn work(&self) {
        let Some(disk) = &self.disk else { return };
        while let Some(index) = disk.pop() {
            let mut slot = self.slot(index);
            let wanted_before = slot.moving.is_some_and(|moving| moving.wanted);
            // The lock is held while the data moves: a release that comes meanwhile waits for it.
            self.move_data(&mut slot);
            if wanted_before {
                slot.answer();
                drop(slot);
                self.finish(index, true);
            }
        }
    }

    /// Answers a request whose time has come, unless its data is not there yet: then a worker will.
    pub(crate) fn answer(&self, index: u16) -> bool {
        let mut slot = self.slot(index);
        if let Some(moving) = &mut slot.moving {
            moving.wanted = true;
            return false;
        }
        slot.answer();
        true
    }

    fn slot(&self, index: u16) -> MutexGuard<'_, Slot> {
        self.slots[usize::from(index)].lock().expect("a slot's holder does not panic")
    }

    /// Lets release thread and workers end once nothing is outstanding.
    pub(crate) fn stop(&self) {
        self.lock().stopping = true;
        self.alarm.set(0);
        if let Some(disk) = &self.disk {
            disk.close();
        }
    }

    /// Sets the alarm if something is due before it goes off. Under the lock, so that alarms are set in the order in
    /// which they were decided.
    fn bring_alarm_forward(&self, state: &mut State) {
        let next = state.next_wake();
        if next < state.alarm {
            state.alarm = next;
            self.alarm.set(self.clock.monotonic(next));
        }
    }

    /// Sets the alarm to what comes next, or to nothing.
    pub(crate) fn set_alarm(&self, state: &mut State) {
        // An alarm that went off is not pending any more, whatever it was set to.
        state.alarm = u64::MAX;
        self.bring_alarm_forward(state);
    }

    fn finish(&self, index: u16, overrun: bool) {
        let released_at = self.clock.now();
        self.lock().finish(index, released_at, overrun);
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("the state's holder does not panic")
    }

    pub(crate) fn zero(&self, offset: u64, len: u64) -> std::io::Result<()> {
        self.store.zero(offset, len)
    }

    pub(crate) fn size_bytes(&self) -> u64 {
        self.store.size_bytes()
    }

    pub(crate) fn flushed(&self) {
        self.lock().stats.flush_ops += 1;
    }

    pub(crate) fn set_mode(&self, mode: Mode) {
        self.lock().mode = mode;
    }

    /// Begins the model's time: from here on requests take as long as the model says. Returns CLOCK_MONOTONIC.
    pub(crate) fn arm(&self, overhead: BaseOverhead, log: Option<LogBuffer>) -> u64 {
        let mut state = self.lock();
        state.overhead = overhead;
        state.log = log;
        state.stats = HostStats::new();
        state.mode = Mode::Model;
        state.armed = true;
        // It was set on the clock that ends here.
        state.alarm = u64::MAX;
        self.clock.restart()
    }

    /// What was answered since the volume was armed, for whoever follows the path.
    pub(crate) fn answered(&self) -> Answered {
        let stats = &self.lock().stats;
        Answered { modelled: Totals { ops: stats.completed, ns: stats.modelled_ns }, held: stats.held_ops }
    }

    /// Takes so much more off the instants of reads and of writes that are granted from here on.
    pub(crate) fn correct(&self, correction_ns: [i64; 2]) {
        self.lock().correction_ns = correction_ns;
    }

    /// Applies a change to the model, now.
    pub(crate) fn change(&self, change: impl FnOnce(VolumeId) -> Change) {
        let mut state = self.lock();
        let now = self.clock.now();
        let change = change(state.volume);
        state.model.change(now, change);
        if let Some(log) = &mut state.log {
            log.push(&Record::Change { now, change });
        }
        self.bring_alarm_forward(&mut state);
        drop(state);
    }

    pub(crate) fn swap_log(&self, empty: &mut Vec<u8>) {
        if let Some(log) = &mut self.lock().log {
            log.swap(empty);
        }
    }

    pub(crate) fn stats(&self, histograms: bool, daemon_cpu_ns: u64) -> (CounterRecord, Option<Histograms>) {
        let mut state = self.lock();
        let now = self.clock.now();
        let model = state.model.counters(state.volume);
        let path_ns = [Op::Read, Op::Write].map(|op| path_ns(&state.overhead, state.correction_ns, op, 8 << 10));
        let counters = state.stats.record(&model, now, path_ns, daemon_cpu_ns);
        let copy = histograms.then(|| state.stats.clone());
        drop(state);
        (counters, copy.map(|stats| stats.histograms()))
    }

    /// Keeps the volume's content as an image; nothing may be written after this.
    pub(crate) fn save(&self, target: &Path) -> Result<()> {
        self.store.save(target)
    }

    /// Removes the volume's content.
    pub(crate) fn remove(&self) -> std::io::Result<()> {
        self.store.remove()
    }

    /// Where the volume's writable layer is.
    pub(crate) fn layer(&self) -> &Path {
        self.store.folder()
    }
}

impl State {
    /// `true`: the answer goes out as soon as the data is moved, without the release thread.
    fn submit(&mut self, now: u64, index: u16, io: Io) -> bool {
        self.stats.submitted(now);
        let entry = Schedule { op: io.op, len: io.len, submitted_at: now, done_at: now, target: now, held: false };
        self.schedule[usize::from(index)] = entry;
        match self.mode {
            Mode::Bypass => true,
            Mode::Fixed(ns) => {
                let at = now + ns;
                let entry = &mut self.schedule[usize::from(index)];
                (entry.done_at, entry.target) = (at, at);
                self.releases.push(Reverse((at, index)));
                false
            }
            Mode::Model => {
                let volume = self.volume;
                self.model.submit(now, volume, io);
                if let Some(log) = &mut self.log {
                    log.push(&Record::Submit { now, volume, io });
                }
                self.advance(now, Some(index))
            }
        }
    }

    /// Schedules what the model has granted. `true`: `submitting` is due already and was left to its submitter.
    pub(crate) fn advance(&mut self, now: u64, submitting: Option<u16>) -> bool {
        if !self.armed {
            return false;
        }
        let mut due_now = false;
        self.model.advance(now, &mut self.events);
        for event in self.events.drain(..) {
            if let (Some(log), Some(record)) = (&mut self.log, Record::of_event(&event)) {
                log.push(&record);
            }
            let Event::Granted { id: IoId(id), done_at } = event else {
                continue;
            };
            let entry = &mut self.schedule[id as usize];
            entry.done_at = done_at;
            // Never before it came in: a volume faster than the path is as fast as the path.
            let path_ns = path_ns(&self.overhead, self.correction_ns, entry.op, u64::from(entry.len));
            entry.target = done_at.saturating_sub(path_ns).max(entry.submitted_at);
            entry.held = entry.target > now;
            if submitting == Some(id as u16) && entry.target <= now {
                due_now = true;
            } else {
                self.releases.push(Reverse((entry.target, id as u16)));
            }
        }
        due_now
    }

    /// The next request whose release is due at `now`, or so soon that a sleep would end after it.
    pub(crate) fn pop_due(&mut self, now: u64) -> Option<u16> {
        let due = now + self.ahead_ns;
        let Reverse((_, index)) = *self.releases.peek().filter(|Reverse((target, _))| *target <= due)?;
        self.releases.pop();
        Some(index)
    }

    /// When the release thread has to look again: some time before the next release, or at the model's next grant, which
    /// cannot be asked for before its instant. `u64::MAX` when there is nothing to wait for.
    fn next_wake(&self) -> u64 {
        let release = self.releases.peek().map(|Reverse((target, _))| target.saturating_sub(self.ahead_ns));
        release.into_iter().chain(self.model.next_grant()).min().unwrap_or(u64::MAX)
    }

    /// Counts a request that was answered and frees its slot.
    pub(crate) fn finish(&mut self, index: u16, released_at: u64, overrun: bool) {
        let Schedule { op, submitted_at, done_at, target, held, .. } = self.schedule[usize::from(index)];
        self.stats.released(&Released { op, submitted_at, done_at, target, released_at, held, overrun }, released_at);
        self.free.push(index);
    }
}

impl Slot {
    fn answer(&mut self) {
        let failed = std::mem::take(&mut self.failed);
        match self.reply.take() {
            Some(Reply::Read(reply)) if failed => reply.error(Errno::EIO),
            Some(Reply::Write(reply)) if failed => reply.error(Errno::EIO),
            Some(Reply::Read(reply)) => reply.data(&self.buffer[..self.len]),
            Some(Reply::Write(reply)) => reply.written(self.len as u32),
            None => {}
        }
    }
}

/// How much earlier than its completion a request is answered, so that it arrives in time.
fn path_ns(overhead: &BaseOverhead, correction_ns: [i64; 2], op: Op, len: u64) -> u64 {
    let (path, correction_ns) = match op {
        Op::Read => (overhead.read, correction_ns[0]),
        Op::Write => (overhead.write, correction_ns[1]),
    };
    path.ns(len).saturating_add_signed(correction_ns)
}

fn refuse(payload: Payload<'_>) {
    match payload {
        Payload::Read(reply, _) => reply.error(Errno::EAGAIN),
        Payload::Write(reply, _) => reply.error(Errno::EAGAIN),
    }
}

#[cfg(test)]
mod tests {
    use pgdyno_volume::{QuantileTable, ServiceTimeParams, VolumeParams};

    use super::*;
    use crate::overhead::PathCost;

    /// Reads are faster than the path, so they are answered at once, and what the model still says of them later is
    /// nothing to wake up for. A write after them sets the alarm.
    #[test]
    fn a_request_that_waits_sets_the_alarm_whatever_came_before() {
        let folder = std::env::temp_dir().join(format!("pgdyno-pipeline-{}", std::process::id()));
        let store = Store::create(&folder, 1 << 20, None, false).expect("create");
        let (read, write) = (QuantileTable::constant(100_000), QuantileTable::constant(5_000_000));
        let mut model = Instance::new(1);
        let service_time = ServiceTimeParams { read, write };
        let volume = model.add_volume(VolumeParams { service_time, ..VolumeParams::unlimited(1 << 20) });
        let pipeline = Pipeline::new(store, false, model, volume, 4096).expect("a timer");
        let path = PathCost { fixed_ns: 1_000_000, per_kib_ps: 0 };
        pipeline.arm(BaseOverhead { read: path, write: path, beside_ns: 0 }, None);

        let mut state = pipeline.lock();
        pipeline.set_alarm(&mut state);
        assert_eq!(state.alarm, u64::MAX, "nothing to wait for");
        let io = |op, id| Io { id: IoId(id), op, offset: id * 4096, len: 4096 };
        assert!(state.submit(1_000, 0, io(Op::Read, 0)), "answered at once");
        pipeline.bring_alarm_forward(&mut state);
        assert!(!state.submit(2_000, 1, io(Op::Write, 1)), "answered later");
        pipeline.bring_alarm_forward(&mut state);
        assert_eq!(state.alarm, 4_002_000 - START_AHEAD_NS, "in time for the write");
        drop(state);
        pipeline.remove().expect("remove");
    }
}
