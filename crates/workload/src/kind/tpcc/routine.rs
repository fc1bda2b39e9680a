//! A client whose transactions are routines of the server: one statement each.

use super::asked::Asked;
use super::draw::{Customer, Line, Terminal};
use super::names::write_last_name;
use super::settings::{Profile, Settings};
use super::tally::Tally;
use super::template::{DELIVERY, NEW_ORDER, ORDER_STATUS, PAYMENT, STOCK_LEVEL, passes_names};
use super::value::{first, first_number, write_cents};
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
    asked: Asked,
    tally: Tally,
    parameters: ParameterBuffer,
    error: RunError,
}

impl Routine {
    pub fn new(settings: Arc<Settings>, statements: Arc<Vec<Template>>, seed: u64, client: u32) -> Self {
        Self {
            terminal: Terminal::new(Arc::clone(&settings), seed, client),
            settings,
            statements,
            script: 0,
            sent: false,
            asked: Asked::default(),
            tally: Tally::default(),
            parameters: ParameterBuffer::default(),
            error: ScriptError {
                script: "tpcc".to_owned(),
                at: Position { line: 1, column: 1 },
                message: String::new(),
            },
        }
    }

    fn fill(&mut self) {
        self.parameters.clear();
        self.parameters.integer(self.asked.warehouse);
        match self.script {
            NEW_ORDER if self.settings.profile == Profile::Hammerdb => {
                let (lines, seed) = self.asked.drawn_there;
                let Asked { district, customer, .. } = &self.asked;
                for value in [self.settings.warehouses, *district, customer.id, lines, seed] {
                    self.parameters.integer(value);
                }
            }
            NEW_ORDER => self.new_order(),
            PAYMENT => self.payment(),
            DELIVERY => self.parameters.integer(self.asked.carrier),
            STOCK_LEVEL => {
                self.parameters.integer(self.asked.district);
                self.parameters.integer(self.asked.threshold);
            }
            ORDER_STATUS => {
                let customer = self.asked.customer;
                for value in [self.asked.district, customer.id, i64::from(customer.name.is_some())] {
                    self.parameters.integer(value);
                }
                self.name(customer);
            }
            _ => unreachable!("there are five types"),
        }
    }

    fn new_order(&mut self) {
        let Asked { district, customer, lines, .. } = &self.asked;
        self.parameters.integer(*district);
        self.parameters.integer(customer.id);
        for of in [|line: &Line| line.item, |line: &Line| line.supply, |line: &Line| line.quantity] {
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

    fn payment(&mut self) {
        let Asked { district, customer: payer, cents, .. } = self.asked;
        for value in [district, payer.warehouse, payer.district, payer.id, i64::from(payer.name.is_some())] {
            self.parameters.integer(value);
        }
        self.parameters.text(|out| write_cents(cents, out));
        self.name(payer);
    }

    fn name(&mut self, customer: Customer) {
        if passes_names(&self.settings) {
            self.parameters.text(|out| customer.name.into_iter().for_each(|number| write_last_name(number, out)));
        }
    }

    /// Whether the answer says something: that an order was rolled back in the server, which then has no total; how many orders
    /// were delivered.
    fn keeps(&self) -> bool {
        match self.script {
            NEW_ORDER => self.settings.profile == Profile::Spec,
            script => script == DELIVERY,
        }
    }
}

impl Program for Routine {
    fn begin(&mut self, script: u32, mut random: Random, again: bool) {
        self.script = script;
        self.sent = false;
        self.terminal.ask(script, &mut random, &mut self.asked);
        if !again {
            self.tally.count(script, &self.asked, &self.terminal);
        }
        self.fill();
    }

    fn step(&mut self, _now: Nanos, reply: Reply<'_>) -> Step {
        if !self.sent {
            self.sent = true;
            return Step::Send;
        }
        if self.script == DELIVERY {
            self.tally.delivered(first_number(reply).unwrap_or(0).unsigned_abs());
        }
        if self.keeps() && self.script == NEW_ORDER && first(reply).is_none() { Step::EndRolledBack } else { Step::End }
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

    fn inputs(&self) -> Vec<(&'static str, u64)> {
        self.tally.counts()
    }

    fn error(&self) -> &RunError {
        &self.error
    }

    fn fail(&mut self, message: &str) {
        message.clone_into(&mut self.error.message);
    }
}
