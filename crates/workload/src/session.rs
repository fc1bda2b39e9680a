//! One client's life: it takes a transaction from the schedule, runs it, tries it again where that is right, and
//! accounts for it once.

use crate::arrivals::{Arrivals, Claim};
use crate::client::*;
use crate::error::RunError;
use crate::random::{Purpose, Random};
use crate::template::{Parameters, Template};
use std::sync::Arc;

/// What a transaction is made of; a [`Session`] runs one transaction of it after the other.
pub(crate) trait Program {
    /// Begins a transaction of this script with these random values; with `again`, what it changed in the try before is
    /// undone first.
    fn begin(&mut self, script: u32, random: Random, again: bool);

    /// Goes on with what the statement before brought.
    fn step(&mut self, now: Nanos, reply: Reply<'_>) -> Step;

    /// The statement of the last [`Step::Send`].
    fn statement(&self) -> Statement<'_>;

    /// Why the last step was [`Step::Abort`], or where it ended.
    fn error(&self) -> &RunError;

    /// Notes that the script cannot go on, for [`Program::error`].
    fn fail(&mut self, message: &str);
}

/// What the statement before brought.
pub(crate) type Reply<'a> = Option<&'a crate::answer::Answer>;

/// What a program does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Send,
    Sync { wait: bool },
    WaitUntil(Nanos),
    End,
    Abort,
}

/// Which failed transactions are tried again, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retries {
    /// How often a transaction is begun at most; 0 is without limit, until the run ends.
    pub tries_max: u32,
    /// Whether a key that exists already is tried again too, and each try draws new values, as sysbench does.
    pub as_sysbench: bool,
}

impl Retries {
    /// pgbench's default: none.
    pub const NONE: Self = Self { tries_max: 1, as_sysbench: false };

    /// sysbench's way.
    pub const SYSBENCH: Self = Self { tries_max: 0, as_sysbench: true };

    fn covers(self, code: SqlState, tries: u32) -> bool {
        let class = code == SqlState::SERIALIZATION_FAILURE
            || code == SqlState::DEADLOCK_DETECTED
            || (self.as_sysbench && code == SqlState::UNIQUE_VIOLATION);
        class && (self.tries_max == 0 || tries < self.tries_max)
    }
}

/// Who a client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The run's seed.
    pub seed: u64,
    /// The client's number, from 0, among all clients of the run.
    pub client: u32,
    /// After how many transactions it is done; without a number, when the schedule ends.
    pub transactions_max: Option<u64>,
    /// Which failures are tried again.
    pub retries: Retries,
}

/// What all clients of a workload have in common.
pub(crate) struct Common {
    /// The weights of the scripts, summed up.
    pub weights: Vec<u64>,
    pub rollback: Template,
    pub rollback_id: StatementId,
}

/// A client that runs a program.
pub(crate) struct Session<P> {
    program: P,
    common: Arc<Common>,
    identity: Identity,
    think: Random,
    state: State,
    transaction: Transaction,
    begun: u64,
    status: Status,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    Thinking(Nanos),
    Waiting(Nanos),
    Running,
    RollingBack(SqlState),
    Aborting,
    Done,
}

impl<P: Program> Session<P> {
    pub fn new(program: P, common: Arc<Common>, identity: Identity) -> Self {
        let verdict = Verdict::Succeeded;
        Self {
            program,
            common,
            identity,
            think: Random::derived(identity.seed, Purpose::Think, identity.client, 0),
            state: State::Free,
            transaction: Transaction { script: 0, ordinal: 0, scheduled: 0, started: 0, tries: 0, verdict },
            begun: 0,
            status: Status::Idle,
        }
    }

    fn claim(&mut self, now: Nanos, arrivals: &mut Arrivals) -> Next<'_> {
        if self.identity.transactions_max.is_some_and(|limit| self.begun >= limit) {
            self.state = State::Done;
            return Next::Done;
        }
        match arrivals.claim(now) {
            Claim::Begin(at) if at > now => {
                self.state = State::Waiting(at);
                Next::WaitUntil(at)
            }
            Claim::Begin(at) => self.begin(now, at),
            Claim::Skip(scheduled, why) => self.skip(now, scheduled, why),
            Claim::None => {
                self.state = State::Done;
                Next::Done
            }
        }
    }

    fn skip(&mut self, now: Nanos, scheduled: Nanos, why: Skip) -> Next<'_> {
        self.state = State::Free;
        let verdict = Verdict::Skipped(why);
        Next::Finished(Transaction { script: 0, ordinal: 0, scheduled, started: now, tries: 0, verdict })
    }

    fn begin(&mut self, now: Nanos, scheduled: Nanos) -> Next<'_> {
        let ordinal = self.begun;
        self.begun += 1;
        let script = self.choose(ordinal);
        self.transaction =
            Transaction { script, ordinal, scheduled, started: now, tries: 1, verdict: Verdict::Succeeded };
        self.program.begin(script, self.random(), false);
        self.state = State::Running;
        self.go_on(now, None)
    }

    fn choose(&self, ordinal: u64) -> u32 {
        let weights = &self.common.weights;
        let total = *weights.last().expect("a workload has a script");
        if weights.len() == 1 {
            return 0;
        }
        let mut random = Random::derived(self.identity.seed, Purpose::Mix, self.identity.client, ordinal);
        let draw = random.up_to(total - 1);
        weights.partition_point(|&sum| sum <= draw) as u32
    }

    /// The values of this transaction: the same in each try, unless it is sysbench's way to draw anew.
    fn random(&self) -> Random {
        let Transaction { ordinal, tries, .. } = self.transaction;
        let redraw = if self.identity.retries.as_sysbench { u64::from(tries - 1) << 48 } else { 0 };
        Random::derived(self.identity.seed, Purpose::Parameters, self.identity.client, ordinal ^ redraw)
    }

    fn go_on(&mut self, now: Nanos, reply: Reply<'_>) -> Next<'_> {
        match self.program.step(now, reply) {
            Step::Send => Next::Send(self.program.statement()),
            Step::Sync { wait } => Next::Sync { wait },
            Step::WaitUntil(at) => Next::WaitUntil(at),
            Step::End if self.status == Status::Idle => self.finish(Verdict::Succeeded),
            Step::End => {
                self.program.fail("the script ends inside a transaction: add END, COMMIT or ROLLBACK");
                self.abort()
            }
            Step::Abort => self.abort(),
        }
    }

    fn abort(&mut self) -> Next<'_> {
        self.state = State::Aborting;
        self.transaction.verdict = Verdict::Failed(Failure::Script);
        Next::Finished(self.transaction)
    }

    fn finish(&mut self, verdict: Verdict) -> Next<'_> {
        self.state = State::Free;
        self.transaction.verdict = verdict;
        Next::Finished(self.transaction)
    }

    fn failed(&mut self, now: Nanos, code: SqlState, status: Status, arrivals: &Arrivals) -> Next<'_> {
        self.status = status;
        if status == Status::Idle {
            return self.retry_or_finish(now, code, arrivals);
        }
        self.state = State::RollingBack(code);
        let common = &self.common;
        Next::Send(Statement {
            id: common.rollback_id,
            template: &common.rollback,
            parameters: Parameters::default(),
            keep: false,
            pipelined: false,
        })
    }

    fn retry_or_finish(&mut self, now: Nanos, code: SqlState, arrivals: &Arrivals) -> Next<'_> {
        if arrivals.has_ended(now) || !self.identity.retries.covers(code, self.transaction.tries) {
            return self.finish(Verdict::Failed(Failure::Sql(code)));
        }
        self.transaction.tries += 1;
        let random = self.random();
        self.program.begin(self.transaction.script, random, !self.identity.retries.as_sysbench);
        self.state = State::Running;
        self.go_on(now, None)
    }

    fn lost(&mut self) -> Next<'_> {
        self.status = Status::Idle;
        self.finish(Verdict::Failed(Failure::Lost))
    }
}

impl<P: Program> Client for Session<P> {
    fn next(&mut self, now: Nanos, outcome: Outcome<'_>, arrivals: &mut Arrivals) -> Next<'_> {
        match (self.state, outcome) {
            (State::Running | State::RollingBack(_), Outcome::Lost) => self.lost(),
            (State::Running, Outcome::Failed { sqlstate, status }) => self.failed(now, sqlstate, status, arrivals),
            (State::Running, Outcome::Succeeded { status, answer }) => {
                self.status = status;
                self.go_on(now, answer)
            }
            (State::Running, Outcome::Ready) => self.go_on(now, None),
            (State::RollingBack(code), _) => {
                self.status = Status::Idle;
                self.retry_or_finish(now, code, arrivals)
            }
            (State::Free, _) => {
                // The first transaction does not wait; nor does one after a slot that was skipped, as only closed
                // loops think; and after the end nobody does.
                let thinks = self.begun > 0 && !arrivals.has_ended(now);
                let think_ns = if thinks { arrivals.think_ns(&mut self.think) } else { 0 };
                if think_ns == 0 {
                    return self.claim(now, arrivals);
                }
                self.state = State::Thinking(now.saturating_add(think_ns));
                Next::WaitUntil(now.saturating_add(think_ns))
            }
            // A client that thinks has nothing to wait for when nothing is begun any more.
            (State::Thinking(until), _) if now < until && !arrivals.has_ended(now) => Next::WaitUntil(until),
            (State::Waiting(at), _) if arrivals.give_back(at) => self.claim(now, arrivals),
            (State::Waiting(at), _) if now < at => Next::WaitUntil(at),
            (State::Thinking(_), _) => self.claim(now, arrivals),
            // It was taken in time, and the session went away before it was due.
            (State::Waiting(at), _) if arrivals.is_too_late(at, now) => self.skip(now, at, Skip::Late),
            (State::Waiting(at), _) => self.begin(now, at),
            (State::Aborting, _) => {
                self.state = State::Done;
                Next::Aborted(self.program.error())
            }
            (State::Done, _) => Next::Done,
        }
    }
}
