//! One client's life: it takes a transaction from the schedule, runs it, tries it again where that is right, and
//! accounts for it once.

use crate::arrivals::{Arrivals, Claim, Skip};
use crate::client::*;
use crate::mixture::{Hand, Mixture};
use crate::program::{Program, Reply, Step};
use crate::random::{Purpose, Random};
use crate::retries::Retries;
use crate::template::{Parameters, Template};
use crate::time::Nanos;
use std::sync::Arc;

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
    pub mixture: Mixture,
    pub rollback: Template,
    pub rollback_id: StatementId,
}

/// A client that runs a program.
pub(crate) struct Session<P> {
    program: P,
    common: Arc<Common>,
    identity: Identity,
    hand: Hand,
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
            hand: Hand::new(identity.seed, identity.client),
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
        let script = self.hand.choose(&self.common.mixture, ordinal);
        self.transaction =
            Transaction { script, ordinal, scheduled, started: now, tries: 1, verdict: Verdict::Succeeded };
        self.program.begin(script, self.random(), false);
        self.state = State::Running;
        self.go_on(now, None)
    }

    /// How long to wait before the next transaction is taken. Only closed loops pause, and nobody does after the end. The first
    /// transaction is keyed in, and nothing was thought about before it.
    fn pause_ns(&mut self, now: Nanos, arrivals: &Arrivals) -> Nanos {
        if arrivals.is_open() || arrivals.has_ended(now) {
            return 0;
        }
        let before = (self.begun > 0).then_some(self.transaction.script);
        let think_ns = if before.is_some() { arrivals.think_ns(&mut self.think) } else { 0 };
        think_ns.saturating_add(self.hand.pause_ns(&self.common.mixture, before, self.begun, &mut self.think))
    }

    /// The values of this transaction: the same in each try, unless each is to draw anew.
    fn random(&self) -> Random {
        let Transaction { ordinal, tries, .. } = self.transaction;
        let redraw = if self.identity.retries.redraw { u64::from(tries - 1) << 48 } else { 0 };
        Random::derived(self.identity.seed, Purpose::Parameters, self.identity.client, ordinal ^ redraw)
    }

    fn go_on(&mut self, now: Nanos, reply: Reply<'_>) -> Next<'_> {
        match self.program.step(now, reply) {
            Step::Send => Next::Send(self.program.statement()),
            Step::Sync { wait } => Next::Sync { wait },
            Step::WaitUntil(at) => Next::WaitUntil(at),
            Step::End if self.status == Status::Idle => self.finish(Verdict::Succeeded),
            Step::EndRolledBack if self.status == Status::Idle => self.finish(Verdict::RolledBack),
            Step::End | Step::EndRolledBack => {
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
        self.program.begin(self.transaction.script, random, !self.identity.retries.redraw);
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
                let pause_ns = self.pause_ns(now, arrivals);
                if pause_ns == 0 {
                    return self.claim(now, arrivals);
                }
                self.state = State::Thinking(now.saturating_add(pause_ns));
                Next::WaitUntil(now.saturating_add(pause_ns))
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

    fn inputs(&self) -> Vec<(&'static str, u64)> {
        self.program.inputs()
    }
}
