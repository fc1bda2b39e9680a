//! Warehouses and districts.

use pgdyno_workload::tpcc::{DISTRICTS, ORDERS, Profile};
use pgdyno_workload::{Purpose, Random};

use super::line::Line;
use super::origin::Origin;
use crate::rows::Rows;

const STREAM_WAREHOUSE: u32 = 1;
const STREAM_DISTRICT: u32 = 2;
/// What was paid in a district before, in cents: 3,000 customers paid 10 each.
const PAID_CENTS: i64 = 3_000_000;

/// A warehouse a unit.
#[derive(Debug)]
pub(super) struct Warehouses(pub Origin);

/// A district a unit.
#[derive(Debug)]
pub(super) struct Districts(pub Origin);

impl Rows for Warehouses {
    fn units(&self) -> u64 {
        self.0.warehouses
    }

    fn write(&self, unit: u64, out: &mut Vec<u8>) -> u64 {
        let mut random = Random::derived(self.0.seed, Purpose::Rows, STREAM_WAREHOUSE, unit);
        let mut line = Line::new(out);
        line.integer(unit as i64 + 1).text(&mut random, 6, 10).address(&mut random);
        line.share(tax(self.0.profile, &mut random)).cents(PAID_CENTS * DISTRICTS).end();
        1
    }
}

impl Rows for Districts {
    fn units(&self) -> u64 {
        self.0.warehouses * DISTRICTS.unsigned_abs()
    }

    fn write(&self, unit: u64, out: &mut Vec<u8>) -> u64 {
        let mut random = Random::derived(self.0.seed, Purpose::Rows, STREAM_DISTRICT, unit);
        let unit = unit as i64;
        let mut line = Line::new(out);
        line.integer(unit / DISTRICTS + 1).integer(ORDERS + 1).integer(unit % DISTRICTS + 1).cents(PAID_CENTS);
        line.share(tax(self.0.profile, &mut random)).text(&mut random, 6, 10).address(&mut random).end();
        1
    }
}

/// In ten-thousandths.
fn tax(profile: Profile, random: &mut Random) -> i64 {
    match profile {
        Profile::Hammerdb => random.between(10, 20) * 100,
        Profile::Spec => random.between(0, 2_000),
    }
}
