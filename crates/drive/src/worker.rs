//! One thread and its clients: waits for sockets and times, and carries words between clients and sessions.

mod drain;
mod second;
mod sessions;
mod slot;
mod turn;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;

use pgdyno_clock::{Events, SECOND_NS, Waiter, thread_cpu_ns};
use pgdyno_connection::Fault;
use pgdyno_host as host;
use pgdyno_measure::Record;
use pgdyno_workload::{Arrivals, Protocol, SqlState};
use rustix::event::epoll;
use rustix::fd::{AsFd, OwnedFd};

use crate::begin::Begun;
use crate::clock::Clock;
use crate::ending::Ending;
use crate::reconnect::{Failures, Reconnect};
pub(crate) use slot::Slot;
use slot::Waits;

/// Ids of what is watched that are no clients.
const STOP: u64 = u64::MAX;
const RECONNECTED: u64 = u64::MAX - 1;
/// That of the waiter's timer lies between.
const SIGNAL: u64 = u64::MAX - 3;
/// After a signal what has begun has no longer than this: somebody waits for the end.
const SIGNAL_DRAIN_NS: u64 = 5 * SECOND_NS;
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
        /// Attempts to connect again that failed.
        failures: Failures,
    },
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
    /// Readable when it is time to stop: a signal, and an event of the one who adds up.
    pub stop: [OwnedFd; 2],
    /// A thread has failed, so that there will be no figures: the others end at once.
    pub failed: AtomicBool,
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
            Ending::Script(_) | Ending::Session(_) => true,
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
pub(crate) struct Seat {
    pub waiter: Waiter,
    pub slots: Vec<Slot>,
    pub arrivals: Arrivals,
    pub reconnect: Option<Reconnect>,
    pub record: Record,
}

impl<'a> Worker<'a> {
    /// Registers what can wake it.
    pub(crate) fn new(shared: &'a Shared, index: usize, seat: Seat, report: Sender<Report>) -> io::Result<Self> {
        let waiter = seat.waiter;
        for (stop, id) in shared.stop.iter().zip([SIGNAL, STOP]) {
            epoll::add(&waiter, stop, epoll::EventData::new_u64(id), epoll::EventFlags::IN)?;
        }
        if let Some(reconnect) = &seat.reconnect {
            epoll::add(&waiter, reconnect, epoll::EventData::new_u64(RECONNECTED), epoll::EventFlags::IN)?;
        }
        for (client, slot) in seat.slots.iter().enumerate() {
            if let Some(link) = &slot.link {
                epoll::add(&waiter, link.stream.as_fd(), data(client), epoll::EventFlags::IN)?;
            }
        }
        let first = seat.record.begin_ns;
        let second_end_ns = match shared.grid_ns.checked_sub(first + 1) {
            Some(before) => shared.grid_ns - before / SECOND_NS * SECOND_NS,
            None => first + SECOND_NS,
        };
        Ok(Self {
            shared,
            index,
            busy: seat.slots.len(),
            timers: (0..seat.slots.len()).map(|client| Reverse((first, client))).collect(),
            slots: seat.slots,
            arrivals: seat.arrivals,
            waiter,
            reconnect: seat.reconnect,
            record: Box::new(seat.record),
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
    pub(crate) fn run(mut self) -> Result<(), Fault> {
        let begun = Begun::at(self.shared.clock.monotonic_ns(0));
        self.cpu_ns = thread_cpu_ns();
        let first = self.run_one_due(self.shared.clock.now());
        let (begin_late_ns, woke_late_ns) = (begun.late_ns, begun.woke_late_ns);
        drop(begun);
        first?;
        self.serve()?;
        let now = self.shared.clock.now();
        self.end_stretch(now);
        let (scheduled, disconnected) = (self.arrivals.claimed(), self.disconnected);
        let mut inputs = BTreeMap::new();
        for (name, count) in self.slots.iter().flat_map(|slot| slot.program.inputs()) {
            *inputs.entry(name).or_default() += count;
        }
        let (last, failures) = (self.record, self.reconnect.map(|reconnect| reconnect.failures()).unwrap_or_default());
        let end = Report::End { last, scheduled, disconnected, begin_late_ns, woke_late_ns, inputs, failures };
        // It is received as long as there are workers.
        let _ = self.report.send(end);
        Ok(())
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
            STOP | SIGNAL => {
                // It stays readable for the other threads.
                let _ = epoll::delete(&self.waiter, &self.shared.stop[usize::from(id == STOP)]);
                self.stop_now();
                if self.shared.failed.load(Ordering::Relaxed) {
                    self.drain_ns = 0;
                } else if id == SIGNAL {
                    self.drain_ns = self.drain_ns.min(self.shared.clock.now() + SIGNAL_DRAIN_NS);
                }
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
    host::Fault::of_kernel("a socket cannot be watched", &error.into()).into()
}
