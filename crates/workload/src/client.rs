//! The seam: what a client asks of its host, and what it is told.

use crate::answer::Answer;
use crate::arrivals::{Arrivals, Skip};
use crate::error::RunError;
use crate::template::{Parameters, Template};
use crate::time::Nanos;

/// One client of a workload: it says what to send and when, and is told what became of it.
///
/// A host calls [`next`](Client::next) first with [`Outcome::Ready`], does what is returned, and calls again with what
/// came of it:
///
/// | returned | the host | and calls again with |
/// |---|---|---|
/// | [`Next::Send`] | sends, waits for the answer | [`Outcome::Succeeded`], [`Outcome::Failed`] or [`Outcome::Lost`] |
/// | [`Next::Send`], pipelined | puts it into the pipeline, does not wait | [`Outcome::Ready`] |
/// | [`Next::Sync`] | sends Sync, waits if asked to | [`Outcome::Ready`], or after waiting as for `Send` |
/// | [`Next::WaitUntil`] | waits | [`Outcome::Ready`] |
/// | [`Next::Finished`] | counts the transaction | [`Outcome::Ready`] |
/// | [`Next::Aborted`], [`Next::Done`] | closes the connection | nothing |
pub trait Client {
    /// What to do next at `now`. `arrivals` is shared by the clients of one thread of the host: whoever is free takes
    /// the next transaction.
    fn next(&mut self, now: Nanos, outcome: Outcome<'_>, arrivals: &mut Arrivals) -> Next<'_>;

    /// Counts of what was asked for since the first transaction, as [`Program::inputs`](crate::Program::inputs).
    fn inputs(&self) -> Vec<(&'static str, u64)>;
}

/// What the host is to do.
#[derive(Clone, Copy, Debug)]
pub enum Next<'a> {
    /// Send this statement.
    Send(Statement<'a>),
    /// Send the end of a pipeline's segment; with `wait`, take all answers before going on. The outcome is the first
    /// failure of the pipeline, or success.
    Sync {
        /// Whether the pipeline ends here.
        wait: bool,
    },
    /// Nothing to do before this time.
    WaitUntil(Nanos),
    /// A transaction is over: each that was scheduled comes here exactly once.
    Finished(Transaction),
    /// The script cannot go on; this client is done. The transaction was finished, as failed, before.
    Aborted(&'a RunError),
    /// This client is done.
    Done,
}

/// What became of what the host was asked to do.
#[derive(Clone, Copy, Debug)]
pub enum Outcome<'a> {
    /// There was nothing to report: the beginning, a wait that is over, a transaction that was counted.
    Ready,
    /// The server did it.
    Succeeded {
        /// Where the session stands now.
        status: Status,
        /// What it answered, if the statement asked for it ([`Statement::keep`]).
        answer: Option<&'a Answer>,
    },
    /// The server refused it.
    Failed {
        /// The error's code.
        sqlstate: SqlState,
        /// Where the session stands now.
        status: Status,
    },
    /// The connection was lost; the host has another one when it calls again.
    Lost,
}

/// Where a session stands after a statement, as the server's ReadyForQuery says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Outside a transaction block (`I`).
    Idle,
    /// In a transaction block (`T`).
    InTransaction,
    /// In a transaction block that failed (`E`).
    InFailedTransaction,
}

/// An error's code (SQLSTATE): five characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SqlState(pub [u8; 5]);

impl SqlState {
    /// 40001: two transactions could not be put into an order.
    pub const SERIALIZATION_FAILURE: Self = Self(*b"40001");
    /// 40P01: two transactions waited for one another.
    pub const DEADLOCK_DETECTED: Self = Self(*b"40P01");
    /// 23505: a key exists already.
    pub const UNIQUE_VIOLATION: Self = Self(*b"23505");

    /// The code as text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("?????")
    }
}

/// Which statement of a workload: an index into the statements of its workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StatementId(pub u32);

/// One execution of a statement.
#[derive(Clone, Copy, Debug)]
pub struct Statement<'a> {
    /// Which one it is, for preparing it once and for its statistics.
    pub id: StatementId,
    /// Its text.
    pub template: &'a Template,
    /// Its values.
    pub parameters: Parameters<'a>,
    /// Whether the client wants to see the answer.
    pub keep: bool,
    /// Whether to go on without waiting for the answer (extended protocol only).
    pub pipelined: bool,
}

/// A transaction that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// Which script it ran: an index into the workload's scripts.
    pub script: u32,
    /// Its number among those of its client, from 0; 0 for one that was skipped.
    pub ordinal: u64,
    /// When it should have begun: response time counts from here. In a closed loop, when it began.
    pub scheduled: Nanos,
    /// When it began: service time counts from here, and includes all tries.
    pub started: Nanos,
    /// How often it was begun; 0 if it was skipped.
    pub tries: u32,
    /// How it ended.
    pub verdict: Verdict,
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All its statements did.
    Succeeded,
    /// It was rolled back because it was meant to be, as one New-Order of TPC-C in a hundred is.
    RolledBack,
    /// It did not, and was not tried again.
    Failed(Failure),
    /// It was not begun.
    Skipped(Skip),
}

/// Why a transaction failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The server refused a statement.
    Sql(SqlState),
    /// The connection was lost.
    Lost,
    /// The script could not go on.
    Script,
}
