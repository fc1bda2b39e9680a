//! Orders with their lines. The last 900 of a district are not delivered.

use pgdyno_workload::tpcc::{CUSTOMERS, DISTRICTS, ITEMS, ORDERS, Profile};
use pgdyno_workload::{Purpose, Random, permute};

use super::line::{INSTANT, Line};
use super::origin::Origin;
use crate::rows::Rows;

const STREAM_ORDER: u32 = 7;
const STREAM_LINES: u32 = 8;
const STREAM_CUSTOMERS: u32 = 9;
/// Orders of a district that are delivered.
pub(super) const DELIVERED: i64 = 2_100;
/// Those that are not.
pub(super) const OPEN: i64 = ORDERS - DELIVERED;
const LINES_MIN: i64 = 5;
const LINES_MAX: i64 = 15;
/// Of each line that is loaded.
const QUANTITY: i64 = 5;

/// An order a unit.
#[derive(Debug)]
pub(super) struct Orders(pub Origin);

/// An order that is not delivered a unit.
#[derive(Debug)]
pub(super) struct NewOrders(pub Origin);

/// An order with all its lines a unit.
#[derive(Debug)]
pub(super) struct OrderLines(pub Origin);

/// What an order and its lines share.
struct Order {
    warehouse: i64,
    district: i64,
    id: i64,
    customer: i64,
    carrier: Option<i64>,
    lines: i64,
}

impl Order {
    fn of(origin: &Origin, unit: u64) -> Self {
        let mut random = Random::derived(origin.seed, Purpose::Rows, STREAM_ORDER, unit);
        let number = unit as i64;
        let (district, id) = (number / ORDERS, number % ORDERS + 1);
        let customer = match origin.profile {
            // Its shuffle takes any of those that are left, and never takes it away.
            Profile::Hammerdb => random.between(id, CUSTOMERS),
            Profile::Spec => {
                let mut key = Random::derived(origin.seed, Purpose::Rows, STREAM_CUSTOMERS, district as u64);
                permute(id - 1, CUSTOMERS, key.bits() as i64) + 1
            }
        };
        Self {
            warehouse: district / DISTRICTS + 1,
            district: district % DISTRICTS + 1,
            id,
            customer,
            lines: random.between(LINES_MIN, LINES_MAX),
            carrier: (id <= DELIVERED).then(|| random.between(1, 10)),
        }
    }
}

fn units(origin: &Origin) -> u64 {
    origin.warehouses * (DISTRICTS * ORDERS).unsigned_abs()
}

impl Rows for Orders {
    fn units(&self) -> u64 {
        units(&self.0)
    }

    fn write(&self, unit: u64, out: &mut Vec<u8>) -> u64 {
        let order = Order::of(&self.0, unit);
        let mut line = Line::new(out);
        line.fixed(INSTANT).integer(order.id).integer(order.warehouse).integer(order.customer).integer(order.district);
        match order.carrier {
            Some(carrier) => line.integer(carrier),
            None => line.null(),
        };
        line.integer(order.lines).integer(1).end();
        1
    }
}

impl Rows for NewOrders {
    fn units(&self) -> u64 {
        self.0.warehouses * (DISTRICTS * OPEN).unsigned_abs()
    }

    fn write(&self, unit: u64, out: &mut Vec<u8>) -> u64 {
        let number = unit as i64;
        let district = number / OPEN;
        let mut line = Line::new(out);
        line.integer(district / DISTRICTS + 1).integer(number % OPEN + DELIVERED + 1).integer(district % DISTRICTS + 1);
        line.end();
        1
    }
}

impl Rows for OrderLines {
    fn units(&self) -> u64 {
        units(&self.0)
    }

    fn write(&self, unit: u64, out: &mut Vec<u8>) -> u64 {
        let order = Order::of(&self.0, unit);
        let mut random = Random::derived(self.0.seed, Purpose::Rows, STREAM_LINES, unit);
        for number in 1..=order.lines {
            let mut line = Line::new(out);
            let delivered = order.carrier.is_some();
            if delivered {
                line.fixed(INSTANT)
            } else {
                line.null()
            };
            line.integer(order.id).integer(order.warehouse).integer(random.between(1, ITEMS)).integer(order.warehouse);
            line.integer(order.district).integer(number).integer(QUANTITY);
            let cents = match (self.0.profile, delivered) {
                (Profile::Hammerdb, true) => random.between(10, 10_000),
                (Profile::Spec, false) => random.between(1, 999_999),
                _ => 0,
            };
            line.cents(cents).text(&mut random, 24, 24).end();
        }
        order.lines.unsigned_abs()
    }

    /// Ten lines on average.
    fn rows_expected(&self) -> u64 {
        self.units() * (LINES_MIN + LINES_MAX).unsigned_abs() / 2
    }
}
