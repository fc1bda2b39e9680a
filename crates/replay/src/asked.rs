//! Which part of a capture is replayed: sessions of some roles and databases, transactions that began within some time.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pgdyno_capture::{CaptureFile, Contents, SessionFacts};
use pgdyno_connection::Fault;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::lanes::lanes;

/// What is asked of a capture, before there is a server.
#[derive(Deserialize)]
pub struct AskedSpec {
    capture: PathBuf,
    #[serde(flatten)]
    part: PartSpec,
    /// Roles and databases whose sessions are replayed; none is all.
    #[serde(default)]
    places: Option<Vec<(String, String)>>,
}

/// A part of the captured time, in seconds since its first statement.
#[derive(Deserialize, Clone, Copy, Default)]
pub(crate) struct PartSpec {
    #[serde(default)]
    from_s: Option<f64>,
    #[serde(default)]
    until_s: Option<f64>,
}

/// A part of the captured time, in microseconds since 1970: [from, until).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    pub from_us: i64,
    pub until_us: i64,
    /// When the last statement of the part may have arrived.
    pub last_us: i64,
}

impl Part {
    pub(crate) fn of(spec: PartSpec, contents: &Contents) -> Self {
        let (first_us, last_us) = (contents.account.first_us, contents.account.last_us);
        let at = |seconds: f64| first_us.saturating_add((seconds * 1e6) as i64);
        let until_us = spec.until_s.map_or(i64::MAX, at);
        Self { from_us: spec.from_s.map_or(first_us, at), until_us, last_us: last_us.min(until_us) }
    }

    /// Whether a transaction that began then is in it.
    pub(crate) fn has(self, at_us: i64) -> bool {
        self.from_us <= at_us && at_us < self.until_us
    }

    /// Whether a session has statements in it, as far as its begin and end say.
    pub(crate) fn touches(self, session: &SessionFacts) -> bool {
        session.calls > 0 && session.end_us >= self.from_us && session.begin_us < self.until_us
    }

    /// How long production took for it, until the last of these sessions ended.
    pub(crate) fn seconds<'a>(self, sessions: impl Iterator<Item = &'a SessionFacts>) -> f64 {
        let last_us = sessions.map(|session| session.end_us).max().map_or(self.last_us, |end| end.min(self.last_us));
        last_us.saturating_sub(self.from_us).max(0) as f64 / 1e6
    }
}

/// Says what a replay would be: its sessions, places, time. Reads the capture's index alone.
///
/// # Errors
/// A capture that cannot be read.
pub fn plan(spec: &AskedSpec) -> Result<Value, Fault> {
    let file = CaptureFile::open(&spec.capture).map_err(|error| Fault::new(error.message, error.remedy))?;
    let contents = file.contents();
    let part = Part::of(spec.part, &contents);
    let named = |session: &SessionFacts| {
        spec.places.as_ref().is_none_or(|places| {
            places.iter().any(|(user, database)| (user, database) == (&session.user, &session.database))
        })
    };
    let chosen = |session: &SessionFacts| part.touches(session) && named(session);
    let mut places: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for session in contents.sessions.iter().filter(|session| chosen(session)) {
        let calls = places.entry((session.user.as_str(), session.database.as_str())).or_default();
        *calls = calls.saturating_add(session.calls);
    }
    Ok(json!({
        "captured_s": contents.account.last_us.saturating_sub(contents.account.first_us) as f64 / 1e6,
        "begin_unix_us": part.from_us,
        "part_s": part.seconds(contents.sessions.iter().filter(|session| chosen(session))),
        "sessions": contents.sessions.iter().filter(|session| chosen(session)).count(),
        "lanes": lanes(&contents.sessions, chosen).len(),
        "places": places
            .iter()
            .map(|((user, database), calls)| json!({"user": user, "database": database, "calls": calls}))
            .collect::<Vec<_>>(),
        "exposed": file.exposed,
        "recorded_at": contents.account.recorded_at(),
        "reading": contents.account.left_out(contents.sessions.len()),
    }))
}

#[cfg(test)]
mod tests {
    use pgdyno_capture::Account;

    use super::*;

    fn contents() -> Contents {
        let account = Account { first_us: 10_000_000, last_us: 70_000_000, ..Account::default() };
        Contents { account, sessions: Vec::new() }
    }

    #[test]
    fn a_part_counts_from_the_first_statement() {
        let whole = Part::of(PartSpec::default(), &contents());
        assert!(whole.has(10_000_000) && whole.has(70_000_000) && !whole.has(9_999_999));
        assert_eq!(whole.seconds(std::iter::empty()), 60.0);
        let session = SessionFacts { end_us: 40_000_000, ..SessionFacts::default() };
        assert_eq!(whole.seconds(std::iter::once(&session)), 30.0);
        let part = Part::of(PartSpec { from_s: Some(5.0), until_s: Some(20.0) }, &contents());
        assert!(part.has(15_000_000) && part.has(29_999_999) && !part.has(30_000_000) && !part.has(14_999_999));
        assert_eq!(part.seconds(std::iter::empty()), 15.0);
    }

    #[test]
    fn the_time_of_a_capture_that_cannot_be_is_as_long_as_can_be_written() {
        let account = Account { first_us: i64::MIN, last_us: i64::MAX, ..Account::default() };
        let part = Part::of(PartSpec::default(), &Contents { account, sessions: Vec::new() });
        assert_eq!(part.seconds(std::iter::empty()), i64::MAX as f64 / 1e6);
    }

    #[test]
    fn a_session_touches_a_part_that_it_was_open_in() {
        let part = Part::of(PartSpec { from_s: Some(5.0), until_s: Some(20.0) }, &contents());
        let session = |begin_us, end_us| SessionFacts { begin_us, end_us, calls: 1, ..SessionFacts::default() };
        assert!(part.touches(&session(0, 15_000_000)) && part.touches(&session(29_000_000, 90_000_000)));
        assert!(!part.touches(&session(0, 14_000_000)) && !part.touches(&session(30_000_000, 90_000_000)));
        assert!(!part.touches(&SessionFacts { calls: 0, ..session(0, 15_000_000) }));
    }
}
