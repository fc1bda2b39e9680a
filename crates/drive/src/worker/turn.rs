//! A client's turn: it is told what became of its last wish, and says the next.

use std::cmp::Reverse;
use std::io;

use pgdyno_connection::Fault;
use pgdyno_workload::{Failure, Next, Transaction, Verdict};
use rustix::event::epoll;
use rustix::fd::AsFd;

use super::slot::{Slot, Waits, What};
use super::{Worker, data, kernel};
use crate::ending::Ending;
use crate::link::Link;

/// Transactions without a wait after which the others have their turn.
pub(super) const TURN_TRANSACTIONS: u32 = 64;

impl Worker<'_> {
    /// A client whose time has come: goes on, unless its session went away meanwhile and may come back.
    pub(super) fn resume(&mut self, client: usize) -> Result<(), Fault> {
        let now = self.shared.clock.now();
        let slot = &mut self.slots[client];
        if self.shared.connects && slot.link.is_none() && now < self.end_ns {
            slot.waits = Waits::Connection(now);
            return Ok(());
        }
        let interrupted = std::mem::take(&mut slot.interrupted);
        self.go_on(client, if interrupted { What::Lost } else { What::Ready })
    }

    pub(super) fn socket(&mut self, client: usize, flags: epoll::EventFlags) -> Result<(), Fault> {
        let slot = &mut self.slots[client];
        let Some(link) = &mut slot.link else { return Ok(()) };
        if flags.contains(epoll::EventFlags::OUT) {
            return self.flush(client);
        }
        let received = link.receive();
        if !link.answered.is_empty() {
            self.count_pipelined(client);
        }
        match received {
            Ok(false) => Ok(()),
            Ok(true) => {
                let Waits::Answer(statement, since) = self.slots[client].waits else { return Ok(()) };
                let now = self.shared.clock.now();
                self.roll(now);
                if let Some(statement) = statement {
                    self.record.statement(self.shared.groups[statement.0 as usize], now - since);
                }
                self.slots[client].waits = Waits::Time;
                self.go_on(client, What::Answered)
            }
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                self.end_run(Ending::Script(Fault::new(
                    format!("the script cannot be driven: {error}"),
                    "let it INSERT, or COPY from a file of the server",
                )));
                self.lose(client)
            }
            Err(_) => self.lose(client),
        }
    }

    /// Counts the statements of a pipeline that were answered. Their time is from when the pipeline was sent.
    pub(super) fn count_pipelined(&mut self, client: usize) {
        let now = self.shared.clock.now();
        self.roll(now);
        let Slot { link: Some(link), waits: Waits::Answer(_, since), .. } = &mut self.slots[client] else { return };
        for statement in link.answered.drain(..) {
            self.record.statement(self.shared.groups[statement.0 as usize], now - *since);
        }
    }

    /// Asks the client what to do, and does it, until it waits for something.
    pub(super) fn go_on(&mut self, client: usize, what: What) -> Result<(), Fault> {
        let mut what = what;
        let mut finished = 0;
        let mut now = self.shared.clock.now();
        loop {
            let Slot { program, link, waits, .. } = &mut self.slots[client];
            let next = program.next(now, what.outcome(link.as_mut()), &mut self.arrivals);
            what = What::Ready;
            match (next, link) {
                (Next::Send(statement), Some(link)) => {
                    if let Err(error) = link.put(&statement, &self.shared.names) {
                        self.end_script(client, error.to_string());
                        return Ok(());
                    }
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
                    let ending = link.as_mut().and_then(|link| refused(&done, link));
                    if let Some(ending) = ending.filter(|ending| self.shared.ends_with(ending)) {
                        self.end_run(ending);
                    }
                    finished += 1;
                    if finished == TURN_TRANSACTIONS {
                        self.timers.push(Reverse((now, client)));
                        self.slots[client].waits = Waits::Time;
                        return Ok(());
                    }
                    now = self.shared.clock.now();
                }
                (Next::Aborted(error), _) => {
                    let why = error.to_string();
                    self.end_script(client, why);
                    return Ok(());
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

    /// A script that cannot go on ends the run.
    fn end_script(&mut self, client: usize, why: String) {
        let slot = &mut self.slots[client];
        // Closed as it is: the server rolls back what is open.
        slot.link.take();
        slot.waits = Waits::Nothing;
        self.busy -= 1;
        self.end_run(Ending::Script(Fault::new(why, "correct the script")));
    }

    /// Sends what is to be sent, and watches the socket if the kernel does not take it all.
    pub(super) fn flush(&mut self, client: usize) -> Result<(), Fault> {
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
}

/// What the server refused of a transaction that failed, taken from its session.
fn refused(done: &Transaction, link: &mut Link) -> Option<Ending> {
    let (error, statement) = (link.refusal.take(), link.refused.take());
    match done.verdict {
        Verdict::Failed(Failure::Sql(sqlstate)) => {
            Some(Ending::Refused { script: done.script, statement, sqlstate, error })
        }
        _ => None,
    }
}
