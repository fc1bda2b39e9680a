//! What listens to the relay: its sessions, and what is said about once a second.

use std::collections::HashMap;
use std::io::Write;
use std::net::SocketAddr;

use pgdyno_clock::SECOND_NS;
use pgdyno_measure::say;
use pgdyno_relay::{Passage, Tap};
use serde_json::json;

use crate::session::Session;
use crate::store::Store;

/// See the module.
pub(crate) struct Recorder<'a, W> {
    pub store: Store,
    sessions: HashMap<u64, Session>,
    begin_ns: u64,
    tell_ns: u64,
    /// Whether it was told that the file takes no more.
    told_full: bool,
    /// It ends then.
    end_ns: Option<u64>,
    out: &'a mut W,
}

impl<'a, W: Write> Recorder<'a, W> {
    pub(crate) fn new(store: Store, now_ns: u64, seconds: Option<f64>, out: &'a mut W) -> Self {
        let end_ns = seconds.map(|seconds| now_ns.saturating_add((seconds * SECOND_NS as f64) as u64));
        let (sessions, tell_ns) = (HashMap::new(), now_ns + SECOND_NS);
        Self { store, sessions, begin_ns: now_ns, tell_ns, told_full: false, end_ns, out }
    }

    /// Ends what is still open.
    pub(crate) fn finish(mut self, now_ns: u64) -> (Store, f64) {
        let end_us = self.store.us_of(now_ns);
        for (_, session) in self.sessions.drain() {
            session.end(end_us, false, &mut self.store);
        }
        (self.store, now_ns.saturating_sub(self.begin_ns) as f64 / SECOND_NS as f64)
    }
}

impl<W: Write> Tap for Recorder<'_, W> {
    fn opened(&mut self, connection: u64, now_ns: u64, from: Option<SocketAddr>) {
        let host = from.map(|from| from.ip().to_canonical().to_string()).unwrap_or_default();
        self.sessions.insert(connection, Session::new(host, self.store.us_of(now_ns)));
    }

    fn client(&mut self, connection: u64, now_ns: u64, bytes: &[u8]) -> Passage {
        let Some(session) = self.sessions.get_mut(&connection) else { return Passage::On };
        session.heard_client(now_ns, bytes, &mut self.store)
    }

    fn server(&mut self, connection: u64, now_ns: u64, bytes: &[u8]) {
        if let Some(session) = self.sessions.get_mut(&connection) {
            session.heard_server(now_ns, bytes, &mut self.store);
        }
    }

    fn closed(&mut self, connection: u64, now_ns: u64) {
        let Some(session) = self.sessions.remove(&connection) else { return };
        self.store.tls_refused += u64::from(session.wanted_tls());
        let end_us = self.store.us_of(now_ns);
        session.end(end_us, true, &mut self.store);
    }

    fn due_ns(&self) -> Option<u64> {
        Some(self.end_ns.map_or(self.tell_ns, |end_ns| end_ns.min(self.tell_ns)))
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
        self.end_ns.is_none_or(|end_ns| now_ns < end_ns)
    }
}
