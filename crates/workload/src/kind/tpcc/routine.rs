//! A client whose transactions are routines of the server: one statement each.

use super::draw::{Customer, Line, Terminal};
use super::names::{DISTRICTS, write_last_name};
use super::settings::{Profile, Settings};
use super::template::{DELIVERY, NEW_ORDER, ORDER_STATUS, PAYMENT, STOCK_LEVEL, passes_names};
use crate::client::{Statement, StatementId};
use crate::error::{Position, RunError, ScriptError};
use crate::program::{Program, Reply, Step};
use crate::random::Random;
use crate::template::{ParameterBuffer, Template, write_integer};
use crate::time::Nanos;
use std::sync::Arc;

/// One client.
pub(crate) struct Routine {
    settings: Arc<Settings>,
    statements: Arc<Vec<Template>>,
    terminal: Terminal,
    script: u32,
    sent: bool,
    lines: Vec<Line>,
    parameters: ParameterBuffer,
    error: RunError,
}

impl Routine {
    pub fn new(settings: Arc<Settings>, statements: Arc<Vec<Template>>, seed: u64, client: u32) -> Self {
        let terminal = Terminal::new(Arc::clone(&settings), seed, client);
        let error =
            ScriptError { script: "tpcc".to_owned(), at: Position { line: 1, column: 1 }, message: String::new() };
        let (lines, parameters) = (Vec::new(), ParameterBuffer::default());
        Self { settings, statements, terminal, script: 0, sent: false, lines, parameters, error }
    }

    fn fill(&mut self, random: &mut Random) {
        self.parameters.clear();
        let warehouse = self.terminal.warehouse(random);
        self.parameters.integer(warehouse);
        match self.script {
            NEW_ORDER if self.settings.profile == Profile::Hammerdb => self.new_order_drawn_there(random),
            NEW_ORDER => self.new_order(random, warehouse),
            PAYMENT => self.payment(random, warehouse),
            DELIVERY => self.parameters.integer(random.between(1, 10)),
            STOCK_LEVEL => {
                self.parameters.integer(self.terminal.district());
                self.parameters.integer(random.between(10, 20));
            }
            ORDER_STATUS => {
                let district = random.between(1, DISTRICTS);
                let customer = self.terminal.customer(random, warehouse, district);
                self.parameters.integer(district);
                self.parameters.integer(customer.id);
                self.name(customer);
            }
            _ => unreachable!("there are five types"),
        }
    }

    /// HammerDB draws the items in the server. Its draws begin anew in each order with a seed from here, so that they are the same
    /// however often a session was lost.
    fn new_order_drawn_there(&mut self, random: &mut Random) {
        let (district, customer) = (random.between(1, DISTRICTS), self.terminal.customer_id(random));
        for value in [self.settings.warehouses, district, customer, random.between(5, 15)] {
            self.parameters.integer(value);
        }
        self.parameters.integer(random.between(0, i64::from(i32::MAX)));
    }

    fn new_order(&mut self, random: &mut Random, warehouse: i64) {
        let (district, customer) = (random.between(1, DISTRICTS), self.terminal.customer_id(random));
        self.terminal.lines(random, warehouse, &mut self.lines);
        self.parameters.integer(district);
        self.parameters.integer(customer);
        for of in [|line: &Line| line.item, |line: &Line| line.supply, |line: &Line| line.quantity] {
            let lines = &self.lines;
            self.parameters.text(|out| {
                out.push(b'{');
                for (index, line) in lines.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    write_integer(of(line), out);
                }
                out.push(b'}');
            });
        }
    }

    fn payment(&mut self, random: &mut Random, warehouse: i64) {
        let district = random.between(1, DISTRICTS);
        let payer = self.terminal.payer(random, warehouse, district);
        let cents = self.terminal.amount_cents(random);
        for value in [district, payer.warehouse, payer.district, payer.id, i64::from(payer.name.is_some())] {
            self.parameters.integer(value);
        }
        self.parameters.text(|out| {
            write_integer(cents / 100, out);
            out.extend_from_slice(&[b'.', b'0' + (cents / 10 % 10) as u8, b'0' + (cents % 10) as u8]);
        });
        if passes_names(&self.settings) {
            self.last_name(payer);
        }
    }

    fn name(&mut self, customer: Customer) {
        self.parameters.integer(i64::from(customer.name.is_some()));
        if passes_names(&self.settings) {
            self.last_name(customer);
        }
    }

    fn last_name(&mut self, customer: Customer) {
        self.parameters.text(|out| customer.name.into_iter().for_each(|number| write_last_name(number, out)));
    }

    /// Whether the order was rolled back in the server, which then gives no total.
    fn rolled_back(&self, reply: Reply<'_>) -> bool {
        let first = reply.and_then(|answer| answer.sets().first()).and_then(|set| set.last_row().next());
        matches!(first, Some((_, None)))
    }

    fn keeps(&self) -> bool {
        self.script == NEW_ORDER && self.settings.profile == Profile::Spec
    }
}

impl Program for Routine {
    fn begin(&mut self, script: u32, mut random: Random, _again: bool) {
        self.script = script;
        self.sent = false;
        self.fill(&mut random);
    }

    fn step(&mut self, _now: Nanos, reply: Reply<'_>) -> Step {
        if !self.sent {
            self.sent = true;
            return Step::Send;
        }
        if self.keeps() && self.rolled_back(reply) { Step::EndRolledBack } else { Step::End }
    }

    fn statement(&self) -> Statement<'_> {
        Statement {
            id: StatementId(self.script),
            template: &self.statements[self.script as usize],
            parameters: self.parameters.get(),
            keep: self.keeps(),
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
