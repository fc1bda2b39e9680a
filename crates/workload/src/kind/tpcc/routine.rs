//! A client whose transactions are routines of the server: one statement each.

use super::asked::Asked;
use super::call::passes_names;
use super::draw::{Customer, Line};
use super::names::write_last_name;
use super::settings::{Profile, Routines, Settings};
use super::template::{DELIVERY, NEW_ORDER, ORDER_STATUS, PAYMENT, STOCK_LEVEL};
use super::user::User;
use super::value::{first, first_number, write_cents};
use crate::client::{Statement, StatementId};
use crate::error::RunError;
use crate::program::{Program, Reply, Step};
use crate::random::Random;
use crate::template::{Template, write_integer};
use crate::time::Nanos;
use std::sync::Arc;

/// One client.
pub(crate) struct Routine {
    settings: Arc<Settings>,
    statements: Arc<Vec<Template>>,
    user: User,
    sent: bool,
}

impl Routine {
    pub fn new(settings: Arc<Settings>, statements: Arc<Vec<Template>>, seed: u64, client: u32) -> Self {
        let user = User::new(Arc::clone(&settings), seed, client);
        Self { settings, statements, user, sent: false }
    }

    fn fill(&mut self) {
        self.user.parameters.clear();
        self.user.parameters.integer(self.user.asked.warehouse);
        match self.user.script {
            NEW_ORDER if self.settings.profile == Profile::Hammerdb => {
                let (lines, seed) = self.user.asked.drawn_there;
                let Asked { district, customer, .. } = &self.user.asked;
                for value in [self.settings.warehouses, *district, customer.id, lines] {
                    self.user.parameters.integer(value);
                }
                if !self.settings.built {
                    self.user.parameters.integer(seed);
                }
            }
            NEW_ORDER => self.new_order(),
            PAYMENT => self.payment(),
            DELIVERY => self.user.parameters.integer(self.user.asked.carrier),
            STOCK_LEVEL => {
                self.user.parameters.integer(self.user.asked.district);
                self.user.parameters.integer(self.user.asked.threshold);
            }
            ORDER_STATUS => {
                let customer = self.user.asked.customer;
                for value in [self.user.asked.district, customer.id, i64::from(customer.name.is_some())] {
                    self.user.parameters.integer(value);
                }
                self.name(customer);
            }
            _ => unreachable!("there are five types"),
        }
    }

    fn new_order(&mut self) {
        let Asked { district, customer, lines, .. } = &self.user.asked;
        self.user.parameters.integer(*district);
        self.user.parameters.integer(customer.id);
        for of in [|line: &Line| line.item, |line: &Line| line.supply, |line: &Line| line.quantity] {
            self.user.parameters.text(|out| {
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
        let Asked { district, customer: payer, cents, .. } = self.user.asked;
        for value in [district, payer.warehouse, payer.district] {
            self.user.parameters.integer(value);
        }
        // HammerDB's procedure gives the customer back, and takes it where it gives it.
        let last = self.settings.built && self.settings.routines == Routines::Procedures;
        if !last {
            self.user.parameters.integer(payer.id);
        }
        self.user.parameters.integer(i64::from(payer.name.is_some()));
        self.user.parameters.text(|out| write_cents(cents, out));
        self.name(payer);
        if last {
            self.user.parameters.integer(payer.id);
        }
    }

    fn name(&mut self, customer: Customer) {
        if passes_names(&self.settings) {
            self.user.parameters.text(|out| customer.name.into_iter().for_each(|number| write_last_name(number, out)));
        }
    }

    /// Whether the answer says something: that an order was rolled back in the server, which then has no total; how many orders
    /// were delivered, which HammerDB's own routine does not tell.
    fn keeps(&self) -> bool {
        match self.user.script {
            NEW_ORDER => self.settings.profile == Profile::Spec,
            script => script == DELIVERY && !self.settings.built,
        }
    }
}

impl Program for Routine {
    fn begin(&mut self, script: u32, random: Random, again: bool) {
        self.sent = false;
        self.user.begin(script, random, again);
        self.fill();
    }

    fn step(&mut self, _now: Nanos, reply: Reply<'_>) -> Step {
        if !self.sent {
            self.sent = true;
            return Step::Send;
        }
        if self.user.script == DELIVERY && self.keeps() {
            self.user.tally.delivered(first_number(reply).unwrap_or(0).unsigned_abs());
        }
        if self.keeps() && self.user.script == NEW_ORDER && first(reply).is_none() {
            Step::EndRolledBack
        } else {
            Step::End
        }
    }

    fn statement(&self) -> Statement<'_> {
        let script = self.user.script;
        self.user.statement(StatementId(script), &self.statements[script as usize], self.keeps())
    }

    fn inputs(&self) -> Vec<(&'static str, u64)> {
        self.user.tally.counts()
    }

    fn error(&self) -> &RunError {
        &self.user.error
    }

    fn fail(&mut self, message: &str) {
        message.clone_into(&mut self.user.error.message);
    }
}
