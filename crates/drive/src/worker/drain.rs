//! The end: nothing begins any more, what has begun is settled, and what is left of a schedule is counted.

use pgdyno_connection::Fault;

use super::slot::Waits;
use super::turn::TURN_TRANSACTIONS;
use super::{Report, Worker};
use crate::ending::Ending;

impl Worker<'_> {
    /// Nothing is begun from here on; what is scheduled later does not happen.
    pub(super) fn stop_now(&mut self) {
        let now = self.shared.clock.now();
        self.drain_ns = self.drain_ns.min(now + (self.shared.drain_ns - self.shared.end_ns));
        self.end_ns = self.end_ns.min(now);
        self.arrivals = self.arrivals.clone().until(self.end_ns);
    }

    /// Ends the run before its time, with figures until now.
    pub(super) fn end_run(&mut self, ending: Ending) {
        let _ = self.report.send(Report::Ending(ending));
        self.stop_now();
    }

    /// Nothing begins any more: who waits for a connection need not. Who waits for a time looks again: it may be
    /// that of a transaction that never comes, or that is due after an end that came early.
    pub(super) fn settle(&mut self, now: u64) -> Result<(), Fault> {
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

    /// Those who are still at it had their time: their connections are cut, and they settle what they have.
    pub(super) fn give_up(&mut self, now: u64) -> Result<(), Fault> {
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

    /// Counts what was scheduled and no client was free for.
    pub(super) fn take_rest(&mut self) {
        self.record.never_begun(self.arrivals.rest());
    }
}
