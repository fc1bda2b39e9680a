//! What the volumes of one instance share: the model under one lock, its clock, and the alarm for what is due next.
//!
//! Each volume is a lane: a range of slots, so that the number of a request says whose it is. Lanes are added while others
//! serve and are not used again. Their data is moved by their [`Pipeline`], outside the lock.
//!
//! Lock order: state, then slot. Nobody takes the state while holding a slot.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};

use pgdyno_clock::{process_cpu_ns, realtime_ns};
use pgdyno_volume::log::Record;
use pgdyno_volume::{Event, Instance, InstanceCounters, Io, IoId, Op, VolumeId};

use crate::alarm::Alarm;
use crate::clock::{Clock, Dilation};
use crate::minutes::{MinuteClock, Minutes};
use crate::overhead::BaseOverhead;
use crate::pipeline::Pipeline;
use crate::release::START_AHEAD_NS;
use crate::stats::{CounterRecord, HostStats, Released};
use crate::submit_log::LogBuffer;

/// Twice what a loop device keeps in flight.
pub(crate) const SLOTS: usize = 256;
/// As many volumes as the largest instance attaches; the numbers of their requests fit into 16 bits.
pub(crate) const LANES: usize = 128;

/// What is due so soon after another answer goes out with it: a wake-up of the release thread costs as much as an answer.
/// A request that is alone is answered at its instant as ever.
const TOGETHER_NS: u64 = 5_000;

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

#[derive(Clone, Copy, Debug)]
struct Schedule {
    op: Op,
    len: u32,
    submitted_at: u64,
    done_at: u64,
    target: u64,
    held: bool,
}

/// What a volume has under the lock.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) mode: Mode,
    pub(crate) volume: VolumeId,
    pub(crate) overhead: BaseOverhead,
    /// What the path of reads and of writes costs beyond `overhead` now. As everything here in the model's time.
    pub(crate) correction_ns: [i64; 2],
    pub(crate) free: Vec<u16>,
    pub(crate) stats: HostStats,
    /// From when it was armed on.
    pub(crate) minutes: Option<Minutes<CounterRecord>>,
}

/// Everything under the one lock.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) model: Instance,
    lanes: Vec<Lane>,
    schedule: Vec<Schedule>,
    releases: BinaryHeap<Reverse<(u64, u16)>>,
    events: Vec<Event>,
    minute: MinuteClock,
    pub(crate) log: Option<LogBuffer>,
    /// What the alarm is set to; `u64::MAX` while there is nothing to wait for.
    pub(crate) alarm: u64,
    /// How much earlier than a release the alarm is set: what the machine takes to wake the release thread.
    pub(crate) ahead_ns: u64,
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
    /// Wakes the release thread.
    pub(crate) alarm: Alarm,
    pipelines: [OnceLock<Weak<Pipeline>>; LANES],
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
            ahead_ns: clock.model_ns(START_AHEAD_NS),
            together_ns: clock.model_ns(TOGETHER_NS),
            armed: false,
            stopping: false,
        };
        let pipelines = [const { OnceLock::new() }; LANES];
        Ok(Self { clock, state: Mutex::new(state), alarm: Alarm::new()?, pipelines })
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
        let idle = Schedule { op: Op::Read, len: 0, submitted_at: 0, done_at: 0, target: 0, held: false };
        state.schedule.resize(first + SLOTS, idle);
        // Room for all of them at once: nothing is asked for while they serve.
        state.releases.reserve(first + SLOTS);
        state.events.reserve(4 * (first + SLOTS));
        state.lanes.push(Lane {
            mode: Mode::Bypass,
            volume,
            overhead: BaseOverhead::default(),
            correction_ns: [0; 2],
            free: (0..SLOTS).rev().map(|slot| (first + slot) as u16).collect(),
            stats: HostStats::new(),
            minutes: None,
        });
        self.bring_alarm_forward(&mut state);
        Some(number)
    }

    /// Tells who moves the data of a lane.
    pub(crate) fn serve_lane(&self, lane: usize, pipeline: &Arc<Pipeline>) {
        let _ = self.pipelines[lane].set(Arc::downgrade(pipeline));
    }

    /// Answers a request whose time has come, unless its data is not there yet: then a worker will.
    pub(crate) fn answer(&self, index: u16) -> bool {
        let pipeline = self.pipelines[lane_of(index)].get().and_then(Weak::upgrade);
        // A volume is gone only when nothing of it is outstanding.
        pipeline.is_none_or(|pipeline| pipeline.answer(index))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("the state's holder does not panic")
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

    /// Lets the release thread end once nothing is outstanding.
    pub(crate) fn stop(&self) {
        self.lock().stopping = true;
        self.alarm.set(0);
    }

    /// What the instance counts; `None` without limits.
    pub(crate) fn instance_counters(&self) -> Option<InstanceCounters> {
        self.lock().model.instance_counters()
    }

    pub(crate) fn swap_log(&self, empty: &mut Vec<u8>) {
        if let Some(log) = &mut self.lock().log {
            log.swap(empty);
        }
    }
}

impl State {
    pub(crate) fn lane(&mut self, lane: usize) -> &mut Lane {
        &mut self.lanes[lane]
    }

    /// `true`: the answer goes out as soon as the data is moved, without the release thread.
    pub(crate) fn submit(&mut self, now: u64, index: u16, io: Io) -> bool {
        self.keep_minutes(now);
        let lane = &mut self.lanes[lane_of(index)];
        lane.stats.submitted(now);
        let entry = Schedule { op: io.op, len: io.len, submitted_at: now, done_at: now, target: now, held: false };
        self.schedule[usize::from(index)] = entry;
        match lane.mode {
            Mode::Bypass => true,
            Mode::Fixed(ns) => {
                let at = now + ns;
                let entry = &mut self.schedule[usize::from(index)];
                (entry.done_at, entry.target) = (at, at);
                self.releases.push(Reverse((at, index)));
                false
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

    /// Schedules what the model has granted. `true`: `submitting` is due already and was left to its submitter.
    pub(crate) fn advance(&mut self, now: u64, submitting: Option<u16>) -> bool {
        if !self.armed {
            return false;
        }
        self.keep_minutes(now);
        self.step(now, submitting)
    }

    fn step(&mut self, now: u64, submitting: Option<u16>) -> bool {
        let mut due_now = false;
        self.model.advance(now, &mut self.events);
        for event in self.events.drain(..) {
            if let (Some(log), Some(record)) = (&mut self.log, Record::of_event(&event)) {
                log.push(&record);
            }
            let Event::Granted { id: IoId(id), done_at } = event else {
                continue;
            };
            let lane = &self.lanes[lane_of(id as u16)];
            let entry = &mut self.schedule[id as usize];
            entry.done_at = done_at;
            // Never before it came in: a volume faster than the path is as fast as the path.
            entry.target = done_at.saturating_sub(lane.path_ns(entry.op, u64::from(entry.len))).max(entry.submitted_at);
            entry.held = entry.target > now;
            if submitting == Some(id as u16) && entry.target <= now {
                due_now = true;
            } else {
                self.releases.push(Reverse((entry.target, id as u16)));
            }
        }
        due_now
    }

    /// The next request whose release is due at `now`, or so soon that a sleep would end after it or not be worth it.
    pub(crate) fn pop_due(&mut self, now: u64) -> Option<u16> {
        let due = now + self.ahead_ns + self.together_ns;
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
        self.keep_minutes(released_at);
        let Schedule { op, len, submitted_at, done_at, target, held } = self.schedule[usize::from(index)];
        let released = Released { op, len, submitted_at, done_at, target, released_at, held, overrun };
        let lane = &mut self.lanes[lane_of(index)];
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
        lane.stats.record(&model, instance.as_ref(), now, path_ns, daemon_cpu_ns)
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

impl Lane {
    /// How much earlier than its completion a request is answered, so that it arrives in time.
    pub(crate) fn path_ns(&self, op: Op, len: u64) -> u64 {
        let (path, correction_ns) = match op {
            Op::Read => (self.overhead.read, self.correction_ns[0]),
            Op::Write => (self.overhead.write, self.correction_ns[1]),
        };
        path.ns(len).saturating_add_signed(correction_ns)
    }
}

fn lane_of(index: u16) -> usize {
    usize::from(index) / SLOTS
}

#[cfg(test)]
mod tests {
    use pgdyno_volume::{BucketParams, CreditParams, QuantileTable, ServiceTimeParams, VolumeParams};

    use super::*;
    use crate::overhead::PathCost;

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
        let io = |op, id| Io { id: IoId(id), op, offset: id % 8 * 4096, len: 4096 };
        assert!(state.submit(1_000, 0, io(Op::Read, 0)), "answered at once");
        core.bring_alarm_forward(&mut state);
        let first_of_second = SLOTS as u16;
        assert!(!state.submit(2_000, first_of_second, io(Op::Write, SLOTS as u64)), "answered later");
        core.bring_alarm_forward(&mut state);
        assert_eq!(state.alarm, 4_002_000 - START_AHEAD_NS, "in time for the write");
        assert_eq!(state.pop_due(4_002_000), Some(first_of_second));
    }

    /// Each wake-up of the release thread answers what is due within a few microseconds, and nothing that is due later.
    #[test]
    fn what_is_due_together_is_answered_together() {
        let core = Core::new(Instance::new(1), Dilation::new(1).expect("none")).expect("a timer");
        core.add_lane("null", |model| model.add_volume(VolumeParams::unlimited(1 << 20))).expect("a lane");
        let mut state = core.lock();
        state.lane(0).mode = Mode::Fixed(500_000);
        for (index, at) in [(0, 1_000), (1, 1_000 + TOGETHER_NS), (2, 1_001 + TOGETHER_NS)] {
            state.submit(at, index, Io { id: IoId(u64::from(index)), op: Op::Write, offset: 0, len: 4096 });
        }
        let woken_at = 501_000 - state.ahead_ns;
        assert_eq!([0, 1, 2].map(|_| state.pop_due(woken_at)), [Some(0), Some(1), None]);
    }

    /// gp2 of 100 GiB: three minutes at its burst, then two in which nobody comes. Each sample is of the instant at which
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
            let io = Io { id: IoId(u64::from(index)), op: Op::Write, offset: now % 4096 * 8192, len: 4096 };
            assert!(state.submit(now, index, io), "within its burst");
            state.finish(index, now, false);
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
