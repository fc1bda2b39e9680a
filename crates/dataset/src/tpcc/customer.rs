//! Customers, and what each has paid before.

use pgdyno_workload::keys::nurand;
use pgdyno_workload::tpcc::{
    CUSTOMERS, DISTRICTS, LAST_NAMES, NAME_BITS, NAME_CONSTANT_LOADED, NAME_LAST, Profile, write_last_name,
};
use pgdyno_workload::{Purpose, Random};

use super::line::{INSTANT, Line};
use super::origin::Origin;
use crate::rows::Rows;

const STREAM_CUSTOMER: u32 = 5;
const STREAM_HISTORY: u32 = 6;
const LIMIT_CENTS: i64 = 5_000_000;
const PAID_CENTS: i64 = 1_000;

/// A customer a unit.
#[derive(Debug)]
pub(super) struct Customers(pub Origin);

/// The first payment of a customer a unit.
#[derive(Debug)]
pub(super) struct History(pub Origin);

/// (warehouse, district, customer) of a unit.
fn place(unit: u64) -> (i64, i64, i64) {
    let unit = unit as i64;
    (unit / CUSTOMERS / DISTRICTS + 1, unit / CUSTOMERS % DISTRICTS + 1, unit % CUSTOMERS + 1)
}

fn units(origin: &Origin) -> u64 {
    origin.warehouses * (DISTRICTS * CUSTOMERS).unsigned_abs()
}

impl Rows for Customers {
    fn units(&self) -> u64 {
        units(&self.0)
    }

    fn write(&self, unit: u64, out: &mut Vec<u8>) -> u64 {
        let mut random = Random::derived(self.0.seed, Purpose::Rows, STREAM_CUSTOMER, unit);
        let random = &mut random;
        let (warehouse, district, customer) = place(unit);
        let name = if customer <= LAST_NAMES {
            customer - 1
        } else {
            nurand(random, NAME_BITS, 0, NAME_LAST, NAME_CONSTANT_LOADED)
        };
        let (bad, discount) = match self.0.profile {
            Profile::Hammerdb => (random.between(1, 100) <= 50, random.between(0, 50) * 100),
            Profile::Spec => (random.between(1, 100) <= 10, random.between(0, 5_000)),
        };
        let mut line = Line::new(out);
        line.fixed(INSTANT).integer(customer).integer(warehouse).integer(district).integer(1).integer(0);
        line.text(random, 8, 16).fixed(b"OE").field(|out| write_last_name(name, out)).address(random);
        line.digits(random, 16).fixed(if bad { b"BC" } else { b"GC" });
        line.cents(LIMIT_CENTS).share(discount).cents(-PAID_CENTS).cents(PAID_CENTS).text(random, 300, 500).end();
        1
    }
}

impl Rows for History {
    fn units(&self) -> u64 {
        units(&self.0)
    }

    fn write(&self, unit: u64, out: &mut Vec<u8>) -> u64 {
        let mut random = Random::derived(self.0.seed, Purpose::Rows, STREAM_HISTORY, unit);
        let (warehouse, district, customer) = place(unit);
        let mut line = Line::new(out);
        line.fixed(INSTANT).integer(customer).integer(warehouse).integer(warehouse).integer(district).integer(district);
        line.cents(PAID_CENTS).text(&mut random, 12, 24).end();
        1
    }
}
