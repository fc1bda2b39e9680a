//! What all lanes share: where statements go, and when.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pgdyno_capture::{Account, CaptureError, SessionFacts};
use pgdyno_clock::monotonic_ns;
use pgdyno_connection::{Fault, Server};
use serde::Deserialize;

use crate::asked::Part;
use crate::keys::{Asked, Exchange, uncertain_us};
use crate::link::{Copied, Types};
use crate::made::Copies;
use crate::seconds::Seconds;

/// From the last log-in to the first statement: every lane and the one who asked hear of it before.
const HEAD_START_NS: u64 = 400_000_000;

/// When a statement is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Pace {
    /// At its time, or when the one before it is answered if that is later.
    Due,
    /// So long after the answer before it as the application waited.
    Gaps,
}

/// Where sessions of a user and a database go.
#[derive(Deserialize)]
pub(crate) struct Endpoint {
    user: String,
    database: String,
    server: Server,
}

/// What all lanes share.
pub(crate) struct Shared {
    pub sessions: Vec<SessionFacts>,
    pub pace: Pace,
    pub endpoints: Vec<Endpoint>,
    pub speed: f64,
    /// When the first statement is due; 0 until that is known.
    begin_ns: AtomicU64,
    /// Sessions that are open from the beginning, and still log in.
    logging_in: AtomicUsize,
    second_ns: u64,
    /// What of the captured time is sent.
    pub part: Part,
    pub stop: AtomicBool,
    /// None where keys are sent as captured.
    pub keys: Option<Exchange>,
    /// Of parameters whose types the server cannot find.
    pub types: Arc<Types>,
    /// Where rows of COPY are read.
    pub copied: Option<Arc<Copied>>,
    /// Rows of COPY that are made.
    pub copies: Copies,
    seconds: Mutex<Seconds>,
}

impl Shared {
    pub(crate) fn new(
        sessions: Vec<SessionFacts>,
        endpoints: Vec<Endpoint>,
        (pace, speed): (Pace, f64),
        second_ns: u64,
        part: Part,
    ) -> Self {
        let seconds = Mutex::new(Seconds::new(0, second_ns));
        Self {
            sessions,
            pace,
            endpoints,
            speed,
            begin_ns: AtomicU64::new(0),
            logging_in: AtomicUsize::new(0),
            second_ns,
            part,
            stop: AtomicBool::new(false),
            keys: None,
            types: Arc::default(),
            copied: None,
            copies: Copies::default(),
            seconds,
        }
    }

    /// The first statement is due after this number of [log-ins](Self::logged_in).
    pub(crate) fn begins_after(&self, log_ins: usize) {
        self.logging_in.store(log_ins, Ordering::Relaxed);
    }

    /// A session that is open from the beginning has logged in, or cannot.
    pub(crate) fn logged_in(&self) {
        if self.logging_in.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.begin(monotonic_ns() + HEAD_START_NS);
        }
    }

    /// Sets when the first statement is due, unless that is known.
    pub(crate) fn begin(&self, at_ns: u64) {
        self.seconds(|seconds| {
            if self.begin_ns() == 0 {
                *seconds = Seconds::new(at_ns, self.second_ns);
                self.begin_ns.store(at_ns, Ordering::Release);
            }
        });
    }

    /// Stops all lanes, also those that wait for the beginning.
    pub(crate) fn halt(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.begin(monotonic_ns());
    }

    /// When the first statement is due; 0 until that is known.
    pub(crate) fn begin_ns(&self) -> u64 {
        self.begin_ns.load(Ordering::Acquire)
    }

    /// What each second came to.
    pub(crate) fn seconds<T>(&self, work: impl FnOnce(&mut Seconds) -> T) -> T {
        work(&mut self.seconds.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether a session is one of those that are replayed.
    pub(crate) fn chosen(&self, facts: &SessionFacts) -> bool {
        self.part.touches(facts) && self.server_of(facts).is_some()
    }

    /// Where a session's statements go; none if they go nowhere.
    pub(crate) fn server_of(&self, facts: &SessionFacts) -> Option<&Server> {
        self.place_of(facts).map(|place| self.server_at(place))
    }

    /// The number of its endpoint; none if its statements go nowhere.
    pub(crate) fn place_of(&self, facts: &SessionFacts) -> Option<usize> {
        self.endpoints.iter().position(|one| one.user == facts.user && one.database == facts.database)
    }

    /// The server of an endpoint, with its role and database.
    pub(crate) fn server_at(&self, place: usize) -> &Server {
        &self.endpoints[place].server
    }

    /// What keys are learned from: the `chosen` sessions of a capture with so many calls.
    pub(crate) fn asked<'a>(&self, chosen: &'a [usize], account: &Account) -> Asked<'a> {
        let name = |facts| self.server_of(facts).map(|server| server.database().to_owned()).unwrap_or_default();
        Asked {
            chosen,
            databases: self.sessions.iter().map(name).collect(),
            calls: account.calls,
            from_us: self.part.from_us,
            uncertain_us: uncertain_us(account),
        }
    }

    /// When what was captured at this time is due.
    pub(crate) fn due_ns(&self, at_us: i64) -> u64 {
        self.begin_ns().saturating_add(self.scaled_ns(at_us.saturating_sub(self.part.from_us).max(0)))
    }

    /// Whether a session was open before the part that is sent.
    pub(crate) fn opens_before(&self, facts: &SessionFacts) -> bool {
        facts.begin_us <= self.part.from_us
    }

    /// Captured microseconds as they are driven.
    pub(crate) fn scaled_ns(&self, us: i64) -> u64 {
        (us as f64 * 1000.0 / self.speed) as u64
    }

    pub(crate) fn stops(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// A capture that cannot be read, as an error for the user.
pub(crate) fn fault(error: CaptureError) -> Fault {
    Fault { code: error.code, data: error.data, ..Fault::new(error.message, error.remedy) }
}
