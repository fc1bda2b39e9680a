//! One session: what was asked and waits for its answer. `asked` reads the client, `answered` the server.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use pgdyno_capture::{Call, Ending, Protocol, SessionFacts};
use pgdyno_relay::Passage;

use crate::answer::{Answer, Column};
use crate::ledger::{Held, Ledger, Total};
use crate::messages::Messages;
use crate::opening::{self, Beginning};
use crate::rows::Rows;
use crate::store::Store;

/// How far a connection is.
enum Phase {
    /// Nothing but questions about encryption has come.
    Opening,
    /// What has come of the startup message.
    Startup(Vec<u8>),
    /// The server has not let it in: nothing of the client is kept, and what is no password is no statement.
    LoggingIn,
    /// Messages are read.
    Open,
    /// It was recorded up to this instant, and is not followed any further.
    Lost(i64),
    /// It is not recorded: a request to cancel, replication, another protocol.
    Passed,
}

/// Why a session is not followed any further, as accounts have it.
pub(crate) const MEMORY: &str = "memory";
const EARLY: &str = "statements before the log-in";
const FOREIGN: &str = "another protocol";

/// A text that is prepared.
pub(crate) struct Statement {
    pub name: String,
    /// None if it is not UTF-8.
    pub text: Option<String>,
    /// The text is not whole.
    pub cut: bool,
    /// Types of its parameters as far as they are known; 0 is one that the server chooses.
    pub types: RefCell<Vec<u32>>,
    /// Whether its answer may have keys, and in which columns.
    pub makes: bool,
    pub columns: RefCell<Vec<Column>>,
    pub held: RefCell<Held>,
}

/// Values of an execution.
#[derive(Default)]
pub(crate) struct Values {
    pub values: Vec<Option<String>>,
    /// One is in a form that is not known here, so that there are none.
    pub unknown: bool,
    /// They are not whole, so that there are none.
    pub cut: bool,
}

/// A statement with its values.
pub(crate) struct Portal {
    /// None if the server does not know it either.
    pub statement: Option<Rc<Statement>>,
    /// Until its execution is over.
    pub values: RefCell<Option<Values>>,
    /// Whether it was to be executed: what follows asks for its later rows.
    pub asked: Cell<bool>,
    /// How many times the client had asked the server to answer all.
    pub asked_before: u64,
    /// Forms of the answer's columns.
    pub formats: Vec<i16>,
    /// Of its name, its values and itself.
    pub _held: Held,
}

/// What the server has to answer, in order.
pub(crate) enum Awaited {
    /// With what had its name before.
    Parse(Rc<Statement>, Option<Rc<Statement>>),
    Bind(Rc<Portal>),
    Describe(Option<Rc<Statement>>),
    Execute {
        portal: Option<Rc<Portal>>,
        begun_ns: u64,
        copies: bool,
    },
    /// Later rows of an execution.
    Fetch,
    Close,
    Sync,
    Query {
        text: Option<String>,
        cut: bool,
        begun_ns: u64,
        failed: Option<[u8; 5]>,
        /// Whether its answer may have keys.
        makes: bool,
        _held: Held,
    },
    Function,
}

/// See the module.
pub(crate) struct Session {
    phase: Phase,
    /// Whether it asked for TLS.
    asked_tls: bool,
    client: Messages,
    server: Messages,
    pub facts: SessionFacts,
    /// Its number in the capture, once it has a statement.
    pub number: Option<usize>,
    pub statements: HashMap<String, Rc<Statement>>,
    pub portals: HashMap<String, Rc<Portal>>,
    pub awaited: VecDeque<Awaited>,
    /// How often the client asked the server to answer all, and how often it did.
    pub asked_all: u64,
    pub answered_all: u64,
    /// The server skips messages up to the next Sync.
    pub ignoring: bool,
    /// When the first message of the next execution came.
    pub begun_ns: Option<u64>,
    /// When the execution before ended.
    pub done_ns: u64,
    /// The next statement begins a transaction.
    pub fresh: bool,
    pub transaction: u32,
    /// A statement that is over, and may still fail when its transaction commits.
    pub last: Option<Call>,
    pub logged_in: bool,
    /// The client has said that it goes.
    pub left: bool,
    /// Rows of the COPY that is going on.
    pub rows: Rows,
    /// What was seen of the answer that is coming, and its columns if it is that of a text.
    pub answer: Answer,
    pub columns: Vec<Column>,
    /// Whether rows of it are looked at.
    pub wants_rows: Rc<Cell<bool>>,
    pub ledger: Rc<Ledger>,
    /// Of `awaited`, and of `last`.
    awaited_held: Held,
    last_held: Held,
}

impl Session {
    /// A connection from this host.
    pub(crate) fn new(host: String, begin_us: i64, total: &Total) -> Self {
        let ledger = Ledger::new(total);
        Self {
            phase: Phase::Opening,
            asked_tls: false,
            client: Messages::new(&ledger),
            server: Messages::new(&ledger),
            facts: SessionFacts { host, begin_us, ..SessionFacts::default() },
            number: None,
            statements: HashMap::new(),
            portals: HashMap::new(),
            awaited: VecDeque::new(),
            asked_all: 0,
            answered_all: 0,
            ignoring: false,
            begun_ns: None,
            done_ns: 0,
            fresh: true,
            transaction: 0,
            last: None,
            logged_in: false,
            left: false,
            rows: Rows::new(&ledger),
            answer: Answer::default(),
            columns: Vec::new(),
            wants_rows: Rc::default(),
            awaited_held: Held::new(&ledger, 0),
            last_held: Held::new(&ledger, 0),
            ledger,
        }
    }

    /// Whether it went away because it was to be encrypted.
    pub(crate) fn wanted_tls(&self) -> bool {
        self.asked_tls && matches!(self.phase, Phase::Opening)
    }

    /// Hears the client.
    pub(crate) fn heard_client(&mut self, now_ns: u64, bytes: &[u8], store: &mut Store) -> Passage {
        match self.phase {
            Phase::Opening => match opening::begin(bytes) {
                Beginning::Wait => return Passage::Wait,
                Beginning::AsksEncryption { tls, passage } => {
                    self.asked_tls |= tls;
                    return passage;
                }
                Beginning::IsEncrypted => {
                    self.asked_tls = true;
                    return Passage::Cut;
                }
                Beginning::Other => self.phase = Phase::Passed,
                Beginning::Startup => {
                    self.phase = Phase::Startup(Vec::new());
                    self.startup(now_ns, bytes, store);
                }
            },
            Phase::Startup(_) => self.startup(now_ns, bytes, store),
            Phase::LoggingIn => self.log_in(now_ns, bytes, store),
            Phase::Open => self.client_messages(now_ns, bytes, store),
            Phase::Passed | Phase::Lost(_) => (),
        }
        Passage::On
    }

    /// Hears the server.
    pub(crate) fn heard_server(&mut self, now_ns: u64, bytes: &[u8], store: &mut Store) {
        if !matches!(self.phase, Phase::Open | Phase::LoggingIn) {
            return;
        }
        let mut messages = std::mem::replace(&mut self.server, Messages::new(&self.ledger));
        let rows = Rc::clone(&self.wants_rows);
        let is_of_use = |tag| Self::is_of_use_from_server(tag) || (tag == b'D' && rows.get());
        messages.feed(bytes, is_of_use, |message| self.answered(now_ns, message, store));
        self.server = messages;
        self.weigh(now_ns, store);
    }

    /// The server has let it in.
    pub(crate) fn let_in(&mut self) {
        if matches!(self.phase, Phase::LoggingIn) {
            self.phase = Phase::Open;
        }
    }

    /// Ends it.
    pub(crate) fn end(mut self, end_us: i64, said: bool, store: &mut Store) {
        let (end_us, said) = match self.phase {
            Phase::Open => {
                self.give_up(store);
                self.write_last(store);
                (end_us, said || self.left)
            }
            Phase::Lost(lost_us) => (lost_us, false),
            _ => return,
        };
        (self.facts.end_us, self.facts.ended) = (end_us, said);
        store.end(self.number, self.facts);
    }

    /// Follows it no further, for this reason: what it has under way is kept without an ending.
    fn lose(&mut self, reason: &str, now_us: i64, store: &mut Store) {
        self.give_up(store);
        self.write_last(store);
        self.leave_off(reason, now_us, store);
    }

    /// The same when what it has under way may be damaged.
    pub(crate) fn leave_off(&mut self, reason: &str, now_us: i64, store: &mut Store) {
        if matches!(self.phase, Phase::Lost(_)) {
            return;
        }
        self.phase = Phase::Lost(now_us);
        reason.clone_into(&mut self.facts.incomplete);
        store.lost(reason);
        (self.client, self.server) = (Messages::new(&self.ledger), Messages::new(&self.ledger));
        (self.statements, self.portals, self.awaited) = (HashMap::new(), HashMap::new(), VecDeque::new());
        (self.rows, self.answer, self.columns) = (Rows::new(&self.ledger), Answer::default(), Vec::new());
        self.last = None;
        self.awaited_held.set(0);
        self.last_held.set(0);
    }

    /// An execution is over: it is written when the next one is, or the transaction.
    pub(crate) fn over(&mut self, mut call: Call, store: &mut Store) {
        self.write_last(store);
        let (rows, whole) = self.rows.taken(store);
        call.rows = rows;
        call.answer = self.answer.taken();
        call.cut |= !whole;
        if std::mem::take(&mut self.fresh) {
            self.transaction += 1;
        }
        call.transaction = self.transaction;
        self.last_held.set(bytes_of(&call));
        self.last = Some(call);
    }

    pub(crate) fn write_last(&mut self, store: &mut Store) {
        if let Some(call) = self.last.take() {
            self.facts.calls += u64::from(store.call(&mut self.number, &self.facts, &call));
            self.last_held.set(0);
        }
    }

    fn startup(&mut self, now_ns: u64, bytes: &[u8], store: &mut Store) {
        let Phase::Startup(come) = &mut self.phase else { return };
        come.extend_from_slice(bytes);
        let length = opening::startup_length(come);
        if come.len() < length {
            return;
        }
        let rest = come.split_off(length);
        match opening::facts_of(come) {
            Some(facts) => {
                let host = std::mem::take(&mut self.facts.host);
                self.facts = SessionFacts { host, begin_us: self.facts.begin_us, ..facts };
                self.phase = Phase::LoggingIn;
                self.log_in(now_ns, &rest, store);
            }
            None => {
                store.replication += 1;
                self.phase = Phase::Passed;
            }
        }
    }

    /// What a client says before the server has let it in: passwords, which are passed over, or that it goes. No client of PostgreSQL sends
    /// statements then, and nobody has shown yet who it is.
    fn log_in(&mut self, now_ns: u64, bytes: &[u8], store: &mut Store) {
        let (early, leaves) = (Cell::new(false), Cell::new(false));
        let mut messages = std::mem::replace(&mut self.client, Messages::new(&self.ledger));
        let look = |tag| {
            match tag {
                b'p' => (),
                b'X' => leaves.set(true),
                _ => early.set(true),
            }
            false
        };
        messages.feed(bytes, look, |_| ());
        self.client = messages;
        self.left |= leaves.get();
        if early.get() {
            self.lose(EARLY, store.us_of(now_ns), store);
        } else {
            self.weigh(now_ns, store);
        }
    }

    fn client_messages(&mut self, now_ns: u64, bytes: &[u8], store: &mut Store) {
        store.client_bytes += bytes.len() as u64;
        let mut messages = std::mem::replace(&mut self.client, Messages::new(&self.ledger));
        messages.feed(bytes, Self::is_of_use_from_client, |message| self.asked(now_ns, message, store));
        self.client = messages;
        self.weigh(now_ns, store);
    }

    /// Leaves off if it cannot be followed, or only with more memory than it may have.
    fn weigh(&mut self, now_ns: u64, store: &mut Store) {
        self.awaited_held.set(self.awaited.capacity() * size_of::<Awaited>());
        if self.client.foreign || self.server.foreign {
            // A stream that cannot be followed is not guessed at.
            self.awaited.clear();
            self.lose(FOREIGN, store.us_of(now_ns), store);
        } else if !self.ledger.allows(0) {
            self.lose(MEMORY, store.us_of(now_ns), store);
        }
    }
}

/// What a call takes of memory.
fn bytes_of(call: &Call) -> usize {
    call.text.len() + call.name.len() + values_bytes(&call.values)
}

/// What values take of memory.
pub(crate) fn values_bytes(values: &[Option<String>]) -> usize {
    size_of_val(values) + values.iter().flatten().map(String::len).sum::<usize>()
}

/// A call of a statement, without its transaction.
pub(crate) fn call_of(statement: &Statement, values: Values, due_us: i64, ending: Ending) -> Option<Call> {
    let protocol = if statement.name.is_empty() { Protocol::Unnamed } else { Protocol::Named };
    Some(Call {
        due_us,
        protocol,
        name: statement.name.clone(),
        text: statement.text.clone()?,
        values: values.values,
        transaction: 0,
        ending,
        without_values: values.unknown,
        cut: statement.cut || values.cut,
        rows: None,
        answer: Vec::new(),
    })
}
