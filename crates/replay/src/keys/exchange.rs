//! Keys while statements are sent.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};
use std::task::Waker;
use std::time::Duration;

use pgdyno_capture::{Call, CaptureError, CaptureFile};
use pgdyno_clock::monotonic_ns;
use pgdyno_connection::Fault;
use serde::Deserialize;
use serde_json::{Value, json};

use super::catalogue::{Catalogue, Kind};
use super::key::{Key, Place, Value as KeyValue};
use super::learn::{Asked, learn};
use super::links::{Doubt, Links, Occurrence, Statement};
use super::makers::Wanted;
use crate::turns::{Turns, is_due, pause, ring};

/// Types of columns, by their numbers in `pg_type`: int8, int2, int4; uuid.
const NUMBERS: [u32; 3] = [20, 21, 23];
const UUID: u32 = 2950;
/// Places that are told apart: an application has some hundred.
const DOUBTS_MAX: usize = 10_000;
/// Those that are written, the most frequent of them.
const DOUBTS_SHOWN: usize = 200;

/// How keys are treated.
#[derive(Deserialize)]
pub(crate) struct KeysSpec {
    catalogue: Catalogue,
    /// How long a statement waits for the transaction of another session that makes its key; 0 is not at all.
    wait_max_ms: u64,
}

impl KeysSpec {
    /// Learns the keys of a capture.
    pub(crate) fn links(self, file: &mut CaptureFile, asked: &Asked) -> Result<Links, Fault> {
        learn(|session, each| file.calls(session, |call| each(call)).map_err(Unlearned::Unread), asked, self.catalogue)
            .map_err(|error| match error {
                Unlearned::Unread(error) => {
                    Fault { code: error.code, data: error.data, ..Fault::new(error.message, error.remedy) }
                }
                Unlearned::NoThread(error) => {
                    pgdyno_host::Fault::of_kernel("a thread cannot be started", &error).into()
                }
            })
    }
}

/// Why nothing was learned.
enum Unlearned {
    Unread(CaptureError),
    NoThread(std::io::Error),
}

impl From<std::io::Error> for Unlearned {
    fn from(error: std::io::Error) -> Self {
        Self::NoThread(error)
    }
}

/// An answer whose values are wanted.
#[derive(Default)]
pub(crate) struct Rows {
    columns: Vec<(String, u32)>,
    first: Vec<Option<String>>,
    count: u64,
}

impl Rows {
    /// A RowDescription.
    pub(crate) fn describe(&mut self, body: &[u8]) {
        self.columns.clear();
        let mut rest = body.get(2..).unwrap_or_default();
        while let Some(end) = rest.iter().position(|byte| *byte == 0) {
            let name = String::from_utf8_lossy(&rest[..end]).into_owned();
            let Some(oid) = rest.get(end + 7..end + 11) else { return };
            self.columns.push((name, u32::from_be_bytes(oid.try_into().expect("four bytes"))));
            rest = rest.get(end + 19..).unwrap_or_default();
        }
    }

    /// A DataRow.
    pub(crate) fn row(&mut self, body: &[u8]) {
        self.count += 1;
        if self.count > 1 {
            return;
        }
        let mut rest = body.get(2..).unwrap_or_default();
        while let Some((length, after)) = rest.split_first_chunk::<4>() {
            let length = usize::try_from(i32::from_be_bytes(*length)).ok();
            let bytes = length.and_then(|length| after.get(..length));
            self.first.push(bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned()));
            rest = after.get(length.unwrap_or(0)..).unwrap_or_default();
        }
    }

    /// The value that was learned to be a key; none of several rows, of which nothing says which it is, and none that is not written as a key is.
    /// It is sent within texts of statements: a server must not write these.
    pub(crate) fn value(&self, wanted: &Wanted) -> Option<&String> {
        if self.count != 1 {
            return None;
        }
        let is_one = |(name, oid): &(String, u32)| match &wanted.column {
            Some(column) => name == column,
            None if wanted.kind == Kind::Number => NUMBERS.contains(oid),
            None => *oid == UUID,
        };
        let value = self.first.get(self.columns.iter().position(is_one)?)?.as_ref();
        value.filter(|value| KeyValue::of(value).is_some_and(|value| wanted.kind.is_of(value)))
    }
}

/// A key that a statement needs.
struct Need {
    place: Place,
    key: Key,
    /// The statement that must be over before, of the session that makes the key.
    awaited: Statement,
}

/// What is in a statement.
#[derive(Default)]
pub(crate) struct Needed {
    keys: Vec<Need>,
    /// Values that may be keys, and are sent as captured.
    doubts: Vec<Doubt>,
}

/// See the module.
pub(crate) struct Exchange {
    links: Links,
    here: RwLock<HashMap<Key, String>>,
    /// Of each session, how many statements are over.
    over: Vec<AtomicU32>,
    /// Session -> who waits until so many of its statements are over.
    waiting: Mutex<HashMap<usize, Vec<(u32, Waker)>>>,
    wait_max: Duration,
    waited: AtomicU64,
    waited_us: AtomicU64,
    given_up: AtomicU64,
    exchanged: AtomicU64,
    not_known: AtomicU64,
    /// How often what may be a key was sent as captured.
    doubts: Mutex<HashMap<Doubt, u64>>,
    several_rows: AtomicU64,
}

impl Exchange {
    /// Learns the keys of a capture with so many sessions.
    pub(crate) fn new(spec: KeysSpec, file: &mut CaptureFile, asked: &Asked, sessions: usize) -> Result<Self, Fault> {
        let wait_max = Duration::from_millis(spec.wait_max_ms);
        Ok(Self::of(spec.links(file, asked)?, sessions, wait_max))
    }

    fn of(links: Links, sessions: usize, wait_max: Duration) -> Self {
        Self {
            links,
            here: RwLock::default(),
            over: (0..sessions).map(|_| AtomicU32::new(0)).collect(),
            waiting: Mutex::default(),
            wait_max,
            waited: AtomicU64::new(0),
            waited_us: AtomicU64::new(0),
            given_up: AtomicU64::new(0),
            exchanged: AtomicU64::new(0),
            not_known: AtomicU64::new(0),
            doubts: Mutex::default(),
            several_rows: AtomicU64::new(0),
        }
    }

    /// How long a statement may wait for what another session has; none is not limited.
    pub(crate) fn wait_max(&self) -> Option<Duration> {
        Some(self.wait_max).filter(|most| !most.is_zero())
    }

    /// What a session's call needs that was made during the capture.
    pub(crate) fn needed(&self, call: &Call, session: usize) -> Needed {
        let mut found = Needed::default();
        self.links.needed(call, session, |occurrence| match occurrence {
            Occurrence::Key(place, key, made) => {
                found.keys.push(Need { place, key, awaited: (made.session, made.awaited(call.due_us)) });
            }
            Occurrence::Doubtful(doubt) => found.doubts.push(doubt),
        });
        found
    }

    /// Waits until the transactions of other sessions that make what is needed have ended here. Whether it waited.
    pub(crate) async fn wait(&self, needed: &Needed, session: usize, turns: &Turns, stops: impl Fn() -> bool) -> bool {
        let is_there = |(maker, call): Statement| self.over[maker].load(Ordering::Acquire) > call;
        let missing =
            || needed.keys.iter().map(|need| need.awaited).find(|awaited| awaited.0 != session && !is_there(*awaited));
        if self.wait_max.is_zero() || missing().is_none() {
            return false;
        }
        let begin_ns = monotonic_ns();
        let end_ns = begin_ns.saturating_add(u64::try_from(self.wait_max.as_nanos()).unwrap_or(u64::MAX));
        turns.alarm(end_ns);
        let (ring, mut waits_for) = (ring().await, None);
        while let Some(awaited) = missing().filter(|_| !stops()) {
            if is_due(end_ns) {
                self.given_up.fetch_add(1, Ordering::Relaxed);
                break;
            }
            if waits_for == Some(awaited) {
                pause().await;
            } else {
                // It may be over since it was looked at: then nobody rings.
                waits_for = Some(awaited);
                let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
                waiting.entry(awaited.0).or_default().push((awaited.1, ring.clone()));
            }
        }
        turns.no_alarm();
        self.waited.fetch_add(1, Ordering::Relaxed);
        self.waited_us.fetch_add((monotonic_ns() - begin_ns) / 1000, Ordering::Relaxed);
        true
    }

    /// The call with this run's keys, as it is sent.
    pub(crate) fn exchanged<'a>(&self, call: &'a Call, needed: &Needed) -> Cow<'a, Call> {
        if !needed.doubts.is_empty() {
            let mut doubts = self.doubts.lock().unwrap_or_else(PoisonError::into_inner);
            for doubt in &needed.doubts {
                if doubts.len() < DOUBTS_MAX || doubts.contains_key(doubt) {
                    *doubts.entry(doubt.clone()).or_default() += 1;
                } else {
                    *doubts.entry(Doubt::of_others()).or_default() += 1;
                }
            }
        }
        if needed.keys.is_empty() {
            return Cow::Borrowed(call);
        }
        let here = self.here.read().unwrap_or_else(PoisonError::into_inner);
        let mut made = call.clone();
        // From behind, so that places of a text stay where they are.
        for need in needed.keys.iter().rev() {
            match here.get(&need.key) {
                None => self.not_known.fetch_add(1, Ordering::Relaxed),
                Some(value) => {
                    need.place.fill(&mut made, value);
                    self.exchanged.fetch_add(1, Ordering::Relaxed)
                }
            };
        }
        Cow::Owned(made)
    }

    /// Whether the answer to a statement has keys that were learned.
    pub(crate) fn is_maker(&self, statement: Statement) -> bool {
        !self.links.learned(statement).is_empty()
    }

    /// A statement was done, with this answer.
    pub(crate) fn answered(&self, statement: Statement, rows: &Rows) {
        if rows.count > 1 {
            self.several_rows.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let found = self.links.learned(statement).iter();
        let found = found.filter_map(|one| rows.value(&one.wanted).map(|value| (one.key, value.clone())));
        self.here.write().unwrap_or_else(PoisonError::into_inner).extend(found);
    }

    /// So many statements of a session are over; all when it has ended.
    pub(crate) fn over(&self, session: usize, count: Option<u32>) {
        let over = count.unwrap_or(u32::MAX);
        self.over[session].store(over, Ordering::Release);
        if count.is_none_or(|count| self.links.ends((session, count - 1))) {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(those) = waiting.get_mut(&session) else { return };
            those.retain(|(last, ring)| {
                let still = over <= *last;
                if !still {
                    ring.wake_by_ref();
                }
                still
            });
            if those.is_empty() {
                waiting.remove(&session);
            }
        }
    }

    /// As it is written.
    pub(crate) fn document(&self) -> Value {
        let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
        let doubts = self.doubts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut most: Vec<(&Doubt, &u64)> = doubts.iter().collect();
        most.sort_unstable_by_key(|(doubt, count)| (Reverse(**count), &doubt.statement, &doubt.place));
        let place = |(doubt, count): &(&Doubt, &u64)| {
            let Doubt { statement, place, why } = doubt;
            json!({"statement": statement, "place": place, "why": why, "count": count})
        };
        let places: Vec<Value> = most.iter().take(DOUBTS_SHOWN).map(place).collect();
        json!({
            "learned": self.links.len(),
            "ties": self.links.ties,
            "fits": self.links.fits,
            "answered": self.here.read().unwrap_or_else(PoisonError::into_inner).len(),
            "exchanged": count(&self.exchanged),
            "not_known": count(&self.not_known),
            "doubtful": doubts.values().sum::<u64>(),
            "doubtful_places": places,
            "several_rows": count(&self.several_rows),
            "waited": count(&self.waited),
            "waited_us": count(&self.waited_us),
            "given_up": count(&self.given_up),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::errands::Errands;

    fn wanted(column: Option<&str>, kind: Kind) -> Wanted {
        Wanted { column: column.map(str::to_owned), kind, family: None, source: String::new() }
    }

    #[test]
    fn who_needs_a_key_waits_for_the_transaction_that_makes_it_on_another_thread() {
        let key = Key::Uuid(7);
        let mut links = Links::default();
        links.link((0, 3), (1, 0), wanted(None, Kind::Uuid), key);
        links.settle(0, &HashMap::new(), 0);
        let needed =
            Needed { keys: vec![Need { place: Place::Parameter(0), key, awaited: (0, 3) }], doubts: Vec::new() };
        let (exchange, errands) = (Exchange::of(links, 2, Duration::from_secs(60)), Errands::start(1).unwrap());
        let wait = || {
            let turns = Turns::new(&errands).unwrap();
            let waits = async { assert!(exchange.wait(&needed, 1, &turns, || false).await) };
            turns.run([waits]).unwrap();
        };
        std::thread::scope(|scope| {
            scope.spawn(wait);
            while exchange.waiting.lock().unwrap().is_empty() {
                std::thread::yield_now();
            }
            exchange.over(0, Some(3));
            assert!(!exchange.waiting.lock().unwrap().is_empty());
            exchange.over(0, Some(4));
            assert!(exchange.waiting.lock().unwrap().is_empty());
        });
        let found = exchange.document();
        assert_eq!((&found["waited"], &found["given_up"]), (&json!(1), &json!(0)));
        assert!(found["waited_us"].as_u64() < Some(30_000_000));
    }

    #[test]
    fn values_of_an_answer_are_found_by_name_or_type() {
        let mut rows = Rows::default();
        let mut described = vec![0, 2];
        for (name, oid) in [("ref", UUID), ("id", 20)] {
            described.extend_from_slice(name.as_bytes());
            described.extend_from_slice(&[0, 0, 0, 0, 9, 0, 1]);
            described.extend_from_slice(&oid.to_be_bytes());
            described.extend_from_slice(&[0, 8, 255, 255, 255, 255, 0, 0]);
        }
        rows.describe(&described);
        rows.row(&[0, 2, 255, 255, 255, 255, 0, 0, 0, 2, b'4', b'2']);
        assert_eq!(rows.value(&wanted(Some("id"), Kind::Number)).map(String::as_str), Some("42"));
        assert_eq!(rows.value(&wanted(None, Kind::Number)).map(String::as_str), Some("42"));
        assert_eq!(rows.value(&wanted(None, Kind::Uuid)), None);
        assert_eq!(rows.value(&wanted(Some("other"), Kind::Number)), None);
    }

    #[test]
    fn a_value_that_is_no_key_gets_into_no_text() {
        let uuid = "0af7651c-1234-4321-8b6d-a1b2c3d4e5f6";
        let hostile: [&[u8]; 9] = [
            b"1'; drop table x; --",
            b"1; drop table x",
            b"\\'; drop table x; --",
            b"42\0; drop table x",
            b"\xff\xfe",
            b"",
            b"-1",
            b"1e9",
            uuid.as_bytes(),
        ];
        for value in hostile {
            let mut rows = Rows::default();
            rows.describe(&[&[0, 1][..], b"id\0", &[0, 0, 0, 0, 9, 0], &[1, 0, 0, 0, 20], &[0; 8]].concat());
            rows.row(&[&[0, 1][..], &u32::try_from(value.len()).unwrap().to_be_bytes(), value].concat());
            assert_eq!(rows.value(&wanted(Some("id"), Kind::Number)), None, "{}", String::from_utf8_lossy(value));
            let is_uuid = value == uuid.as_bytes();
            assert_eq!(rows.value(&wanted(Some("id"), Kind::Uuid)).is_some(), is_uuid);
        }
    }
}
