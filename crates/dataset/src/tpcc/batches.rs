//! How HammerDB 6.0 loads TPROC-C: 762 commits a warehouse, into tables that have their primary keys.
//!
//! A session has some warehouses. It loads the stock and the districts of all of them, then their customers, then their orders.
//! What HammerDB inserts row by row, warehouses and districts, is a COPY of one row here.

use std::sync::Arc;

use pgdyno_workload::tpcc::{CUSTOMERS, DISTRICTS, ITEMS, ORDERS};

use super::definitions::NAMES;
use super::order::{DELIVERED, OPEN};
use crate::table::{Batch, Batches, PartBatches};

const CUSTOMERS_EACH: u64 = 1_000;
const ORDERS_EACH: u64 = 100;

pub(super) fn batches(warehouses: u64) -> Batches {
    Batches {
        keys_first: true,
        inserts: false,
        parts: warehouses,
        phases: 3,
        first: vec![batch("item", 0, ITEMS.unsigned_abs())],
        of: Arc::new(Warehouses),
    }
}

/// A part is a warehouse.
#[derive(Debug)]
struct Warehouses;

impl PartBatches for Warehouses {
    fn of(&self, phase: u32, warehouse: u64) -> Vec<Batch> {
        let districts = warehouse * DISTRICTS.unsigned_abs()..(warehouse + 1) * DISTRICTS.unsigned_abs();
        match phase {
            0 => {
                let items = ITEMS.unsigned_abs();
                let first = [batch("warehouse", warehouse, 1), batch("stock", warehouse * items, items)];
                first.into_iter().chain(districts.map(|district| batch("district", district, 1))).collect()
            }
            1 => districts.flat_map(customers).collect(),
            _ => districts.flat_map(orders).collect(),
        }
    }
}

fn customers(district: u64) -> Vec<Batch> {
    let all = CUSTOMERS.unsigned_abs();
    let first = (0..all).step_by(CUSTOMERS_EACH as usize).map(|first| district * all + first);
    first.flat_map(|first| ["customer", "history"].map(|name| batch(name, first, CUSTOMERS_EACH))).collect()
}

fn orders(district: u64) -> Vec<Batch> {
    let (all, delivered, open) = (ORDERS.unsigned_abs(), DELIVERED.unsigned_abs(), OPEN.unsigned_abs());
    let mut found = Vec::new();
    for first in (0..all).step_by(ORDERS_EACH as usize) {
        found.extend(["orders", "order_line"].map(|name| batch(name, district * all + first, ORDERS_EACH)));
        if first >= delivered {
            found.push(batch("new_order", district * open + first - delivered, ORDERS_EACH));
        }
    }
    found
}

fn batch(name: &str, first: u64, units: u64) -> Batch {
    let table = NAMES.iter().position(|known| *known == name).expect("a table of the data set");
    Batch { table, units: first..first + units }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::DataSet;
    use crate::tpcc::TpccTables;

    #[test]
    fn a_warehouse_has_762_commits_and_each_unit_is_written_once() {
        let set: TpccTables = serde_json::from_str(r#"{"warehouses": 2}"#).unwrap();
        let (tables, batches) = (set.tables(1), set.batches().unwrap());
        let mut all = batches.first.clone();
        for warehouse in 0..batches.parts {
            let of: Vec<Batch> = (0..batches.phases).flat_map(|phase| batches.of.of(phase, warehouse)).collect();
            assert_eq!(of.len(), 762);
            all.extend(of);
        }
        for (number, table) in tables.iter().enumerate() {
            let mut units: Vec<_> = all.iter().filter(|one| one.table == number).map(|one| one.units.clone()).collect();
            units.sort_by_key(|range| range.start);
            assert_eq!((units[0].start, units[units.len() - 1].end), (0, table.rows.units()), "{}", table.name);
            assert!(units.windows(2).all(|two| two[0].end == two[1].start), "{}", table.name);
        }
    }
}
