//! One entry of a server's log, whatever the format it was written in.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::time::Zone;

/// An entry. What a format lacks is none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry<'a> {
    /// Microseconds since 1970 by the log's own clock and zone.
    pub time_us: i64,
    /// What the zone of this time and of the session's beginning says.
    pub zone: Zone,
    /// When it was received, by what is around the log, in UTC.
    pub received_us: Option<i64>,
    /// A line of it could not be used: what is here is its beginning, or has a hole.
    pub cut: bool,
    /// The server process.
    pub pid: Option<u32>,
    /// `%c`: start and process id of the session, in hexadecimal.
    pub session: Option<Cow<'a, str>>,
    /// Number of its first line in its session.
    pub line: Option<u64>,
    /// Further numbered lines that it has.
    pub additions: u64,
    /// When the session began.
    pub session_begin_us: Option<i64>,
    pub user: Option<Cow<'a, str>>,
    pub database: Option<Cow<'a, str>>,
    /// The client's host, without its port.
    pub host: Option<Cow<'a, str>>,
    /// The client's port.
    pub port: Option<u16>,
    pub application: Option<Cow<'a, str>>,
    /// The local number of the transaction in `backend/number`; 0 outside of one.
    pub transaction: Option<u64>,
    /// What the process was doing, as `PARSE`, `BIND`, `INSERT`.
    pub tag: Option<Cow<'a, str>>,
    /// `LOG`, `ERROR`, …
    pub severity: Cow<'a, str>,
    pub sqlstate: Option<Cow<'a, str>>,
    pub message: Cow<'a, str>,
    pub detail: Option<Cow<'a, str>>,
    pub context: Option<Cow<'a, str>>,
    /// The text that an error is about.
    pub statement: Option<Cow<'a, str>>,
}

impl Entry<'_> {
    /// What it takes of memory, its texts and itself.
    pub(crate) fn kept_bytes(&self) -> usize {
        let texts = [&self.detail, &self.context, &self.statement];
        let texts: usize = texts.into_iter().flatten().map(|text| text.len()).sum();
        size_of::<Self>() + self.message.len() + texts
    }

    /// The same, so many microseconds earlier: its zone is that much ahead of UTC.
    pub(crate) fn earlier(self, ahead_us: i64) -> Self {
        Self {
            time_us: self.time_us.saturating_sub(ahead_us),
            session_begin_us: self.session_begin_us.map(|us| us.saturating_sub(ahead_us)),
            ..self
        }
    }

    /// The same with texts of its own.
    pub(crate) fn into_owned(self) -> Entry<'static> {
        let own = |text: Option<Cow<'_, str>>| text.map(|text| Cow::Owned(text.into_owned()));
        Entry {
            time_us: self.time_us,
            zone: self.zone,
            received_us: self.received_us,
            cut: self.cut,
            pid: self.pid,
            session: own(self.session),
            line: self.line,
            additions: self.additions,
            session_begin_us: self.session_begin_us,
            user: own(self.user),
            database: own(self.database),
            host: own(self.host),
            port: self.port,
            application: own(self.application),
            transaction: self.transaction,
            tag: own(self.tag),
            severity: Cow::Owned(self.severity.into_owned()),
            sqlstate: own(self.sqlstate),
            message: Cow::Owned(self.message.into_owned()),
            detail: own(self.detail),
            context: own(self.context),
            statement: own(self.statement),
        }
    }
}

/// At most so many bytes of a text from its beginning, up to the end of a letter.
pub fn beginning(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The client's host and port of `host:port` or `host(port)`.
pub(crate) fn host_and_port(written: &str) -> (&str, Option<u16>) {
    if let Some((host, port)) = written.split_once('(') {
        return (host, port.trim_end_matches(')').parse().ok());
    }
    match written.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => (host, port.parse().ok()),
        _ => (written, None),
    }
}

/// The local number of a transaction in `backend/number`.
pub(crate) fn transaction_of(written: &str) -> Option<u64> {
    written.split_once('/')?.1.parse().ok()
}
