//! What listens to the relay: its sessions, and what is said about once a second.

use std::collections::HashMap;
use std::io::Write;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pgdyno_clock::SECOND_NS;
use pgdyno_measure::say;
use pgdyno_relay::{Passage, Tap};
use serde_json::json;

use crate::ledger::Total;
use crate::place_of_panic::place_of_panic;
use crate::session::Session;
use crate::store::Store;

/// How often all that came is written, so that a recorder that is killed loses no more than what came in twice this time.
const CHECKPOINT_NS: u64 = 2 * SECOND_NS;
/// Sessions whose statements are written at once, and how long clients then have their turn.
const FLUSHED_AT_ONCE: usize = 32;
const TURN_NS: u64 = 2_000_000;
/// After so many turns the rest is written at once.
const TURNS_MAX: u32 = 500;

/// See the module.
pub(crate) struct Recorder<'a, W> {
    pub store: Store,
    sessions: HashMap<u64, Session>,
    total: Total,
    /// When something is written next, and in how many turns since the last checkpoint.
    write_ns: u64,
    turns: u32,
    begin_ns: u64,
    tell_ns: u64,
    /// From when on it may be told again that clients wait.
    short_ns: u64,
    /// Whether it was told that the file takes no more.
    told_full: bool,
    /// It ends then.
    end_ns: Option<u64>,
    out: &'a mut W,
}

impl<'a, W: Write> Recorder<'a, W> {
    pub(crate) fn new(store: Store, now_ns: u64, seconds: Option<f64>, out: &'a mut W) -> Self {
        let end_ns = seconds.map(|seconds| now_ns.saturating_add((seconds * SECOND_NS as f64) as u64));
        Self {
            store,
            sessions: HashMap::new(),
            total: Total::default(),
            write_ns: now_ns + CHECKPOINT_NS,
            turns: 0,
            begin_ns: now_ns,
            tell_ns: now_ns + SECOND_NS,
            short_ns: 0,
            told_full: false,
            end_ns,
            out,
        }
    }

    /// Lets a session hear something. A bug in what reads its messages ends its recording, and nothing else.
    fn guarded<R>(
        &mut self,
        connection: u64,
        now_ns: u64,
        hear: impl FnOnce(&mut Session, &mut Store) -> R,
    ) -> Option<R> {
        let session = self.sessions.get_mut(&connection)?;
        let store = &mut self.store;
        if let Ok(heard) = catch_unwind(AssertUnwindSafe(|| hear(session, store))) {
            return Some(heard);
        }
        session.leave_off(&place_of_panic(), store.us_of(now_ns), store);
        None
    }

    /// Ends what is still open.
    pub(crate) fn finish(mut self, now_ns: u64) -> (Store, f64) {
        let end_us = self.store.us_of(now_ns);
        for (_, session) in self.sessions.drain() {
            let store = &mut self.store;
            if catch_unwind(AssertUnwindSafe(|| session.end(end_us, false, store))).is_err() {
                store.lost(&place_of_panic());
            }
        }
        (self.store, now_ns.saturating_sub(self.begin_ns) as f64 / SECOND_NS as f64)
    }
}

impl<W: Write> Tap for Recorder<'_, W> {
    fn opened(&mut self, connection: u64, now_ns: u64, from: Option<SocketAddr>) {
        let host = from.map(|from| from.ip().to_canonical().to_string()).unwrap_or_default();
        self.sessions.insert(connection, Session::new(host, self.store.us_of(now_ns), &self.total));
    }

    fn client(&mut self, connection: u64, now_ns: u64, bytes: &[u8]) -> Passage {
        let heard = self.guarded(connection, now_ns, |session, store| session.heard_client(now_ns, bytes, store));
        heard.unwrap_or(Passage::On)
    }

    fn server(&mut self, connection: u64, now_ns: u64, bytes: &[u8]) {
        self.guarded(connection, now_ns, |session, store| session.heard_server(now_ns, bytes, store));
    }

    fn short(&mut self, now_ns: u64, why: &std::io::Error) {
        // Once a second is enough.
        if now_ns >= self.short_ns {
            self.short_ns = now_ns + SECOND_NS;
            say(self.out, &json!({"short": why.to_string()}));
        }
    }

    fn closed(&mut self, connection: u64, now_ns: u64) {
        let Some(session) = self.sessions.remove(&connection) else { return };
        self.store.tls_refused += u64::from(session.wanted_tls());
        let end_us = self.store.us_of(now_ns);
        let store = &mut self.store;
        if catch_unwind(AssertUnwindSafe(|| session.end(end_us, true, store))).is_err() {
            store.lost(&place_of_panic());
        }
    }

    fn due_ns(&self) -> Option<u64> {
        Some(self.end_ns.unwrap_or(u64::MAX).min(self.tell_ns).min(self.write_ns))
    }

    fn wake(&mut self, now_ns: u64) -> bool {
        if now_ns >= self.tell_ns {
            self.tell_ns = now_ns + SECOND_NS;
            let store = &self.store;
            let progress = json!({
                "sessions": self.sessions.len(),
                "calls": store.account.calls,
                "client_bytes": store.client_bytes,
                "tls_refused": store.tls_refused,
            });
            say(self.out, &json!({"progress": progress}));
            if let Some(error) = self.store.failed.as_ref().filter(|_| !self.told_full) {
                say(self.out, &json!({"full": error.to_string()}));
                self.told_full = true;
            }
        }
        if now_ns >= self.write_ns {
            self.turns += 1;
            if self.turns < TURNS_MAX && self.store.flush_some(FLUSHED_AT_ONCE) {
                self.write_ns = now_ns + TURN_NS;
            } else {
                self.store.checkpoint();
                (self.write_ns, self.turns) = (now_ns + CHECKPOINT_NS, 0);
            }
        }
        self.end_ns.is_none_or(|end_ns| now_ns < end_ns)
    }
}

#[cfg(test)]
#[path = "recorder_tests.rs"]
mod tests;
