//! Counts of what was asked for, from which the input audit of TPC-C (5.11, 9.2.2.5) is made.

use super::asked::Asked;
use super::draw::Terminal;
use super::names::{CUSTOMERS, DISTRICTS, ITEMS, LAST_NAMES};
use super::template::{NEW_ORDER, ORDER_STATUS, PAYMENT};

/// The counts of one client. A value of NURand without its constant is `U | V` of two uniform draws, so it is odd in three draws of
/// four; a uniform one in two.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    payments: u64,
    payments_remote: u64,
    payments_by_name: u64,
    order_statuses: u64,
    order_statuses_by_name: u64,
    names_odd: u64,
    customers: u64,
    customers_odd: u64,
    items: u64,
    items_odd: u64,
    orders_delivered: u64,
    districts_skipped: u64,
}

impl Tally {
    /// Counts the inputs of a transaction of that type.
    pub fn count(&mut self, script: u32, asked: &Asked, terminal: &Terminal) {
        let (constants, customer) = (terminal.constants(), &asked.customer);
        let by_name = u64::from(customer.name.is_some());
        match script {
            NEW_ORDER => {
                self.customers += 1;
                self.customers_odd += odd(customer.id - 1, constants.customer, CUSTOMERS);
                for line in asked.lines.iter().filter(|line| line.item <= ITEMS) {
                    self.items += 1;
                    self.items_odd += odd(line.item - 1, constants.item, ITEMS);
                }
                return;
            }
            PAYMENT => {
                self.payments += 1;
                self.payments_remote += u64::from(customer.warehouse != asked.warehouse);
                self.payments_by_name += by_name;
            }
            ORDER_STATUS => {
                self.order_statuses += 1;
                self.order_statuses_by_name += by_name;
            }
            _ => return,
        }
        self.names_odd += customer.name.map_or(0, |name| odd(name, constants.name, LAST_NAMES));
    }

    /// Counts a delivery that the server has done: districts without an open order are skipped.
    pub fn delivered(&mut self, orders: u64) {
        self.orders_delivered += orders;
        self.districts_skipped += DISTRICTS.unsigned_abs().saturating_sub(orders);
    }

    /// Each count with its name.
    pub fn counts(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("payments", self.payments),
            ("payments_remote", self.payments_remote),
            ("payments_by_name", self.payments_by_name),
            ("order_statuses", self.order_statuses),
            ("order_statuses_by_name", self.order_statuses_by_name),
            ("names_odd", self.names_odd),
            ("customers", self.customers),
            ("customers_odd", self.customers_odd),
            ("items", self.items),
            ("items_odd", self.items_odd),
            ("orders_delivered", self.orders_delivered),
            ("districts_skipped", self.districts_skipped),
        ]
    }
}

/// 1 where a value of NURand from 0 below `many`, an even number, is odd without its constant.
fn odd(value: i64, constant: i64, many: i64) -> u64 {
    (value - constant).rem_euclid(many).unsigned_abs() % 2
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::settings::{Profile, Routines, Settings};
    use super::*;
    use crate::random::Random;

    fn share(profile: Profile, script: u32, many: &str, all: &str) -> f64 {
        let settings = Settings {
            profile,
            routines: Routines::Functions,
            warehouses: 5,
            clients: 4,
            all_warehouses: false,
            keying: false,
            names_match: false,
            built: false,
        };
        let (terminal, mut random) = (Terminal::new(Arc::new(settings), 7, 0), Random::new(3));
        let (mut tally, mut asked) = (Tally::default(), Asked::default());
        for _ in 0..100_000 {
            terminal.ask(script, &mut random, &mut asked);
            tally.count(script, &asked, &terminal);
        }
        let counts = tally.counts();
        let of = |name: &str| counts.iter().find(|(found, _)| *found == name).map_or(0.0, |(_, count)| *count as f64);
        of(many) / of(all)
    }

    #[test]
    fn shares_are_those_of_the_specification() {
        use Profile::{Hammerdb, Spec};
        // Four standard errors of 60,000 draws are at most 0.8 points.
        for (profile, script, many, all, expected) in [
            (Spec, PAYMENT, "payments_remote", "payments", 0.15),
            (Hammerdb, PAYMENT, "payments_by_name", "payments", 0.60),
            (Hammerdb, PAYMENT, "names_odd", "payments_by_name", 0.75),
            (Spec, ORDER_STATUS, "order_statuses_by_name", "order_statuses", 0.60),
            (Spec, ORDER_STATUS, "names_odd", "order_statuses_by_name", 0.75),
            (Spec, NEW_ORDER, "customers_odd", "customers", 0.75),
            (Hammerdb, NEW_ORDER, "customers_odd", "customers", 0.50),
            (Spec, NEW_ORDER, "items_odd", "items", 0.75),
        ] {
            let found = share(profile, script, many, all);
            assert!((found - expected).abs() < 0.008, "{many}: {found}");
        }
    }

    #[test]
    fn a_delivery_without_all_its_orders_skipped_districts() {
        let mut tally = Tally::default();
        tally.delivered(10);
        tally.delivered(7);
        assert!(tally.counts().ends_with(&[("orders_delivered", 17), ("districts_skipped", 3)]));
    }
}
