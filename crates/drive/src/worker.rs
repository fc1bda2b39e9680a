//! One thread and its clients: waits for sockets and times, and carries words between clients and sessions.

mod drain;
mod second;
mod sessions;
mod slot;
mod turn;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io;
use std::sync::mpsc::Sender;

use pgdyno_clock::{Events, SECOND_NS, Waiter, thread_cpu_ns};
use pgdyno_connection::Fault;
use pgdyno_measure::Record;
use pgdyno_workload::{Arrivals, Protocol, SqlState};
use rustix::event::epoll;
use rustix::fd::{AsFd, OwnedFd};

use crate::begin::Begun;
use crate::clock::Clock;
use crate::ending::Ending;
use crate::reconnect::Reconnect;
pub(crate) use slot::Slot;
use slot::Waits;

/// Ids of what is watched that are no clients.
const STOP: u64 = u64::MAX;
const RECONNECTED: u64 = u64::MAX - 1;
/// Events that are taken at a time.
const EVENTS_MAX: usize = 1024;

/// What a worker says to the one who adds up.
pub(crate) enum Report {
    /// A second is over.
    Second(usize, Box<Record>),
    /// The run ends before its time: all workers are to stop, this one does already.
    Ending(Ending),
    /// The worker is done.
    End {
        /// Its last stretch.
        last: Box<Record>,
        /// What it took from the schedule in all.
        scheduled: u64,
        /// Clients that had no connection when the time was over.
        disconnected: u64,
        /// How late it began.
        begin_late_ns: u64,
        /// How late it woke to begin.
        woke_late_ns: u64,
        /// What its clients asked for, counted.
        inputs: BTreeMap<&'static str, u64>,
    },
    /// The run cannot go on, and has no figures.
    Failure(Fault),
}

/// What all threads share.
pub(crate) struct Shared {
    pub clock: Clock,
    /// Names of prepared statements, by id.
    pub names: Vec<String>,
    /// What statements are counted as, by id.
    pub groups: Vec<u32>,
    /// Errors that end a transaction and not the run.
    pub forgiven: &'static [SqlState],
    /// How statements are sent.
    pub protocol: Protocol,
    /// Readable when it is time to stop: signals, and an event of the one who adds up.
    pub stop: [OwnedFd; 2],
    /// When nothing is begun any more.
    pub end_ns: u64,
    /// When those that have begun are given up.
    pub drain_ns: u64,
    /// Seconds end here, and each second before and after.
    pub grid_ns: u64,
    pub continue_on_error: bool,
    /// Whether clients have sessions.
    pub connects: bool,
}

impl Shared {
    /// Whether the run ends with this: an error that every transaction would meet again, unless errors are counted.
    fn ends_with(&self, ending: &Ending) -> bool {
        match ending {
            Ending::Refused { sqlstate, .. } => !self.continue_on_error && !self.forgiven.contains(sqlstate),
            Ending::Script(_) => true,
        }
    }
}

/// See the module.
pub(crate) struct Worker<'a> {
    shared: &'a Shared,
    index: usize,
    slots: Vec<Slot>,
    arrivals: Arrivals,
    timers: BinaryHeap<Reverse<(u64, usize)>>,
    waiter: Waiter,
    reconnect: Option<Reconnect>,
    record: Box<Record>,
    second_end_ns: u64,
    cpu_ns: u64,
    busy: usize,
    end_ns: u64,
    drain_ns: u64,
    ended: bool,
    disconnected: u64,
    report: Sender<Report>,
}

/// What a worker is made of.
pub(crate) struct Crew {
    pub slots: Vec<Slot>,
    pub arrivals: Arrivals,
    pub reconnect: Option<Reconnect>,
    pub record: Record,
}

impl<'a> Worker<'a> {
    /// Registers what can wake it.
    pub(crate) fn new(shared: &'a Shared, index: usize, crew: Crew, report: Sender<Report>) -> io::Result<Self> {
        let waiter = Waiter::new()?;
        for stop in &shared.stop {
            epoll::add(&waiter, stop, epoll::EventData::new_u64(STOP), epoll::EventFlags::IN)?;
        }
        if let Some(reconnect) = &crew.reconnect {
            epoll::add(&waiter, reconnect, epoll::EventData::new_u64(RECONNECTED), epoll::EventFlags::IN)?;
        }
        for (client, slot) in crew.slots.iter().enumerate() {
            if let Some(link) = &slot.link {
                epoll::add(&waiter, link.stream.as_fd(), data(client), epoll::EventFlags::IN)?;
            }
        }
        let first = crew.record.begin_ns;
        let second_end_ns = match shared.grid_ns.checked_sub(first + 1) {
            Some(before) => shared.grid_ns - before / SECOND_NS * SECOND_NS,
            None => first + SECOND_NS,
        };
        Ok(Self {
            shared,
            index,
            busy: crew.slots.len(),
            timers: (0..crew.slots.len()).map(|client| Reverse((first, client))).collect(),
            slots: crew.slots,
            arrivals: crew.arrivals,
            waiter,
            reconnect: crew.reconnect,
            record: Box::new(crew.record),
            second_end_ns,
            cpu_ns: 0,
            end_ns: shared.end_ns,
            drain_ns: shared.drain_ns,
            ended: false,
            disconnected: 0,
            report,
        })
    }

    /// Until every client is done, or something went wrong.
    pub(crate) fn run(mut self) {
        let begun = Begun::at(self.shared.clock.monotonic_ns(0));
        self.cpu_ns = thread_cpu_ns();
        let first = self.run_one_due(self.shared.clock.now());
        let (begin_late_ns, woke_late_ns) = (begun.late_ns, begun.woke_late_ns);
        drop(begun);
        if let Err(failure) = first.and_then(|_| self.serve()) {
            let _ = self.report.send(Report::Failure(failure));
            return;
        }
        let now = self.shared.clock.now();
        self.end_stretch(now);
        let (scheduled, disconnected) = (self.arrivals.claimed(), self.disconnected);
        let mut inputs = BTreeMap::new();
        for (name, count) in self.slots.iter().flat_map(|slot| slot.program.inputs()) {
            *inputs.entry(name).or_default() += count;
        }
        let last = self.record;
        let _ = self.report.send(Report::End { last, scheduled, disconnected, begin_late_ns, woke_late_ns, inputs });
    }

    fn serve(&mut self) -> Result<(), Fault> {
        let mut events = Events::with_capacity(self.slots.len().clamp(16, EVENTS_MAX));
        while self.is_at_work() {
            let mut now = self.shared.clock.now();
            self.run_due(now)?;
            if !self.is_at_work() {
                break;
            }
            now = self.shared.clock.now();
            self.roll(now);
            if now >= self.end_ns && !self.ended {
                self.ended = true;
                self.disconnected =
                    self.slots.iter().filter(|slot| slot.is_disconnected(self.shared.connects)).count() as u64;
                self.settle(now)?;
                continue;
            }
            if now >= self.drain_ns {
                self.give_up(now)?;
                break;
            }
            let clock = self.shared.clock;
            let (until_ns, now_ns) = (clock.monotonic_ns(self.wake_ns()), clock.monotonic_ns(now));
            self.waiter.wait(&mut events, until_ns, now_ns).map_err(kernel)?;
            for event in &events {
                if let Some((id, flags)) = Waiter::told(*event) {
                    self.event(id, flags)?;
                }
            }
        }
        self.take_rest();
        Ok(())
    }

    /// Whether clients are at it, or the time is not over: a schedule with nothing more in it was driven to its end only
    /// then, and its last seconds count too. Clients that may begin no more transactions do not wait for that.
    fn is_at_work(&self) -> bool {
        self.busy > 0 || (self.arrivals.is_exhausted() && !self.ended)
    }

    /// The next instant at which there is something to do whether or not anybody answers.
    fn wake_ns(&self) -> u64 {
        let timer = self.timers.peek().map_or(u64::MAX, |Reverse((at, _))| *at);
        let limit = if self.ended { self.drain_ns } else { self.end_ns };
        timer.min(self.second_end_ns).min(limit)
    }

    fn event(&mut self, id: u64, flags: epoll::EventFlags) -> Result<(), Fault> {
        match id {
            STOP => {
                // It stays readable for the other threads.
                for stop in &self.shared.stop {
                    let _ = epoll::delete(&self.waiter, stop);
                }
                self.stop_now();
                Ok(())
            }
            RECONNECTED => self.take_connections(),
            client => self.socket(client as usize, flags),
        }
    }

    fn run_due(&mut self, now: u64) -> Result<(), Fault> {
        while self.run_one_due(now)? {}
        Ok(())
    }

    /// Whether there was a client whose time has come.
    fn run_one_due(&mut self, now: u64) -> Result<bool, Fault> {
        while let Some(&Reverse((at, client))) = self.timers.peek() {
            if at > now {
                return Ok(false);
            }
            self.timers.pop();
            if self.slots[client].waits != Waits::Time {
                continue;
            }
            let now = self.shared.clock.now();
            self.roll(now);
            // All begin at once, and wait for one another then and never again.
            if at > 0 {
                self.record.wake(now - at);
            }
            self.resume(client)?;
            return Ok(true);
        }
        Ok(false)
    }
}

fn data(client: usize) -> epoll::EventData {
    epoll::EventData::new_u64(client as u64)
}

fn kernel(error: impl Into<io::Error>) -> Fault {
    let why: io::Error = error.into();
    Fault::new(format!("the kernel refused to watch a socket: {why}"), "look at the limit of open files")
}
