//! The way of a volume's requests through the daemon: submit to the model, move the data, answer when it is time.
//!
//! One lock orders submits of all volumes ([`Core`]); under it the clock is read, the request is submitted to the model
//! and the release is scheduled. Data is moved outside that lock, under the lock of the request's own slot, so that a release that comes early
//! waits for the data and not the other way round. Slots, buffers and heaps are allocated before the first request.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use fuser::{ReplyData, ReplyWrite};
use pgdyno_catalog::Storage;
use pgdyno_clock::process_cpu_ns;
use pgdyno_crash::{Cache, LoggedVolume};
use pgdyno_host::{Fault, Result};
use pgdyno_volume::log::Record;
use pgdyno_volume::{Change, Effect, Io, Op, VolumeFault, VolumeId};

use crate::core::Core;
use crate::failure::{StoreFailure, StoreFailures};
use crate::lane::Mode;
use crate::last_words::{self, Thread};
use crate::log_buffer::LogBuffer;
use crate::minutes::Minutes;
use crate::overhead::BaseOverhead;
use crate::restored::Restored;
use crate::slots::{Answered, Due, Moving, Reply, SLOTS, Slot, SlotIndex, Slots};
use crate::stats::{Completed, CounterRecord, Histograms, HostStats, MemberRecord, Totals};
use crate::store::{Freezing, Store};
use crate::work_queue::WorkQueue;
use crate::write_log::Recorder;

/// One volume of the daemon: its content, and its requests while they are outstanding.
#[derive(Debug)]
pub(crate) struct Pipeline {
    pub(crate) core: Arc<Core>,
    pub(crate) lane: usize,
    store: Store,
    slots: Arc<Slots>,
    /// Requests whose data a worker must move; `None` when the store and the images below are in memory: the event loop moves it.
    pub(crate) disk: Option<WorkQueue>,
    failures: StoreFailures,
    /// The write log, and the volume's number in it.
    logged: Option<(Arc<Recorder>, u8)>,
}

/// A request as it came in.
pub(crate) enum Payload<'a> {
    Read(ReplyData, u32),
    Write(ReplyWrite, &'a [u8]),
}

impl Payload<'_> {
    fn shape(&self) -> (Op, u32) {
        match self {
            Self::Read(_, len) => (Op::Read, *len),
            Self::Write(_, data) => (Op::Write, data.len() as u32),
        }
    }

    /// What is to be written.
    fn written(&self) -> Option<&[u8]> {
        match self {
            Self::Write(_, data) => Some(data),
            Self::Read(..) => None,
        }
    }
}

impl Pipeline {
    /// Adds a volume to the instance. `name` and `cache` are for its write log, if it has one.
    pub(crate) fn new(
        core: &Arc<Core>,
        store: Store,
        storage: &Storage,
        (name, cache): (&str, Cache),
    ) -> Result<Arc<Self>> {
        let on_disk = store.is_on_disk();
        // A volume in memory asks for memory with every new block that is written; one on a disk never has to.
        let slots = Arc::new(Slots::new(
            storage.total.params().request_bytes() as usize,
            on_disk,
            core.write_log.get().cloned(),
        ));
        let disk = on_disk.then(|| WorkQueue::new(SLOTS));
        let lane = core.add_lane(&storage.total.spec, |model| storage.add_to(model)).ok_or_else(|| {
            Fault::new(
                "this instance has attached as many volumes as one daemon can serve",
                "detach all of its volumes, then attach the ones that you need again",
            )
        })?;
        let failures = StoreFailures::default();
        let logged = core.write_log.get().map(|log| {
            let (spec, size_bytes) = (storage.total.spec.clone(), store.size_bytes());
            (log.clone(), log.add(LoggedVolume { name: name.to_owned(), spec, size_bytes, cache }))
        });
        core.serve_lane(lane, &slots);
        Ok(Arc::new(Self { core: core.clone(), lane, store, slots, disk, failures, logged }))
    }

    /// Takes a request in. It is answered here when it is due at once, else by the release thread.
    pub(crate) fn submit(&self, offset: u64, payload: Payload<'_>) {
        let (op, len) = payload.shape();
        let state = self.core.lock();
        last_words::pass(Thread::EventLoop);
        let (mut state, index) = self.core.take_slot(self.lane, state);
        let mut slot = self.slots.take(index);
        let now = self.core.clock.now();
        let due = state.submit(now, index, Io { id: index.id(), op, offset, len });
        slot.injected = due == Due::Now && state.fails(index);
        self.core.bring_alarm_forward(&mut state);
        drop(state);
        if let Some(((log, volume), data)) = self.logged.as_ref().zip(payload.written()) {
            slot.logged = log.write(*volume, offset, data);
        }
        slot.len = len as usize;
        slot.moving = Some(Moving { op, offset });
        match (&self.disk, payload) {
            (_, Payload::Read(reply, _)) => slot.reply = Some(Reply::Read(reply)),
            (Some(_), Payload::Write(reply, data)) => {
                slot.reply = Some(Reply::Write(reply));
                slot.buffer[..data.len()].copy_from_slice(data);
            }
            (None, Payload::Write(reply, data)) => {
                // As it came: it is not needed after this.
                slot.reply = Some(Reply::Write(reply));
                slot.failed = self.noted(self.store.write(data, offset)).is_err();
                slot.moving = None;
            }
        }
        if let Some(disk) = &self.disk {
            if due == Due::Now {
                self.slots.transfer(index).awaits(slot.injected);
            }
            disk.push(index);
        } else {
            self.move_data(&mut slot);
            if due == Due::Now {
                let answered = self.slots.send(&mut slot);
                drop(slot);
                self.finish(index, false, answered);
            }
        }
    }

    /// Moves a request's data between its buffer and the store.
    fn move_data(&self, slot: &mut Slot) {
        let Some(Moving { op, offset }) = slot.moving.take() else {
            return;
        };
        let len = slot.len;
        let data = &mut slot.buffer[..len];
        let moved = match op {
            Op::Read => self.store.read(data, offset),
            Op::Write => self.store.write(data, offset),
        };
        slot.failed = self.noted(moved).is_err();
    }

    /// A failure of the store is remembered for those who ask.
    fn noted(&self, moved: std::io::Result<()>) -> std::io::Result<()> {
        moved.inspect_err(|error| self.failures.note(error, self.store.folder()))
    }

    /// Whether the store has failed since the volume was attached, and how.
    pub(crate) fn store_failure(&self) -> Option<StoreFailure> {
        self.failures.report()
    }

    /// A worker of a store on a disk: moves data until the daemon stops, and answers what was due meanwhile.
    pub(crate) fn work(&self) {
        let Some(disk) = &self.disk else { return };
        while let Some(index) = disk.pop() {
            let mut slot = self.slots.lock(index);
            last_words::pass(Thread::Worker);
            self.move_data(&mut slot);
            if let Some(injected) = self.slots.transfer(index).end() {
                slot.injected = injected;
                let answered = self.slots.send(&mut slot);
                drop(slot);
                self.finish(index, true, answered);
            }
        }
    }

    /// Lets the workers end once nothing is outstanding.
    pub(crate) fn stop(&self) {
        if let Some(disk) = &self.disk {
            disk.close();
        }
    }

    /// Counts a request whose answer this thread has sent.
    fn finish(&self, index: SlotIndex, overrun: bool, answered: Answered) {
        if let Answered::Sent { failed } = answered {
            let released_at = self.core.clock.now();
            self.core.finish(&mut self.core.lock(), index, (released_at, overrun, failed));
        }
    }

    pub(crate) fn zero(&self, offset: u64, len: u64) -> std::io::Result<()> {
        let noted = self.logged.as_ref().map(|(log, volume)| (log, log.discard(*volume, offset, len)));
        self.noted(self.store.zero(offset, len))
            .inspect_err(|_| _ = self.slots.failed().fetch_add(1, Ordering::Relaxed))?;
        if let Some((log, Some(request))) = noted {
            log.answer(request);
        }
        Ok(())
    }

    /// Counts a request that was refused: it is no whole blocks, or reaches past the end.
    pub(crate) fn refused(&self) {
        self.core.lock().lane(self.lane).stats.refused_ops += 1;
    }

    pub(crate) fn size_bytes(&self) -> u64 {
        self.store.size_bytes()
    }

    pub(crate) fn flushed(&self) {
        if let Some((log, volume)) = &self.logged {
            log.flush(*volume);
        }
        self.core.lock().lane(self.lane).stats.flush_ops += 1;
    }

    pub(crate) fn set_mode(&self, mode: Mode) {
        self.core.lock().lane(self.lane).mode = mode;
    }

    /// From here on requests take as long as the model says; with the first volume the model's time begins. What is `restored`
    /// begins to come. Returns CLOCK_MONOTONIC.
    pub(crate) fn arm(&self, overhead: BaseOverhead, log: Option<LogBuffer>, restored: &Restored) -> u64 {
        let minutes = Minutes::new();
        let mut state = self.core.lock();
        let started_ns = self.core.begin(&mut state, log);
        let now = self.core.clock.now();
        state.advance(now, None);
        if let Some(held) = &restored.lazily {
            let volume = state.lane(self.lane).volume;
            state.model.restore(now, volume, held);
            state.log_told(&held.to_string(), &Record::Restore { now, volume });
        }
        let lane = state.lane(self.lane);
        lane.credits = restored.credits(now);
        lane.overhead = overhead.on(&self.core.clock);
        lane.stats = HostStats::new();
        lane.failed.store(0, Ordering::Relaxed);
        lane.mode = Mode::Model;
        lane.minutes = Some(minutes);
        state.keep_sample(self.lane, now, process_cpu_ns());
        self.core.bring_alarm_forward(&mut state);
        drop(state);
        started_ns
    }

    /// What was completed since the volume was armed, in real time.
    pub(crate) fn completed(&self) -> Completed {
        let mut state = self.core.lock();
        let stats = &state.lane(self.lane).stats;
        let ns = stats.modelled_ns.map(|ns| self.core.clock.real_ns(ns));
        Completed { modelled: Totals { ops: stats.completed, ns }, held: stats.held_ops }
    }

    /// Takes so much more real time off the instants of reads and of writes that are granted from here on.
    pub(crate) fn correct(&self, correction_ns: [i64; 2]) {
        let correction_ns = correction_ns.map(|ns| self.core.clock.model_delta_ns(ns));
        self.core.lock().lane(self.lane).correction_ns = correction_ns;
    }

    /// Applies a change to the model, now.
    pub(crate) fn change(&self, change: impl FnOnce(VolumeId) -> Change) {
        self.change_member(None, change);
    }

    /// Applies a change to one member of the array, or to the volume.
    fn change_member(&self, member: Option<usize>, change: impl FnOnce(VolumeId) -> Change) {
        let mut state = self.core.lock();
        let now = self.core.clock.now();
        state.keep_minutes(now);
        let volume = state.lane(self.lane).volume;
        let change = change(member.map_or(volume, |place| state.model.members(volume)[place]));
        state.model.change(now, change);
        if let Some(log) = &mut state.log {
            log.push(&Record::Change { now, change });
        }
        self.core.bring_alarm_forward(&mut state);
        drop(state);
    }

    /// Injects faults, whose instants are as of now, into the volume or into one member of its array, counted from 0.
    pub(crate) fn fail(&self, member: Option<usize>, faults: &[VolumeFault]) {
        let now = self.core.clock.now();
        for fault in faults {
            let (from, until) = (now.saturating_add(fault.from), now.saturating_add(fault.until));
            self.change_member(member, |volume| Change::Fault { volume, fault: VolumeFault { from, until, ..*fault } });
        }
    }

    /// Puts a fault back that was healed, with its own instants; a loss is never healed.
    pub(crate) fn fail_again(&self, member: usize, fault: VolumeFault) {
        if fault.effect != Effect::Lose && fault.until > self.core.clock.now() {
            self.change_member(Some(member), |volume| Change::Fault { volume, fault });
        }
    }

    /// Ends all faults but a loss.
    pub(crate) fn heal(&self) {
        self.change(|volume| Change::Heal { volume });
    }

    /// Members of the volume's array, 1 without an array.
    pub(crate) fn members(&self) -> usize {
        let mut state = self.core.lock();
        let volume = state.lane(self.lane).volume;
        state.model.members(volume).len()
    }

    /// Faults that are in force or will be, each with its member, as of the instant that comes with them.
    pub(crate) fn faults(&self) -> (u64, Vec<(usize, VolumeFault)>) {
        let mut state = self.core.lock();
        let now = self.core.clock.now();
        state.advance(now, None);
        let volume = state.lane(self.lane).volume;
        let faults = state.model.faults(volume).collect();
        self.core.bring_alarm_forward(&mut state);
        drop(state);
        (now, faults)
    }

    pub(crate) fn stats(&self, histograms: bool, daemon_cpu_ns: u64) -> (CounterRecord, Option<Histograms>) {
        let mut state = self.core.lock();
        let now = self.core.clock.now();
        // Credits are as of the last step of the model.
        state.advance(now, None);
        let counters = state.record(self.lane, now, daemon_cpu_ns);
        let copy = histograms.then(|| state.lane(self.lane).stats.clone());
        self.core.bring_alarm_forward(&mut state);
        drop(state);
        (counters, copy.map(|stats| stats.histograms()))
    }

    /// What each member of the volume's array has counted; nothing without an array.
    pub(crate) fn member_stats(&self) -> Vec<MemberRecord> {
        let mut state = self.core.lock();
        let volume = state.lane(self.lane).volume;
        let members = state.model.members(volume);
        let each = members.iter().map(|member| state.model.counters(*member).into());
        if members.len() > 1 { each.collect() } else { Vec::new() }
    }

    /// What had been counted at each full minute of the last day, the oldest first, in the time of those who use it.
    pub(crate) fn minutes(&self) -> Vec<(u64, CounterRecord)> {
        let mut samples = Minutes::room();
        let clock = &self.core.clock;
        let mut state = self.core.lock();
        state.advance(clock.now(), None);
        if let Some(minutes) = &state.lane(self.lane).minutes {
            minutes.copy_into(&mut samples);
        }
        self.core.bring_alarm_forward(&mut state);
        drop(state);
        samples.into_iter().map(|(at, counters)| (clock.seen(at).0, counters)).collect()
    }

    /// The volume becomes `storage`, now. A larger one must have its room before.
    pub(crate) fn modify(&self, storage: &Storage) {
        let mut state = self.core.lock();
        let now = self.core.clock.now();
        state.advance(now, None);
        let volume = state.lane(self.lane).volume;
        state.model.modify(now, volume, storage.member().params());
        state.log_told(&storage.total.spec, &Record::Modify { now, volume });
        self.core.bring_alarm_forward(&mut state);
        drop(state);
    }

    /// Makes room for a larger volume.
    pub(crate) fn grow(&self, size_bytes: u64) -> std::io::Result<()> {
        self.store.grow(size_bytes)?;
        if let Some((log, volume)) = &self.logged {
            log.grown(*volume, size_bytes);
        }
        Ok(())
    }

    /// Refuses a place where [`Self::save`] cannot keep it.
    pub(crate) fn require_savable(&self, target: &Path) -> Result<()> {
        self.store.require_savable(target)
    }

    /// Keeps the volume's content as an image; nothing may be written after this.
    pub(crate) fn save(&self, target: &Path) -> Result<()> {
        self.store.save(target)
    }

    /// Makes ready to freeze the volume's content, which becomes the image `target`.
    pub(crate) fn prepare(&self, target: &Path) -> Result<Freezing<'_>> {
        self.store.prepare(target)
    }

    /// Removes the volume's content.
    pub(crate) fn remove(&self) -> std::io::Result<()> {
        self.store.remove()
    }

    /// What comes from its snapshot after it is armed, which the image stands for.
    pub(crate) fn restored(&self, storage: &Storage) -> Restored {
        let first_touch = storage.member().params().first_touch.as_ref();
        let fast = storage.total.initialization.as_ref().is_some_and(|init| init.credits.is_some());
        Restored {
            lazily: first_touch.map(|params| self.store.image_extents(params.block_bytes)),
            fast_bytes: fast.then(|| self.image_bytes().unwrap_or(self.size_bytes())),
        }
    }

    /// Bytes of the image that it stands on; `None` for a volume that was formatted.
    pub(crate) fn image_bytes(&self) -> Option<u64> {
        self.store.image_bytes()
    }

    /// Where the write log will be written; `None` without one.
    pub(crate) fn write_log_path(&self) -> Option<&Path> {
        self.logged.as_ref().map(|(log, _)| log.path())
    }

    /// Where the volume's writable layer is.
    pub(crate) fn layer(&self) -> &Path {
        self.store.folder()
    }
}
