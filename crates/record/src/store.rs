//! Where statements go: the capture, and the account of what is not in it.

use std::io;

use pgdyno_capture::{Account, Call, Ending, SessionFacts, Writer, has_password, values_have_password};
use pgdyno_clock::{monotonic_ns, realtime_ns};

/// See the module.
pub(crate) struct Store {
    writer: Writer,
    pub account: Account,
    /// Microseconds from the monotonic clock to 1970, as they were at the beginning: the calendar may be set meanwhile.
    since_1970_us: i64,
    /// What the file could not take. No statement is kept after it.
    pub failed: Option<io::Error>,
    pub client_bytes: u64,
    /// Sessions of replication, which pass.
    pub replication: u64,
    /// Connections that were to be encrypted.
    pub tls_refused: u64,
}

impl Store {
    pub(crate) fn new(writer: Writer) -> Self {
        let since_1970_us = us(realtime_ns()) - us(monotonic_ns());
        Self {
            writer,
            account: Account { fractions: true, ..Account::default() },
            since_1970_us,
            failed: None,
            client_bytes: 0,
            replication: 0,
            tls_refused: 0,
        }
    }

    /// An instant as captures have it.
    pub(crate) fn us_of(&self, ns: u64) -> i64 {
        self.since_1970_us + us(ns)
    }

    /// Keeps a statement of a session, which gets its number with the first. Whether it was kept.
    pub(crate) fn call(&mut self, number: &mut Option<usize>, facts: &SessionFacts, call: &Call) -> bool {
        if self.failed.is_some() {
            return false;
        }
        if values_have_password(&call.text, call.values.iter().flatten().map(String::as_str)) {
            self.account.passwords += 1;
            return false;
        }
        let number = *number.get_or_insert_with(|| self.writer.begin(facts));
        if let Err(error) = self.writer.call(number, call) {
            self.failed = Some(error);
            return false;
        }
        let account = &mut self.account;
        let first = account.calls == 0;
        account.first_us = if first { call.due_us } else { account.first_us.min(call.due_us) };
        account.last_us = if first { call.due_us } else { account.last_us.max(call.due_us) };
        account.calls += 1;
        account.without_ending += u64::from(call.ending == Ending::Unknown);
        account.without_values += u64::from(call.without_values);
        account.cut += u64::from(call.cut);
        true
    }

    /// Keeps a part of the rows of a COPY; where it is.
    pub(crate) fn rows(&mut self, part: &[u8]) -> Option<u64> {
        if self.failed.is_some() {
            return None;
        }
        let kept = self.writer.rows(part).map_err(|error| self.failed = Some(error)).ok()?;
        self.account.copied_bytes += part.len() as u64;
        Some(kept)
    }

    /// Writes what came, of so many sessions at most. Whether there is more.
    pub(crate) fn flush_some(&mut self, sessions: usize) -> bool {
        self.failed.is_none() && self.writer.flush_some(sessions).unwrap_or_else(|error| self.fails(error))
    }

    /// Writes all that came, so that it can be read however the process ends.
    pub(crate) fn checkpoint(&mut self) {
        let wanted = self.failed.is_none() && self.account.calls > 0;
        if let Some(error) = wanted.then(|| self.writer.checkpoint(&self.account)).and_then(Result::err) {
            self.fails(error);
        }
    }

    fn fails(&mut self, error: io::Error) -> bool {
        self.failed = Some(error);
        false
    }

    /// A session is not followed any further.
    pub(crate) fn lost(&mut self, reason: &str) {
        *self.account.not_followed_sessions.entry(reason.to_owned()).or_default() += 1;
    }

    /// Whether a text must not be kept; then it is counted.
    pub(crate) fn refuses(&mut self, text: &str) -> bool {
        let refused = has_password(text);
        self.account.passwords += u64::from(refused);
        refused
    }

    /// A session has ended.
    pub(crate) fn end(&mut self, number: Option<usize>, mut facts: SessionFacts) {
        if self.failed.is_some() && facts.end_us > self.account.last_us {
            // What it did since then is not here.
            (facts.end_us, facts.ended) = (self.account.last_us.max(facts.begin_us), false);
        }
        self.account.not_ended += u64::from(!facts.ended);
        let Some(number) = number else {
            self.account.idle += 1;
            return;
        };
        // It has room for what is kept already.
        if let Err(error) = self.writer.end(number, facts) {
            self.failed.get_or_insert(error);
        }
    }

    /// What was kept, to be finished.
    pub(crate) fn into_parts(self) -> (Writer, Account) {
        (self.writer, self.account)
    }
}

/// Nanoseconds of a clock in microseconds.
fn us(ns: u64) -> i64 {
    i64::try_from(ns / 1000).unwrap_or(i64::MAX)
}
