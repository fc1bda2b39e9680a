//! One client's transaction: which table, which rows, which texts.

use super::plan::{Kind, Plan};
use super::text::{C_GROUPS, PAD_GROUPS, write_groups};
use crate::client::{Statement, StatementId};
use crate::error::{Position, RunError, ScriptError};
use crate::program::{Program, Reply, Step};
use crate::random::Random;
use crate::template::ParameterBuffer;
use crate::time::Nanos;
use std::sync::Arc;

/// One client of a test.
pub(crate) struct Event {
    plan: Arc<Plan>,
    client: u32,
    random: Random,
    next: usize,
    table: u32,
    /// The row that was deleted last.
    deleted: i64,
    sent: StatementId,
    parameters: ParameterBuffer,
    error: RunError,
}

impl Event {
    pub fn new(plan: Arc<Plan>, client: u32) -> Self {
        let script = plan.settings.test.name().to_owned();
        let error = ScriptError { script, at: Position { line: 1, column: 1 }, message: String::new() };
        let (random, parameters) = (Random::new(0), ParameterBuffer::default());
        Self { plan, client, random, next: 0, table: 1, deleted: 0, sent: StatementId(0), parameters, error }
    }

    fn key(&mut self) -> i64 {
        let settings = &self.plan.settings;
        settings.keys.draw_shaped(&settings.shape, &mut self.random, 1, settings.table_size)
    }

    /// A value of `k` from this client's part of the table; as in sysbench the parts share their borders.
    fn key_of_part(&mut self) -> i64 {
        let settings = &self.plan.settings;
        let length = settings.table_size as f64 / f64::from(settings.clients);
        let min = length * f64::from(self.client % settings.clients);
        settings.keys.draw_shaped(&settings.shape, &mut self.random, min as i64, (min + length) as i64)
    }

    fn digits(&mut self, groups: u32) {
        let random = &mut self.random;
        self.parameters.text(|out| write_groups(random, groups, out));
    }

    fn fill(&mut self, kind: Kind) {
        self.parameters.clear();
        match kind {
            Kind::Begin | Kind::Commit => {}
            Kind::Point | Kind::UpdateIndex => {
                let id = self.key();
                self.parameters.integer(id);
            }
            Kind::Range | Kind::SumRange | Kind::OrderRange | Kind::DistinctRange => {
                let id = self.key();
                self.parameters.integer(id);
                self.parameters.integer(id + self.plan.settings.range_size - 1);
            }
            Kind::UpdateNonIndex => {
                self.digits(C_GROUPS);
                let id = self.key();
                self.parameters.integer(id);
            }
            Kind::Delete => {
                self.deleted = self.key();
                self.parameters.integer(self.deleted);
            }
            Kind::InsertAgain => {
                self.parameters.integer(self.deleted);
                self.row();
            }
            Kind::InsertNew => self.row(),
            Kind::RandomPoints => (0..self.plan.settings.random_points).for_each(|_| {
                let k = self.key_of_part();
                self.parameters.integer(k);
            }),
            Kind::RandomRanges => (0..self.plan.settings.number_of_ranges).for_each(|_| {
                let k = self.key_of_part();
                self.parameters.integer(k);
                self.parameters.integer(k + self.plan.settings.delta);
            }),
        }
    }

    fn row(&mut self) {
        let k = self.key();
        self.parameters.integer(k);
        self.digits(C_GROUPS);
        self.digits(PAD_GROUPS);
    }
}

impl Program for Event {
    fn begin(&mut self, _script: u32, random: Random, _again: bool) {
        self.random = random;
        self.next = 0;
    }

    fn step(&mut self, _now: Nanos, _reply: Reply<'_>) -> Step {
        let Some(&item) = self.plan.items.get(self.next) else { return Step::End };
        self.next += 1;
        if item.draw_table {
            self.table = self.random.between(1, i64::from(self.plan.settings.tables)) as u32;
        }
        self.sent = self.plan.statement(item, self.table);
        self.fill(item.kind);
        Step::Send
    }

    fn statement(&self) -> Statement<'_> {
        Statement {
            id: self.sent,
            template: &self.plan.statements()[self.sent.0 as usize],
            parameters: self.parameters.get(),
            keep: false,
            pipelined: false,
        }
    }

    fn error(&self) -> &RunError {
        &self.error
    }

    fn fail(&mut self, message: &str) {
        message.clone_into(&mut self.error.message);
    }
}
