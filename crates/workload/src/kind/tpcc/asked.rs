//! What one transaction asks for, whoever sends it: one statement or many.

use super::draw::{Customer, Line, Terminal};
use super::names::DISTRICTS;
use super::settings::Profile;
use super::template::{DELIVERY, NEW_ORDER, ORDER_STATUS, PAYMENT, STOCK_LEVEL};
use crate::random::Random;

/// The inputs of one transaction. What its type does not have is left from one before.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    pub warehouse: i64,
    pub district: i64,
    /// Who orders (their number alone), pays, or asks for an order.
    pub customer: Customer,
    /// Lines of an order, where the client draws them.
    pub lines: Vec<Line>,
    /// How many lines the server is to draw, and the seed for them.
    pub drawn_there: (i64, i64),
    pub cents: i64,
    pub carrier: i64,
    pub threshold: i64,
}

impl Asked {
    /// Whether the home warehouse has all that is ordered.
    pub fn is_local(&self) -> bool {
        self.lines.iter().all(|line| line.supply == self.warehouse)
    }
}

impl Terminal {
    /// Draws the inputs of a transaction of that type.
    pub fn ask(&self, script: u32, random: &mut Random, asked: &mut Asked) {
        asked.warehouse = self.warehouse(random);
        match script {
            NEW_ORDER => self.order(random, asked),
            PAYMENT => {
                asked.district = random.between(1, DISTRICTS);
                asked.customer = self.payer(random, asked.warehouse, asked.district);
                asked.cents = self.amount_cents(random);
            }
            DELIVERY => asked.carrier = random.between(1, 10),
            STOCK_LEVEL => {
                asked.district = self.district();
                asked.threshold = random.between(10, 20);
            }
            ORDER_STATUS => {
                asked.district = random.between(1, DISTRICTS);
                asked.customer = self.customer(random, asked.warehouse, asked.district);
            }
            _ => unreachable!("there are five types"),
        }
    }

    /// HammerDB draws the items in the server. Its draws begin anew in each order with a seed from here, so that they are the same
    /// however often a session was lost.
    fn order(&self, random: &mut Random, asked: &mut Asked) {
        asked.district = random.between(1, DISTRICTS);
        let id = self.customer_id(random);
        asked.customer = Customer { warehouse: asked.warehouse, district: asked.district, id, name: None };
        if self.profile() == Profile::Hammerdb {
            let lines = random.between(5, 15);
            asked.drawn_there = (lines, random.between(0, i64::from(i32::MAX)));
        } else {
            self.lines(random, asked.warehouse, &mut asked.lines);
        }
    }
}
