//! How HammerDB 6.0 loads TPROC-H: an INSERT for every 1,000 suppliers, customers, parts and orders, and one for the suppliers or
//! the lines of these, each with a commit of its own, into tables without keys.
//!
//! A session has a contiguous share of each table. HammerDB converts dates by `to_timestamp`; here they are literals.

use std::sync::Arc;

use super::definitions::NAMES;
use super::file::TableFile;
use super::rows::TableRows;
use super::scale::Scale;
use crate::rows::Rows;
use crate::table::{Batch, Batches, PartBatches};

/// Tables in the order in which a session loads them: those of one phase in turns.
const PHASES: [&[&str]; 4] = [&["supplier"], &["customer"], &["part", "partsupp"], &["orders", "lineitem"]];
/// A unit of orders is 1,000 of them.
const SMALLEST: &str = "orders";

pub(super) fn batches(scale: Scale) -> Batches {
    let shares = Shares { units: NAMES.map(|name| units(name, scale)) };
    Batches {
        keys_first: false,
        inserts: true,
        parts: shares.of_table(SMALLEST),
        phases: PHASES.len() as u32,
        first: ["region", "nation"].map(|name| batch(name, 0, shares.of_table(name))).to_vec(),
        of: Arc::new(shares),
    }
}

fn units(name: &str, scale: Scale) -> u64 {
    TableRows::new(TableFile::named(name), scale, super::Ending::Copy).units()
}

/// How many units each table has. A part is a share of each, about 1,000 orders.
#[derive(Debug)]
struct Shares {
    units: [u64; NAMES.len()],
}

impl Shares {
    fn of_table(&self, name: &str) -> u64 {
        self.units[place(name)]
    }
}

impl PartBatches for Shares {
    fn of(&self, phase: u32, part: u64) -> Vec<Batch> {
        let tables = PHASES[phase as usize];
        // The first has units of 1,000 rows; what belongs to them is that share of the other's.
        let (parts, thousands) = (self.of_table(SMALLEST), self.of_table(tables[0]));
        let own = thousands * part / parts..thousands * (part + 1) / parts;
        let of = |thousand: u64, name: &&str| {
            let all = self.of_table(name);
            let (begin, end) = (all * thousand / thousands, all * (thousand + 1) / thousands);
            batch(name, begin, end - begin)
        };
        own.flat_map(|thousand| tables.iter().map(move |name| of(thousand, name))).collect()
    }
}

fn batch(name: &str, first: u64, units: u64) -> Batch {
    Batch { table: place(name), units: first..first + units }
}

fn place(name: &str) -> usize {
    NAMES.iter().position(|known| *known == name).expect("a table of the data set")
}

#[cfg(test)]
mod tests {
    use crate::table::DataSet;
    use crate::tpch::TpchTables;

    #[test]
    fn each_unit_is_inserted_once_and_scale_1_has_3_562_commits() {
        for (scale, commits) in [(0.01, 15 + 15 + 2 + 2 + 1 + 1 + 2), (0.043, 0), (1.0, 3_562)] {
            let set: TpchTables = serde_json::from_str(&format!(r#"{{"scale_factor": {scale}}}"#)).unwrap();
            let (tables, batches) = (set.tables(1), set.batches().unwrap());
            let parts = (0..batches.phases).flat_map(|phase| (0..batches.parts).map(move |part| (phase, part)));
            let mut all = batches.first.clone();
            all.extend(parts.flat_map(|(phase, part)| batches.of.of(phase, part)));
            assert!(commits == 0 || all.len() == commits, "{} at {scale}", all.len());
            for (number, table) in tables.iter().enumerate() {
                let mut units: Vec<_> =
                    all.iter().filter(|one| one.table == number).map(|one| one.units.clone()).collect();
                units.sort_by_key(|range| range.start);
                assert_eq!((units[0].start, units[units.len() - 1].end), (0, table.rows.units()), "{}", table.name);
                assert!(units.windows(2).all(|two| two[0].end == two[1].start), "{}", table.name);
            }
        }
    }
}
