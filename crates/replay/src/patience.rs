//! Advisory locks that are not given: who has one here may keep it longer than in production, or until its session ends.

use std::cell::Cell;
use std::time::{Duration, Instant};

use pgdyno_connection::{CancelKey, Server};

use crate::left_out::words;

/// Functions that wait for a lock, but for `_shared` at their ends.
const LOCKS: [&str; 2] = ["PG_ADVISORY_LOCK", "PG_ADVISORY_XACT_LOCK"];

/// How long one statement may wait for such a lock.
pub(crate) struct Patience<'a> {
    text: &'a str,
    key: &'a CancelKey,
    server: &'a Server,
    /// None is no limit.
    limit: Option<Duration>,
    begin: Instant,
    over: Cell<bool>,
}

impl<'a> Patience<'a> {
    pub(crate) fn new(text: &'a str, (key, server): (&'a CancelKey, &'a Server), limit: Option<Duration>) -> Self {
        Self { text, key, server, limit, begin: Instant::now(), over: Cell::new(false) }
    }

    /// To be called while there is no answer: cancels the statement once it has waited for too long, if it is one that asks for a lock.
    pub(crate) fn look(&self) {
        if !self.over.get() && self.limit.is_some_and(|limit| self.begin.elapsed() >= limit) {
            self.over.set(true);
            if asks_for_lock(self.text) {
                // A server that does not take the request answers when it will.
                let _ = self.key.cancel(self.server);
            }
        }
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
