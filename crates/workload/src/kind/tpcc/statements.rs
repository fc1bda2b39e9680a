//! A client that sends the statements of its transactions one by one, with all their round trips (TPC-C 5.11, 2.4 to 2.8).

use super::names::{DISTRICTS, write_last_name};
use super::settings::Settings;
use super::sql::{Field, Prepared, Sql};
use super::template::{DELIVERY, NEW_ORDER, ORDER_STATUS, PAYMENT};
use super::user::User;
use super::value::{cents, first, first_number, write_cents};
use crate::client::Statement;
use crate::error::RunError;
use crate::program::{Program, Reply, Step};
use crate::random::Random;
use crate::time::Nanos;
use std::sync::Arc;

/// Orders of a district whose lines Stock-Level looks at.
const LAST_ORDERS: i64 = 20;

/// One client.
pub(crate) struct Statements {
    statements: Arc<Vec<Prepared>>,
    user: User,
    /// What was sent last; nothing at the beginning of a transaction.
    sent: Option<Sql>,
    known: Known,
}

/// What answers have told of this transaction.
#[derive(Default)]
struct Known {
    order: i64,
    customer: i64,
    /// How many are called so, then the place of the one in the middle.
    named: i64,
    line: usize,
    line_cents: i64,
    place: Vec<u8>,
    places: Vec<u8>,
    district: i64,
    delivered: Vec<u8>,
    orders_delivered: u64,
}

impl Statements {
    pub fn new(settings: Arc<Settings>, statements: Arc<Vec<Prepared>>, seed: u64, client: u32) -> Self {
        Self { statements, user: User::new(settings, seed, client), sent: None, known: Known::default() }
    }

    /// What comes after the statement that was sent last; nothing where its answer lacks a row that must be there.
    fn after(&mut self, sent: Sql, reply: Reply<'_>) -> Option<Sql> {
        match self.user.script {
            NEW_ORDER => self.new_order(sent, reply),
            PAYMENT => self.payment(sent, reply),
            DELIVERY => self.delivery(sent, reply),
            ORDER_STATUS => self.order_status(sent, reply),
            _ => self.stock_level(sent, reply),
        }
    }

    fn new_order(&mut self, sent: Sql, reply: Reply<'_>) -> Option<Sql> {
        Some(match sent {
            Sql::Begin => Sql::Discount,
            Sql::Discount => first(reply).map(|_| Sql::TakeNumber)?,
            Sql::TakeNumber => {
                self.known.order = first_number(reply)?;
                Sql::AddOrder
            }
            Sql::AddOrder => Sql::AddOpen,
            Sql::AddOpen => Sql::Price,
            Sql::Price => {
                // An item that does not exist: the order is rolled back, as it is meant to be.
                let Some(price) = first(reply) else { return Some(Sql::Rollback) };
                self.known.line_cents = cents(price)? * self.user.asked.lines[self.known.line].quantity;
                Sql::TakeStock
            }
            Sql::TakeStock => {
                keep(&mut self.known.place, first(reply)?);
                Sql::AddLine
            }
            _ => {
                self.known.line += 1;
                if self.known.line < self.user.asked.lines.len() { Sql::Price } else { Sql::Commit }
            }
        })
    }

    fn payment(&mut self, sent: Sql, reply: Reply<'_>) -> Option<Sql> {
        Some(match sent {
            Sql::Begin => Sql::PayWarehouse,
            Sql::PayWarehouse => {
                keep(&mut self.known.places, first(reply)?);
                self.known.places.extend_from_slice(b"    ");
                Sql::PayDistrict
            }
            Sql::PayDistrict => {
                self.known.places.extend_from_slice(first(reply)?);
                if self.user.asked.customer.name.is_some() { Sql::CountNamed } else { Sql::Pay }
            }
            Sql::CountNamed => self.middle(reply)?,
            Sql::Named => {
                self.known.customer = first_number(reply)?;
                Sql::Pay
            }
            Sql::Pay if first(reply).is_none() => Sql::PayAndNote,
            Sql::PayAndNote => first(reply).map(|_| Sql::AddHistory)?,
            Sql::Pay => Sql::AddHistory,
            _ => Sql::Commit,
        })
    }

    /// Row n/2, rounded up, of n who are called so.
    fn middle(&mut self, reply: Reply<'_>) -> Option<Sql> {
        self.known.named = first_number(reply).filter(|many| *many > 0)?;
        Some(Sql::Named)
    }

    fn delivery(&mut self, sent: Sql, reply: Reply<'_>) -> Option<Sql> {
        Some(match sent {
            Sql::Begin => Sql::Oldest,
            Sql::Oldest => match first_number(reply) {
                Some(order) => {
                    self.known.order = order;
                    Sql::Close
                }
                None => self.next_district(),
            },
            Sql::Close => Sql::Carry,
            Sql::Carry => {
                self.known.customer = first_number(reply)?;
                Sql::DeliverLines
            }
            Sql::DeliverLines => {
                keep(&mut self.known.delivered, first(reply)?);
                Sql::Deliver
            }
            _ => {
                self.known.orders_delivered += 1;
                self.next_district()
            }
        })
    }

    fn next_district(&mut self) -> Sql {
        self.known.district += 1;
        if self.known.district <= DISTRICTS { Sql::Oldest } else { Sql::Commit }
    }

    fn order_status(&mut self, sent: Sql, reply: Reply<'_>) -> Option<Sql> {
        Some(match sent {
            Sql::Begin if self.user.asked.customer.name.is_some() => Sql::CountNamed,
            Sql::Begin => Sql::Find,
            Sql::CountNamed => self.middle(reply)?,
            Sql::Named | Sql::Find => {
                self.known.customer = first_number(reply)?;
                Sql::LastOrder
            }
            Sql::LastOrder => {
                self.known.order = first_number(reply)?;
                Sql::Lines
            }
            _ => Sql::Commit,
        })
    }

    fn stock_level(&mut self, sent: Sql, reply: Reply<'_>) -> Option<Sql> {
        Some(match sent {
            Sql::Begin => Sql::NextNumber,
            Sql::NextNumber => {
                self.known.order = first_number(reply)?;
                Sql::Scarce
            }
            _ => Sql::Commit,
        })
    }

    fn fill(&mut self, sql: Sql) {
        self.user.parameters.clear();
        let (asked, known) = (&self.user.asked, &self.known);
        let line = asked.lines.get(known.line);
        let of_line = |value: fn(&super::draw::Line) -> i64| line.map_or(0, value);
        for field in &self.statements[sql as usize].fields {
            match field {
                Field::Warehouse => self.user.parameters.integer(asked.warehouse),
                Field::District => self.user.parameters.integer(known.district),
                Field::Customer => self.user.parameters.integer(known.customer),
                Field::CustomerWarehouse => self.user.parameters.integer(asked.customer.warehouse),
                Field::CustomerDistrict => self.user.parameters.integer(asked.customer.district),
                Field::Name => {
                    let name = asked.customer.name;
                    self.user.parameters.text(|out| name.into_iter().for_each(|number| write_last_name(number, out)));
                }
                Field::Middle => self.user.parameters.integer((known.named + 1) / 2 - 1),
                Field::Order => self.user.parameters.integer(known.order),
                Field::LineCount => self.user.parameters.integer(asked.lines.len() as i64),
                Field::Local => self.user.parameters.integer(i64::from(asked.is_local())),
                Field::Number => self.user.parameters.integer(known.line as i64 + 1),
                Field::Item => self.user.parameters.integer(of_line(|line| line.item)),
                Field::Supply => self.user.parameters.integer(of_line(|line| line.supply)),
                Field::Quantity => self.user.parameters.integer(of_line(|line| line.quantity)),
                Field::Remote => {
                    self.user.parameters.integer(i64::from(of_line(|line| line.supply) != asked.warehouse))
                }
                Field::LineAmount => self.user.parameters.text(|out| write_cents(known.line_cents, out)),
                Field::Place => self.user.parameters.text(|out| out.extend_from_slice(&known.place)),
                Field::Amount => self.user.parameters.text(|out| write_cents(asked.cents, out)),
                Field::Places => self.user.parameters.text(|out| out.extend_from_slice(&known.places)),
                Field::Carrier => self.user.parameters.integer(asked.carrier),
                Field::Delivered => self.user.parameters.text(|out| out.extend_from_slice(&known.delivered)),
                Field::First => self.user.parameters.integer(known.order - LAST_ORDERS),
                Field::Threshold => self.user.parameters.integer(asked.threshold),
            }
        }
    }

    fn missing(&mut self, sent: Sql) -> Step {
        self.user.error.message.clear();
        let text = self.statements[sent as usize].template.numbered();
        self.user.error.message.push_str("a row that must be there is missing in the answer to ");
        self.user.error.message.push_str(text);
        Step::Abort
    }
}

impl Program for Statements {
    fn begin(&mut self, script: u32, random: Random, again: bool) {
        self.sent = None;
        self.user.begin(script, random, again);
        let district = if script == DELIVERY { 1 } else { self.user.asked.district };
        let Known { place, places, delivered, .. } = std::mem::take(&mut self.known);
        self.known =
            Known { place, places, delivered, district, customer: self.user.asked.customer.id, ..Known::default() };
    }

    fn step(&mut self, _now: Nanos, reply: Reply<'_>) -> Step {
        let next = match self.sent {
            None => Sql::Begin,
            Some(Sql::Commit) => {
                if self.user.script == DELIVERY {
                    self.user.tally.delivered(self.known.orders_delivered);
                }
                return Step::End;
            }
            Some(Sql::Rollback) => return Step::EndRolledBack,
            Some(sent) => match self.after(sent, reply) {
                Some(next) => next,
                None => return self.missing(sent),
            },
        };
        self.fill(next);
        self.sent = Some(next);
        Step::Send
    }

    fn statement(&self) -> Statement<'_> {
        let sql = self.sent.unwrap_or(Sql::Begin);
        self.user.statement(sql.id(), &self.statements[sql as usize].template, true)
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

fn keep(into: &mut Vec<u8>, text: &[u8]) {
    into.clear();
    into.extend_from_slice(text);
}
