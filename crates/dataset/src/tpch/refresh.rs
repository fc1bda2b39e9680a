//! What the refresh functions insert and delete (clauses 2.5 and 2.6), byte for byte as `dbgen -U` writes it.
//!
//! The orders of a set are those that follow the base data, and those of the sets before, in every random stream; their keys are
//! gaps that the keys of the base data leave (clause 4.2.3). A set deletes as many orders of the base data as it inserts.

use std::io::Write;
use std::sync::Arc;

use pgdyno_workload::Refusal;
use tpchgen::generators::{LineItemGenerator, OrderGenerator};

use super::file::Ending;
use super::rows::write_row;
use super::scale::Scale;
use crate::file::DataFile;
use crate::rows::Rows;

/// Each set deletes about a thousandth of the orders.
pub const SETS_MAX: u32 = 1000;
/// From this number of sets on dbgen takes the next gap between keys.
const SETS_PER_GAP: u32 = 1000;
/// How far apart two gaps are.
const GAP: i64 = 8;

/// What of a set a file has.
#[derive(Clone, Copy, Debug)]
enum Part {
    Orders,
    Lines,
    Deleted,
}

impl Part {
    const ALL: [Self; 3] = [Self::Orders, Self::Lines, Self::Deleted];

    fn name(self) -> &'static str {
        match self {
            Self::Orders => "orders",
            Self::Lines => "lineitem",
            Self::Deleted => "delete",
        }
    }

    fn suffix(self, set: u32) -> String {
        match self {
            Self::Orders | Self::Lines => format!("tbl.u{set}"),
            Self::Deleted => set.to_string(),
        }
    }

    fn bytes_per_unit(self) -> u64 {
        match self {
            Self::Orders => 115,
            Self::Lines => 508,
            Self::Deleted => 8,
        }
    }
}

/// The files of the sets 1 to `sets`: `orders.tbl.u1`, `lineitem.tbl.u1` and `delete.1` of the first.
///
/// # Errors
/// A scale that dbgen cannot have ([`Scale::new`]), one so small that a set has no order, and more sets than delete everything.
pub fn refresh_files(scale: f64, sets: u32, ending: Ending) -> Result<Vec<DataFile>, Refusal> {
    let scale = Scale::new(scale)?;
    let orders = scale.orders_of_refresh();
    if orders == 0 {
        return Err(Refusal::new("--scale: a refresh set has no order at this scale", "give 0.007 or more"));
    }
    if !(1..=SETS_MAX).contains(&sets) {
        let why = format!("--updates: there are no {sets} sets; {SETS_MAX} delete all that there is");
        return Err(Refusal::new(why, format!("give 1 to {SETS_MAX}")));
    }
    let of_set = |set| Part::ALL.map(|part| file(scale, orders, set, part, ending));
    Ok((1..=sets).flat_map(of_set).collect())
}

fn file(scale: Scale, orders: u64, set: u32, part: Part, ending: Ending) -> DataFile {
    DataFile {
        name: part.name(),
        suffix: part.suffix(set).into(),
        head: None,
        bytes_per_row: part.bytes_per_unit(),
        rows: Arc::new(RefreshRows { scale, orders, set, part, ending }),
    }
}

/// The rows of one file. A unit is one of dbgen's parts of the orders, so small that a set has a whole number of them.
#[derive(Debug)]
struct RefreshRows {
    scale: Scale,
    orders: u64,
    set: u32,
    part: Part,
    ending: Ending,
}

impl RefreshRows {
    fn base_orders(&self) -> u64 {
        self.scale.count(1_500_000)
    }

    fn of_unit(&self) -> u64 {
        greatest_divisor(self.base_orders(), self.orders)
    }

    /// How many orders the sets before have.
    fn before(&self) -> u64 {
        u64::from(self.set - 1) * self.orders
    }

    /// The part that the generators are to make, and of how many.
    fn part_of(&self, unit: u64) -> (i32, i32) {
        let parts = self.base_orders() / self.of_unit();
        let part = parts + self.before() / self.of_unit() + unit + 1;
        let small = |number| i32::try_from(number).expect("150 million at scale 1,000");
        (small(part), small(parts))
    }

    /// The key of an order of the set, given its key among those that follow the base data.
    fn key(&self, found: i64) -> i64 {
        let gap = 1 + i64::from(self.set / SETS_PER_GAP);
        OrderGenerator::make_order_key(index_of(found) - self.base_orders() as i64) + gap * GAP
    }
}

impl Rows for RefreshRows {
    fn units(&self) -> u64 {
        self.orders / self.of_unit()
    }

    fn write(&self, unit: u64, out: &mut Vec<u8>) -> u64 {
        let (part, parts) = self.part_of(unit);
        let factor = self.scale.factor();
        match self.part {
            Part::Orders => OrderGenerator::new(factor, part, parts)
                .iter()
                .map(|mut order| {
                    order.o_orderkey = self.key(order.o_orderkey);
                    write_row(&order, self.ending, out);
                })
                .count() as u64,
            Part::Lines => LineItemGenerator::new(factor, part, parts)
                .iter()
                .map(|mut line| {
                    line.l_orderkey = self.key(line.l_orderkey);
                    write_row(&line, self.ending, out);
                })
                .count() as u64,
            Part::Deleted => {
                let first = self.before() + unit * self.of_unit() + 1;
                for index in first..first + self.of_unit() {
                    let key = OrderGenerator::make_order_key(index as i64);
                    let separator = if self.ending == Ending::Separator { "|" } else { "" };
                    writeln!(out, "{key}{separator}").expect("memory takes all that is written");
                }
                self.of_unit()
            }
        }
    }

    fn rows_expected(&self) -> u64 {
        self.orders
    }
}

/// The inverse of dbgen's key: 8 of every 32 are in use.
fn index_of(key: i64) -> i64 {
    ((key >> 5) << 3) | (key & 7)
}

fn greatest_divisor(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { greatest_divisor(other, one % other) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_lead_back_to_their_numbers() {
        assert!((0..100_000).all(|index| index_of(OrderGenerator::make_order_key(index)) == index));
    }

    #[test]
    fn sets_follow_each_other_at_every_scale() {
        for thousandths in 7..2_000 {
            let scale = Scale::new(f64::from(thousandths) / 1000.0).unwrap();
            let orders = scale.orders_of_refresh();
            let of = |set| RefreshRows { scale, orders, set, part: Part::Orders, ending: Ending::Copy };
            assert_eq!(of(1).units() * of(1).of_unit(), orders);
            let (first, parts) = of(1).part_of(0);
            assert_eq!(first, parts + 1);
            assert_eq!(of(3).part_of(0).0, of(2).part_of(of(2).units()).0);
        }
    }
}
