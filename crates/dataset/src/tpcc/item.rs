//! Items, and each warehouse's stock of them.

use pgdyno_workload::tpcc::{DISTRICTS, ITEMS, Profile};
use pgdyno_workload::{Purpose, Random};

use super::line::Line;
use super::origin::Origin;
use crate::rows::Rows;

const STREAM_ITEM: u32 = 3;
const STREAM_STOCK: u32 = 4;
/// HammerDB draws 10,000 rows of 100,000, and may draw one again: 1 − e^(−0.1) of them are marked.
const MARKED_HAMMERDB: u64 = 9_516;
const MARKED_SPEC: u64 = 10_000;

/// An item a unit.
#[derive(Debug)]
pub(super) struct Items(pub Origin);

/// An item in a warehouse a unit.
#[derive(Debug)]
pub(super) struct Stock(pub Origin);

impl Rows for Items {
    fn units(&self) -> u64 {
        ITEMS.unsigned_abs()
    }

    fn write(&self, unit: u64, out: &mut Vec<u8>) -> u64 {
        let mut random = Random::derived(self.0.seed, Purpose::Rows, STREAM_ITEM, unit);
        let mut line = Line::new(out);
        line.integer(unit as i64 + 1).integer(random.between(1, 10_000)).text(&mut random, 14, 24);
        line.cents(random.between(100, 10_000));
        marked(&mut line, self.0.profile, &mut random).end();
        1
    }
}

impl Rows for Stock {
    fn units(&self) -> u64 {
        self.0.warehouses * ITEMS.unsigned_abs()
    }

    fn write(&self, unit: u64, out: &mut Vec<u8>) -> u64 {
        let mut random = Random::derived(self.0.seed, Purpose::Rows, STREAM_STOCK, unit);
        let unit = unit as i64;
        let mut line = Line::new(out);
        line.integer(unit % ITEMS + 1).integer(unit / ITEMS + 1).integer(0).integer(random.between(10, 100));
        line.integer(0).integer(0);
        for _ in 0..DISTRICTS {
            line.text(&mut random, 24, 24);
        }
        marked(&mut line, self.0.profile, &mut random).end();
        1
    }
}

/// One row in about ten has the word.
fn marked<'a, 'b>(line: &'a mut Line<'b>, profile: Profile, random: &mut Random) -> &'a mut Line<'b> {
    match profile {
        Profile::Hammerdb => line.branded(random, MARKED_HAMMERDB, b"original", 9),
        Profile::Spec => line.branded(random, MARKED_SPEC, b"ORIGINAL", 8),
    }
}
