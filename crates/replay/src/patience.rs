//! Advisory locks that are not given: who has one here may keep it longer than in production, or until its session ends.

use std::cell::Cell;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;

use pgdyno_clock::monotonic_ns;
use pgdyno_connection::{CancelKey, Server};

use crate::left_out::words;
use crate::turns::{Turns, pause};

/// Functions that wait for a lock, but for `_shared` at their ends.
const LOCKS: [&str; 2] = ["PG_ADVISORY_LOCK", "PG_ADVISORY_XACT_LOCK"];
/// How often it is asked whether a request to cancel has reached the server.
const CANCELLING_NS: u64 = 1_000_000;

/// How long one statement may wait for such a lock.
pub(crate) struct Patience<'a> {
    text: &'a str,
    key: &'a CancelKey,
    server: &'a Server,
    turns: &'a Turns,
    /// None is no limit.
    limit: Option<Duration>,
    begin_ns: u64,
    over: Cell<bool>,
    /// Tells when a request to cancel has been made.
    cancelled: Cell<Option<Receiver<()>>>,
}

impl<'a> Patience<'a> {
    /// For a statement that was sent at an instant of CLOCK_MONOTONIC.
    pub(crate) fn new(
        text: &'a str,
        (key, server): (&'a CancelKey, &'a Server),
        turns: &'a Turns,
        (begin_ns, limit): (u64, Option<Duration>),
    ) -> Self {
        let (over, cancelled) = (Cell::new(false), Cell::new(None));
        Self { text, key, server, turns, limit, begin_ns, over, cancelled }
    }

    /// To be called while there is no answer: cancels the statement once it has waited for too long, if it is one that asks for a lock.
    pub(crate) fn look(&self) {
        if !self.over.get() && self.limit.is_some_and(|limit| self.waited() >= limit) {
            self.over.set(true);
            if asks_for_lock(self.text) {
                let (key, server) = (self.key.clone(), self.server.clone());
                let (tell, told) = channel();
                self.turns.errands.send(move || {
                    // A server that does not take the request answers when it will.
                    let _ = key.cancel(&server);
                    let _ = tell.send(());
                });
                self.cancelled.set(Some(told));
            }
        }
    }

    fn waited(&self) -> Duration {
        Duration::from_nanos(monotonic_ns().saturating_sub(self.begin_ns))
    }

    /// To be called behind the answer: waits for a request to cancel that is under way, which would meet the next statement.
    pub(crate) async fn settle(&self, stops: impl Fn() -> bool) {
        let Some(told) = self.cancelled.take() else { return };
        while told.try_recv() == Err(TryRecvError::Empty) && !stops() {
            self.turns.alarm(monotonic_ns() + CANCELLING_NS);
            pause().await;
        }
        self.turns.no_alarm();
    }
}

fn asks_for_lock(text: &str) -> bool {
    words(text).any(|word| {
        LOCKS.iter().any(|lock| {
            word.get(..lock.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(lock))
                && ["", "_SHARED"].iter().any(|end| word[lock.len()..].eq_ignore_ascii_case(end))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_wait_for_an_advisory_lock_are_known() {
        for text in ["SELECT pg_advisory_lock($1)", "select pg_catalog.PG_ADVISORY_XACT_LOCK_SHARED(1, 2), now()"] {
            assert!(asks_for_lock(text), "{text}");
        }
        for text in ["SELECT pg_advisory_unlock(1)", "SELECT pg_try_advisory_lock(1)", "SELECT pg_sleep(9)", ""] {
            assert!(!asks_for_lock(text), "{text}");
        }
    }
}
