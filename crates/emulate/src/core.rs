//! What the volumes of one instance share: the model under one lock, its clock, and the alarm for what is due next.
//!
//! Each volume is a lane: a range of slots, so that the number of a request says whose it is. Lanes are added while others
//! serve and are not used again. Their data is moved by their `Pipeline`, outside the lock.
//!
//! Lock order: state, then slot. No thread takes the state while it holds a slot.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, Weak};

use pgdyno_clock::{WakeLead, process_cpu_ns, realtime_ns};
use pgdyno_volume::log::Record;
use pgdyno_volume::{Event, Instance, InstanceCounters, Io, Op, VolumeId};

use crate::alarm::Alarm;
use crate::clock::{Clock, Dilation};
use crate::lane::{Lane, Mode};
use crate::log_buffer::LogBuffer;
use crate::log_state::LogState;
use crate::minutes::MinuteClock;
use crate::slots::{Answered, Due, SLOTS, SlotIndex, Slots};
use crate::stats::{CounterRecord, Released};
use crate::write_log::Recorder;

/// As many volumes as the largest instance attaches; the numbers of their requests fit into 16 bits.
pub(crate) const LANES: usize = 128;

/// What is due so soon after another answer goes out with it: a wake-up of the release thread costs as much as an answer.
/// A request that is alone is answered at its instant as ever.
const TOGETHER_NS: u64 = 5_000;

#[derive(Clone, Copy, Debug)]
struct Schedule {
    op: Op,
    len: u32,
    submitted_at: u64,
    done_at: u64,
    target: u64,
    held: bool,
    /// A fault ends it with an I/O error.
    failing: bool,
}

/// Everything under the one lock.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) model: Instance,
    lanes: Vec<Lane>,
    schedule: Vec<Schedule>,
    releases: BinaryHeap<Reverse<(u64, SlotIndex)>>,
    events: Vec<Event>,
    minute: MinuteClock,
    pub(crate) log: Option<LogBuffer>,
    /// What the alarm is set to; `u64::MAX` while there is nothing to wait for.
    pub(crate) alarm: u64,
    /// How much earlier than a release the alarm is set: what the machine takes to wake the release thread.
    pub(crate) wake_lead: WakeLead,
    /// [`TOGETHER_NS`] in the model's time.
    together_ns: u64,
    /// Whether the model's time has begun. Before that it must not hear of any instant.
    pub(crate) armed: bool,
    pub(crate) stopping: bool,
}

/// The shared heart of the daemon.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) clock: Clock,
    state: Mutex<State>,
    /// A slot is free for which requests wait.
    slot_freed: Condvar,
    /// Wakes the release thread.
    pub(crate) alarm: Alarm,
    /// Weak, so that the buffers of a volume go when it is detached.
    slots: [OnceLock<Weak<Slots>>; LANES],
    /// What has become of the submit log, if there is one.
    pub(crate) submit_log: OnceLock<Arc<LogState>>,
    /// Set before the first volume comes, if at all.
    pub(crate) write_log: OnceLock<Arc<Recorder>>,
}

impl Core {
    /// Without volumes. The model's time begins when the first of them is armed.
    pub(crate) fn new(model: Instance, dilation: Dilation) -> io::Result<Self> {
        let clock = Clock::start(dilation);
        let state = State {
            model,
            lanes: Vec::with_capacity(LANES),
            schedule: Vec::new(),
            releases: BinaryHeap::new(),
            events: Vec::new(),
            minute: MinuteClock::STOPPED,
            log: None,
            alarm: u64::MAX,
            wake_lead: WakeLead::new(|ns| clock.model_ns(ns)),
            together_ns: clock.model_ns(TOGETHER_NS),
            armed: false,
            stopping: false,
        };
        let slots = [const { OnceLock::new() }; LANES];
        Ok(Self {
            clock,
            state: Mutex::new(state),
            slot_freed: Condvar::new(),
            alarm: Alarm::new()?,
            slots,
            submit_log: OnceLock::new(),
            write_log: OnceLock::new(),
        })
    }

    /// Makes a lane for a volume that `attach` adds to the model; its specification goes into the log. `None` when there
    /// have been as many as there are numbers.
    pub(crate) fn add_lane(&self, spec: &str, attach: impl FnOnce(&mut Instance) -> VolumeId) -> Option<usize> {
        let mut state = self.lock();
        let number = state.lanes.len();
        if number == LANES {
            return None;
        }
        if state.armed {
            let now = self.clock.now();
            state.advance(now, None);
            state.log_told(spec, &Record::Attach { now });
        }
        let volume = attach(&mut state.model);
        let first = number * SLOTS;
        let idle =
            Schedule { op: Op::Read, len: 0, submitted_at: 0, done_at: 0, target: 0, held: false, failing: false };
        state.schedule.resize(first + SLOTS, idle);
        // Room for all of them at once: nothing is asked for while they serve.
        state.releases.reserve(first + SLOTS);
        state.events.reserve(4 * (first + SLOTS));
        state.lanes.push(Lane::new(volume, SlotIndex::of_lane(number)));
        self.bring_alarm_forward(&mut state);
        Some(number)
    }

    /// Gives a lane its slots.
    pub(crate) fn serve_lane(&self, lane: usize, slots: &Arc<Slots>) {
        self.lock().lane(lane).failed = slots.failed().clone();
        let _ = self.slots[lane].set(Arc::downgrade(slots));
    }

    /// Answers a request whose instant has come. `injected`: with an I/O error.
    pub(crate) fn answer(&self, index: SlotIndex, injected: bool) -> Answered {
        let slots = self.slots[index.lane()].get().and_then(Weak::upgrade);
        // A volume is gone only when nothing of it is outstanding.
        slots.map_or(Answered::Sent { failed: false }, |slots| slots.answer(index, injected))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("the state's holder does not panic")
    }

    /// A slot of a lane for a new request. Where all are taken the thread waits, and with it the kernel: what it has taken in is never
    /// refused.
    pub(crate) fn take_slot<'a>(
        &'a self,
        lane: usize,
        mut state: MutexGuard<'a, State>,
    ) -> (MutexGuard<'a, State>, SlotIndex) {
        loop {
            if let Some(index) = state.lane(lane).free.pop() {
                return (state, index);
            }
            state.lane(lane).waiting += 1;
            state = self.slot_freed.wait(state).expect("the state's holder does not panic");
            state.lane(lane).waiting -= 1;
        }
    }

    /// Counts a request that was answered and frees its slot.
    pub(crate) fn finish(&self, state: &mut State, index: SlotIndex, released: (u64, bool, bool)) {
        let (released_at, overrun, failed) = released;
        state.finish(index, released_at, overrun, failed);
        if state.lane(index.lane()).waiting > 0 {
            self.slot_freed.notify_all();
        }
    }

    /// Sets the alarm if something is due before it goes off. Under the lock, so that alarms are set in the order in
    /// which they were decided.
    pub(crate) fn bring_alarm_forward(&self, state: &mut State) {
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

    /// Begins the model's time, unless it has begun. Returns now on CLOCK_MONOTONIC.
    pub(crate) fn begin(&self, state: &mut State, log: Option<LogBuffer>) -> u64 {
        if state.armed {
            return self.clock.monotonic(self.clock.now());
        }
        state.log = log;
        state.armed = true;
        // It was set on the clock that ends here.
        state.alarm = u64::MAX;
        state.minute = MinuteClock::begin(realtime_ns());
        self.clock.restart()
    }

    /// Lets the release thread end once nothing is due. All volumes are gone by then, and with them whoever waited.
    pub(crate) fn stop(&self) {
        self.lock().stopping = true;
        self.alarm.set(0);
    }

    /// What the instance counts; `None` without limits.
    pub(crate) fn instance_counters(&self) -> Option<InstanceCounters> {
        self.lock().model.instance_counters()
    }

    /// Exchanges what the log has for `empty`. Whether it has overflowed.
    pub(crate) fn swap_log(&self, empty: &mut Vec<u8>) -> bool {
        self.lock().log.as_mut().is_some_and(|log| log.swap(empty))
    }
}

impl State {
    pub(crate) fn lane(&mut self, lane: usize) -> &mut Lane {
        &mut self.lanes[lane]
    }

    /// Submits a request to the model.
    pub(crate) fn submit(&mut self, now: u64, index: SlotIndex, io: Io) -> Due {
        self.keep_minutes(now);
        let lane = &mut self.lanes[index.lane()];
        lane.stats.submitted(now);
        let (op, len) = (io.op, io.len);
        let entry = Schedule { op, len, submitted_at: now, done_at: now, target: now, held: false, failing: false };
        self.schedule[index.place()] = entry;
        match lane.mode {
            Mode::Bypass => Due::Now,
            Mode::Fixed(ns) => {
                let at = now + ns;
                let entry = &mut self.schedule[index.place()];
                (entry.done_at, entry.target) = (at, at);
                self.releases.push(Reverse((at, index)));
                Due::Later
            }
            Mode::Model => {
                let volume = lane.volume;
                self.model.submit(now, volume, io);
                if let Some(log) = &mut self.log {
                    log.push(&Record::Submit { now, volume, io });
                }
                self.advance(now, Some(index))
            }
        }
    }

    /// Schedules what the model has granted. `Now`: `submitting` is due already and is left to its submitter.
    pub(crate) fn advance(&mut self, now: u64, submitting: Option<SlotIndex>) -> Due {
        if !self.armed {
            return Due::Later;
        }
        self.keep_minutes(now);
        self.step(now, submitting)
    }

    fn step(&mut self, now: u64, submitting: Option<SlotIndex>) -> Due {
        let mut due = Due::Later;
        self.model.advance(now, &mut self.events);
        for event in self.events.drain(..) {
            if let (Some(log), Some(record)) = (&mut self.log, Record::of_event(&event)) {
                log.push(&record);
            }
            let (id, done_at, failing) = match event {
                Event::Granted { id, done_at } => (id, done_at, false),
                Event::Failing { id, done_at } => (id, done_at, true),
                Event::Done { .. } => continue,
            };
            let index = SlotIndex::of(id);
            let lane = &self.lanes[index.lane()];
            let entry = &mut self.schedule[index.place()];
            (entry.done_at, entry.failing) = (done_at, failing);
            // Never before it came in: a volume faster than the path is as fast as the path.
            entry.target = done_at.saturating_sub(lane.path_ns(entry.op, u64::from(entry.len))).max(entry.submitted_at);
            entry.held = entry.target > now;
            if submitting == Some(index) && entry.target <= now {
                due = Due::Now;
            } else {
                self.releases.push(Reverse((entry.target, index)));
            }
        }
        due
    }

    /// The next request whose release is due at `now`, or so soon that a sleep would end after it or not be worth it.
    pub(crate) fn pop_due(&mut self, now: u64) -> Option<SlotIndex> {
        let until = now + self.wake_lead.ns() + self.together_ns;
        self.releases.peek().filter(|Reverse((target, _))| *target <= until)?;
        self.releases.pop().map(|Reverse((_, index))| index)
    }

    /// Whether a fault ends a granted request with an I/O error.
    pub(crate) fn fails(&self, index: SlotIndex) -> bool {
        self.schedule[index.place()].failing
    }

    /// When the release thread has to look again: some time before the next release, or at the model's next grant, which
    /// cannot be asked for before its instant. `u64::MAX` when there is nothing to wait for.
    fn next_wake(&self) -> u64 {
        let release = self.releases.peek().map(|Reverse((target, _))| target.saturating_sub(self.wake_lead.ns()));
        release.into_iter().chain(self.model.next_grant()).min().unwrap_or(u64::MAX)
    }

    /// Counts a request that was answered and frees its slot.
    fn finish(&mut self, index: SlotIndex, released_at: u64, overrun: bool, failed: bool) {
        self.keep_minutes(released_at);
        let Schedule { op, len, submitted_at, done_at, target, held, .. } = self.schedule[index.place()];
        let released = Released { op, len, submitted_at, done_at, target, released_at, held, overrun, failed };
        let lane = &mut self.lanes[index.lane()];
        lane.stats.released(&released, released_at);
        lane.free.push(index);
    }

    /// Samples the minutes that have passed, before what happens at `now` is counted. What the model grants on the way
    /// waits for the release thread, whose alarm has gone off for it.
    pub(crate) fn keep_minutes(&mut self, now: u64) {
        while let Some(at) = self.minute.take(now) {
            self.step(at, None);
            let daemon_cpu_ns = process_cpu_ns();
            for lane in 0..self.lanes.len() {
                self.keep_sample(lane, at, daemon_cpu_ns);
            }
        }
    }

    /// Keeps a lane's counters of an instant, if its samples are wanted.
    pub(crate) fn keep_sample(&mut self, lane: usize, at: u64, daemon_cpu_ns: u64) {
        let record = self.record(lane, at, daemon_cpu_ns);
        if let Some(minutes) = &mut self.lanes[lane].minutes {
            minutes.keep(at, record);
        }
    }

    /// Counters of a lane, its model and its instance at `now`, up to which nothing is left to be counted.
    pub(crate) fn record(&mut self, lane: usize, now: u64, daemon_cpu_ns: u64) -> CounterRecord {
        let instance = self.model.instance_counters();
        let model = self.model.counters(self.lanes[lane].volume);
        let lane = &mut self.lanes[lane];
        let path_ns = [Op::Read, Op::Write].map(|op| lane.path_ns(op, 8 << 10));
        let mut record = lane.stats.record(&model, instance.as_ref(), now, path_ns, daemon_cpu_ns);
        record.failed_ops = lane.failed.load(Ordering::Relaxed);
        record.restore_credits_millionths = lane.credits.map(|credits| credits.balance_millionths(now));
        record.restore_credits_most_millionths = lane.credits.map(|credits| credits.capacity_millionths());
        record
    }

    /// Logs what has a specification: the text, and then what happened.
    pub(crate) fn log_told(&mut self, spec: &str, told: &Record) {
        if let Some(log) = &mut self.log {
            for record in Record::text(spec) {
                log.push(&record);
            }
            log.push(told);
        }
    }
}

#[cfg(test)]
mod tests {
    use pgdyno_volume::{BucketParams, CreditParams, QuantileTable, ServiceTimeParams, VolumeParams};

    use pgdyno_volume::IoId;

    use super::*;
    use crate::minutes::Minutes;
    use crate::overhead::{BaseOverhead, PathCost};

    /// Reads are faster than the path, so they are answered at once, and what the model still says of them later is
    /// nothing to wake up for. A write after them sets the alarm. The second volume has numbers of its own.
    #[test]
    fn a_request_that_waits_sets_the_alarm_whatever_came_before() {
        let (read, write) = (QuantileTable::constant(100_000), QuantileTable::constant(5_000_000));
        let service_time = ServiceTimeParams { read, write };
        let params = VolumeParams { service_time, ..VolumeParams::unlimited(1 << 20) };
        let core = Core::new(Instance::new(1), Dilation::new(1).expect("none")).expect("a timer");
        let lanes = [0, 1].map(|_| core.add_lane("null", |model| model.add_volume(params.clone())).expect("a lane"));
        assert_eq!(lanes, [0, 1]);
        let path = PathCost { fixed_ns: 1_000_000, per_kib_ps: 0 };
        let mut state = core.lock();
        core.begin(&mut state, None);
        for lane in lanes {
            state.lane(lane).overhead = BaseOverhead { read: path, write: path, beside_ns: 0 };
            state.lane(lane).mode = Mode::Model;
        }
        core.set_alarm(&mut state);
        assert_eq!(state.alarm, u64::MAX, "nothing to wait for");
        let io = |op, index: SlotIndex| Io { id: index.id(), op, offset: 0, len: 4096 };
        let [first, first_of_second] = [0, SLOTS].map(|place| SlotIndex::of(IoId(place as u64)));
        assert_eq!(state.submit(1_000, first, io(Op::Read, first)), Due::Now);
        core.bring_alarm_forward(&mut state);
        assert_eq!(state.submit(2_000, first_of_second, io(Op::Write, first_of_second)), Due::Later);
        core.bring_alarm_forward(&mut state);
        assert_eq!(state.alarm, 4_002_000 - state.wake_lead.ns(), "in time for the write");
        assert_eq!(state.pop_due(4_002_000), Some(first_of_second));
    }

    /// Each wake-up of the release thread answers what is due within a few microseconds, and nothing that is due later.
    #[test]
    fn what_is_due_together_is_answered_together() {
        let core = Core::new(Instance::new(1), Dilation::new(1).expect("none")).expect("a timer");
        core.add_lane("null", |model| model.add_volume(VolumeParams::unlimited(1 << 20))).expect("a lane");
        let mut state = core.lock();
        state.lane(0).mode = Mode::Fixed(500_000);
        let slots = [0, 1, 2].map(|id| SlotIndex::of(IoId(id)));
        for (index, at) in slots.into_iter().zip([1_000, 1_000 + TOGETHER_NS, 1_001 + TOGETHER_NS]) {
            state.submit(at, index, Io { id: index.id(), op: Op::Write, offset: 0, len: 4096 });
        }
        let woken_at = 501_000 - state.wake_lead.ns();
        assert_eq!(slots.map(|_| state.pop_due(woken_at)), [Some(slots[0]), Some(slots[1]), None]);
    }

    /// gp2 of 100 GiB: three minutes at its burst, then two without a request. Each sample is of the instant at which
    /// its minute ended, the credits too.
    #[test]
    fn minutes_have_what_was_counted_and_what_credits_were_left_when_they_ended() {
        let (burst_per_s, baseline_per_s, credits) = (3000, 300, 5_400_000);
        let params = VolumeParams {
            iops_limit: Some(BucketParams { rate_per_s: burst_per_s, depth_ns: 0 }),
            iops_credit: Some(CreditParams { rate_per_s: baseline_per_s, capacity: credits, initial: credits }),
            ..VolumeParams::unlimited(1 << 30)
        };
        let core = Core::new(Instance::new(1), Dilation::new(1).expect("none")).expect("a timer");
        let lane = core.add_lane("gp2", |model| model.add_volume(params.clone())).expect("a lane");
        let mut state = core.lock();
        core.begin(&mut state, None);
        state.minute = MinuteClock::begin(0);
        state.lane(lane).mode = Mode::Model;
        state.lane(lane).minutes = Some(Minutes::new());
        let request_ns = 1_000_000_000 / burst_per_s + 1;
        let mut now = 0;
        while now < 180_000_000_000 {
            let index = state.lane(lane).free.pop().expect("one at a time");
            let io = Io { id: index.id(), op: Op::Write, offset: now % 4096 * 8192, len: 4096 };
            assert_eq!(state.submit(now, index, io), Due::Now, "within its burst");
            state.finish(index, now, false, false);
            now += request_ns;
        }
        state.advance(300_000_000_000, None);
        let mut kept = Minutes::room();
        state.lane(lane).minutes.as_ref().expect("it has minutes").copy_into(&mut kept);
        assert_eq!(kept.len(), 5);
        for (minute, (at, sample)) in (1..).zip(kept) {
            assert_eq!(at, minute * 60_000_000_000);
            let sample = serde_json::to_value(sample).expect("plain numbers");
            let (requests, earned) = ((at.min(now) / request_ns).min(540_000), baseline_per_s * at / 1_000_000_000);
            assert!(sample["write_ops"].as_u64().expect("a count").abs_diff(requests) <= 1);
            assert!(sample["io_credits"].as_u64().expect("credits").abs_diff(credits - requests + earned) <= 2);
        }
    }
}
