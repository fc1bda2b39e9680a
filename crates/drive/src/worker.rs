//! One thread and its clients: waits for sockets and times, and carries words between clients and sessions.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::sync::mpsc::Sender;

use pgdyno_clock::thread_cpu_ns;
use pgdyno_workload::{
    Arrivals, Claim, Client, Failure, Next, Outcome, Skip, SqlState, StatementId, Status, Transaction, Verdict,
};
use rustix::event::epoll;
use rustix::fd::{AsFd, OwnedFd};

use crate::clock::Clock;
use crate::error::DriveError;
use crate::frame::Said;
use crate::link::Link;
use crate::reconnect::Reconnect;
use crate::record::Record;
use crate::spec::Protocol;
use crate::wait::{Events, Waiter};

const SECOND_NS: u64 = 1_000_000_000;
/// Ids of what is watched that are no clients.
const STOP: u64 = u64::MAX;
const RECONNECTED: u64 = u64::MAX - 1;
/// Events that are taken at a time.
const EVENTS_MAX: usize = 1024;
/// Transactions without a wait after which the others have their turn.
const TURN_TRANSACTIONS: u32 = 64;

/// What a worker says to the one who adds up.
pub(crate) enum Report {
    /// A second is over.
    Second(usize, Box<Record>),
    /// The worker is done.
    End {
        /// Its last stretch.
        last: Box<Record>,
        /// What it took from the schedule in all.
        scheduled: u64,
    },
    /// The run cannot go on.
    Failure(DriveError),
}

/// What a client of this thread waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waits {
    /// Its turn, or a time.
    Time,
    /// The server's answer to this statement (or to a pipeline), since then.
    Answer(Option<StatementId>, u64),
    /// A new connection, since then.
    Connection(u64),
    /// Nothing any more.
    Nothing,
}

/// A client with its session. One that needs no session never has one.
pub(crate) struct Slot {
    pub program: Box<dyn Client + Send>,
    pub link: Option<Link>,
    waits: Waits,
    /// The session went away while the client waited for a time in the middle of a transaction.
    interrupted: bool,
    watched_for_writing: bool,
}

impl Slot {
    pub(crate) fn new(program: Box<dyn Client + Send>, link: Option<Link>) -> Self {
        Self { program, link, waits: Waits::Time, interrupted: false, watched_for_writing: false }
    }
}

/// What all threads share.
pub(crate) struct Shared {
    pub clock: Clock,
    /// Names of prepared statements, by id.
    pub names: Vec<String>,
    /// What statements are counted as, by id.
    pub groups: Vec<u32>,
    /// Errors that end a transaction and not the run.
    pub forgiven: Vec<SqlState>,
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
            report,
        })
    }

    /// Until every client is done, or something went wrong.
    pub(crate) fn run(mut self) {
        self.cpu_ns = thread_cpu_ns();
        if let Err(failure) = self.serve() {
            let _ = self.report.send(Report::Failure(failure));
            return;
        }
        let now = self.shared.clock.now();
        self.end_stretch(now);
        let _ = self.report.send(Report::End { last: self.record, scheduled: self.arrivals.claimed() });
    }

    fn serve(&mut self) -> Result<(), DriveError> {
        let mut events = Events::with_capacity(self.slots.len().clamp(16, EVENTS_MAX));
        while self.is_at_work() {
            let mut now = self.shared.clock.now();
            self.run_due(now)?;
            if !self.is_at_work() {
                break;
            }
            now = self.shared.clock.now();
            self.roll(now);
            if now >= self.drain_ns {
                self.give_up(now)?;
                break;
            }
            if now >= self.end_ns && !self.ended {
                self.ended = true;
                self.settle(now)?;
                continue;
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

    fn event(&mut self, id: u64, flags: epoll::EventFlags) -> Result<(), DriveError> {
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

    /// Nothing is begun from here on; what is scheduled later does not happen.
    fn stop_now(&mut self) {
        let now = self.shared.clock.now();
        self.drain_ns = self.drain_ns.min(now + (self.shared.drain_ns - self.shared.end_ns));
        self.end_ns = self.end_ns.min(now);
        self.arrivals = self.arrivals.clone().until(self.end_ns);
    }

    fn run_due(&mut self, now: u64) -> Result<(), DriveError> {
        while let Some(&Reverse((at, client))) = self.timers.peek() {
            if at > now {
                return Ok(());
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
        }
        Ok(())
    }

    /// A client whose time has come: goes on, unless its session went away meanwhile and may come back.
    fn resume(&mut self, client: usize) -> Result<(), DriveError> {
        let now = self.shared.clock.now();
        let slot = &mut self.slots[client];
        if self.shared.connects && slot.link.is_none() && now < self.end_ns {
            slot.waits = Waits::Connection(now);
            return Ok(());
        }
        let interrupted = std::mem::take(&mut slot.interrupted);
        self.go_on(client, if interrupted { What::Lost } else { What::Ready })
    }

    fn socket(&mut self, client: usize, flags: epoll::EventFlags) -> Result<(), DriveError> {
        let slot = &mut self.slots[client];
        let Some(link) = &mut slot.link else { return Ok(()) };
        if flags.contains(epoll::EventFlags::OUT) {
            return self.flush(client);
        }
        match link.receive() {
            Ok(false) => Ok(()),
            Ok(true) => {
                let Waits::Answer(statement, since) = slot.waits else { return Ok(()) };
                let now = self.shared.clock.now();
                self.roll(now);
                if let Some(statement) = statement {
                    self.record.statement(self.shared.groups[statement.0 as usize], now - since);
                }
                self.slots[client].waits = Waits::Time;
                self.go_on(client, What::Answered)
            }
            Err(error) if error.kind() == io::ErrorKind::Unsupported => Err(DriveError::new(
                format!("the script cannot be driven: {error}"),
                "let it INSERT, or COPY from a file of the server",
            )),
            Err(_) => self.lose(client),
        }
    }

    /// Asks the client what to do, and does it, until it waits for something.
    fn go_on(&mut self, client: usize, what: What) -> Result<(), DriveError> {
        let mut what = what;
        let mut finished = 0;
        let mut now = self.shared.clock.now();
        loop {
            let Slot { program, link, waits, .. } = &mut self.slots[client];
            let next = program.next(now, what.outcome(link.as_mut()), &mut self.arrivals);
            what = What::Ready;
            match (next, link) {
                (Next::Send(statement), Some(link)) => {
                    link.put(&statement, &self.shared.names);
                    if !statement.pipelined {
                        *waits = Waits::Answer(Some(statement.id), now);
                        return self.flush(client);
                    }
                }
                (Next::Sync { wait }, Some(link)) => {
                    link.sync();
                    if wait {
                        *waits = Waits::Answer(None, now);
                    }
                    if wait || !link.is_busy() {
                        return self.flush(client);
                    }
                }
                // Only a run that is given up asks without a session.
                (Next::Send(_) | Next::Sync { .. }, None) => what = What::Lost,
                (Next::WaitUntil(at), _) => {
                    *waits = Waits::Time;
                    self.timers.push(Reverse((at, client)));
                    return Ok(());
                }
                (Next::Finished(done), link) => {
                    self.record.transaction(now, &done);
                    let said = link.as_mut().and_then(|link| link.said.take());
                    if !self.shared.continue_on_error {
                        refuse_fatal(&done.verdict, said, &self.shared.forgiven)?;
                    }
                    finished += 1;
                    if finished == TURN_TRANSACTIONS {
                        self.timers.push(Reverse((now, client)));
                        *waits = Waits::Time;
                        return Ok(());
                    }
                    now = self.shared.clock.now();
                }
                (Next::Aborted(error), _) => {
                    return Err(DriveError::new(error.to_string(), "correct the script"));
                }
                (Next::Done, link) => {
                    if let Some(link) = link.take() {
                        link.close();
                    }
                    *waits = Waits::Nothing;
                    self.busy -= 1;
                    return Ok(());
                }
            }
        }
    }

    /// Sends what is to be sent, and watches the socket if the kernel does not take it all.
    fn flush(&mut self, client: usize) -> Result<(), DriveError> {
        let slot = &mut self.slots[client];
        let Some(link) = &mut slot.link else { return Ok(()) };
        let Ok(all) = link.flush() else { return self.lose(client) };
        if all == slot.watched_for_writing {
            slot.watched_for_writing = !all;
            let writing = if all { epoll::EventFlags::empty() } else { epoll::EventFlags::OUT };
            let wanted = epoll::EventFlags::IN | writing;
            epoll::modify(&self.waiter, link.stream.as_fd(), data(client), wanted).map_err(kernel)?;
        }
        Ok(())
    }

    /// The session is gone. The client learns of it when it has a new one, or when none would be of use.
    fn lose(&mut self, client: usize) -> Result<(), DriveError> {
        let now = self.shared.clock.now();
        self.roll(now);
        let slot = &mut self.slots[client];
        if let Some(link) = slot.link.take() {
            let _ = epoll::delete(&self.waiter, link.stream.as_fd());
            slot.interrupted = link.status != Status::Idle || link.has_unsent();
        }
        slot.watched_for_writing = false;
        self.record.lost += 1;
        let asked = matches!(slot.waits, Waits::Answer(..));
        if asked {
            slot.interrupted = true;
            slot.waits = Waits::Connection(now);
        }
        match &self.reconnect {
            Some(reconnect) if now < self.end_ns => reconnect.ask(client),
            _ if asked => return self.resume(client),
            _ => (),
        }
        Ok(())
    }

    /// Nothing begins any more: who waits for a connection need not. Who waits for a time looks again: it may be
    /// that of a transaction that never comes, or that is due after an end that came early.
    fn settle(&mut self, now: u64) -> Result<(), DriveError> {
        for client in 0..self.slots.len() {
            match self.slots[client].waits {
                Waits::Connection(since) => {
                    self.record.down_ns += now.saturating_sub(since);
                    self.resume(client)?;
                }
                Waits::Time => self.resume(client)?,
                Waits::Answer(..) | Waits::Nothing => (),
            }
        }
        Ok(())
    }

    fn take_connections(&mut self) -> Result<(), DriveError> {
        let Some(reconnect) = &self.reconnect else { return Ok(()) };
        reconnect.silence();
        let made: Vec<_> = std::iter::from_fn(|| reconnect.take()).collect();
        for (client, session) in made {
            let now = self.shared.clock.now();
            self.roll(now);
            let slot = &mut self.slots[client];
            if slot.waits == Waits::Nothing {
                continue;
            }
            epoll::add(&self.waiter, session.stream.as_fd(), data(client), epoll::EventFlags::IN).map_err(kernel)?;
            slot.link = Some(Link::new(session, self.shared.protocol, self.shared.names.len()));
            if let Waits::Connection(since) = slot.waits {
                self.record.down_ns += now - since;
                slot.waits = Waits::Time;
                self.resume(client)?;
            }
        }
        Ok(())
    }

    /// Those who are still at it had their time: their connections are cut, and they settle what they have.
    fn give_up(&mut self, now: u64) -> Result<(), DriveError> {
        self.ended = true;
        self.end_ns = self.end_ns.min(now);
        for client in 0..self.slots.len() {
            let slot = &mut self.slots[client];
            slot.link = None;
            slot.interrupted |= matches!(slot.waits, Waits::Answer(..));
            // Each wait is cut short, so that a script that sleeps ends too; one that never ends is left.
            for _ in 0..TURN_TRANSACTIONS {
                if self.slots[client].waits == Waits::Nothing {
                    break;
                }
                self.resume(client)?;
            }
        }
        Ok(())
    }

    /// Counts what was scheduled and nobody was free for.
    fn take_rest(&mut self) {
        if !self.arrivals.is_open() {
            return;
        }
        let now = self.shared.clock.now();
        loop {
            let (scheduled, skip) = match self.arrivals.claim(now) {
                Claim::Begin(at) => (at, Skip::Ended),
                Claim::Skip(at, skip) => (at, skip),
                Claim::None => return,
            };
            let verdict = Verdict::Skipped(skip);
            let rest = Transaction { script: 0, ordinal: 0, scheduled, started: scheduled, tries: 0, verdict };
            self.record.transaction(now, &rest);
        }
    }

    /// Hands in each second that is over.
    fn roll(&mut self, now: u64) {
        while now >= self.second_end_ns {
            let end = self.second_end_ns;
            self.end_stretch(end);
            let next = Box::new(self.record.successor());
            let done = std::mem::replace(&mut self.record, next);
            self.second_end_ns += SECOND_NS;
            let _ = self.report.send(Report::Second(self.index, done));
        }
    }

    fn end_stretch(&mut self, end_ns: u64) {
        self.record.end_ns = end_ns;
        let cpu_ns = thread_cpu_ns();
        self.record.cpu_ns += cpu_ns - self.cpu_ns;
        self.cpu_ns = cpu_ns;
    }
}

/// What a client is told.
enum What {
    Ready,
    Answered,
    Lost,
}

impl What {
    fn outcome(self, link: Option<&mut Link>) -> Outcome<'_> {
        match (self, link) {
            (Self::Ready, _) => Outcome::Ready,
            (Self::Lost, _) | (Self::Answered, None) => Outcome::Lost,
            (Self::Answered, Some(link)) => match link.failure.take() {
                Some(sqlstate) => Outcome::Failed { sqlstate, status: link.status },
                None => Outcome::Succeeded { status: link.status, answer: link.kept() },
            },
        }
    }
}

/// An error that every transaction would meet again ends the run, with what the server said.
fn refuse_fatal(verdict: &Verdict, said: Option<Said>, forgiven: &[SqlState]) -> Result<(), DriveError> {
    match verdict {
        Verdict::Failed(Failure::Sql(state)) if forgiven.contains(state) => Ok(()),
        Verdict::Failed(Failure::Sql(state)) => {
            Err(DriveError::refused(state.as_str(), &said.map(|said| said.message).unwrap_or_default()))
        }
        _ => Ok(()),
    }
}

fn data(client: usize) -> epoll::EventData {
    epoll::EventData::new_u64(client as u64)
}

fn kernel(error: impl Into<io::Error>) -> DriveError {
    let why: io::Error = error.into();
    DriveError::new(format!("the kernel refused to watch a socket: {why}"), "look at the limit of open files")
}
