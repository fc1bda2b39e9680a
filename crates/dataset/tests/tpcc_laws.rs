//! The values of the rows that are derived from TPC-C follow their laws, by chi-square; and another law is not taken for them.

use std::collections::BTreeMap;

use pgdyno_dataset::{DataSet, Table, TpccTables};
use pgdyno_workload::tpcc::{Profile, Routines, write_last_name};

const PROFILES: [Profile; 2] = [Profile::Hammerdb, Profile::Spec];
/// Standard deviations of a normal variable that a statistic may lie above its mean.
const FAR: f64 = 4.0;
/// Cells of fewer are taken together: the statistic's distribution is one of large cells.
const CELL_MIN: f64 = 8.0;

fn tables(profile: Profile, warehouses: u32) -> Vec<Table> {
    TpccTables { warehouses, profile, routines: Routines::Functions }.tables(11)
}

/// A column of all rows of some units.
fn column(made: &[Table], name: &str, place: usize, units: impl Iterator<Item = u64>) -> Vec<String> {
    let table = made.iter().find(|table| table.name == format!("pgdyno_tpcc.{name}")).expect("it is there");
    let mut out = Vec::new();
    units
        .flat_map(|unit| {
            out.clear();
            table.rows.write(unit, &mut out);
            let text = String::from_utf8(out.clone()).expect("rows are ASCII");
            text.lines().map(|line| line.split('\t').nth(place).expect("a column").to_owned()).collect::<Vec<_>>()
        })
        .collect()
}

/// Whether counts are those of a law, given as the share of each cell. By Wilson and Hilferty's approximation of chi-square.
fn follow(counts: &[u64], law: &[f64]) -> bool {
    assert_eq!(counts.len(), law.len());
    let all = counts.iter().sum::<u64>() as f64;
    assert!((law.iter().sum::<f64>() - 1.0).abs() < 1e-9, "a law has all shares");
    let (mut statistic, mut cells, mut rest) = (0.0, 0, (0.0, 0.0));
    for (count, share) in counts.iter().zip(law) {
        let (found, expected) = (*count as f64, share * all);
        if expected < CELL_MIN {
            rest = (rest.0 + found, rest.1 + expected);
        } else {
            statistic += (found - expected).powi(2) / expected;
            cells += 1;
        }
    }
    if rest.1 > 0.0 {
        statistic += (rest.0 - rest.1).powi(2) / rest.1;
        cells += 1;
    }
    let degrees = f64::from(cells - 1);
    let spread = 2.0 / (9.0 * degrees);
    statistic <= degrees * (1.0 - spread + FAR * spread.sqrt()).powi(3)
}

fn uniform(cells: usize) -> Vec<f64> {
    vec![1.0 / cells as f64; cells]
}

/// How often each number of cells from 0 appears.
fn counted(cells: usize, values: impl Iterator<Item = usize>) -> Vec<u64> {
    let mut found = vec![0; cells];
    values.for_each(|value| found[value] += 1);
    found
}

/// Ten-thousandths of a share such as `0.1700`.
fn parts(text: &str) -> usize {
    (text.parse::<f64>().expect("a number") * 10_000.0).round() as usize
}

/// NURand(255, 0, 999) with the constant 123, cell by cell.
fn names_law() -> Vec<f64> {
    let mut found = vec![0.0; 1_000];
    for (bits, draw) in (0..256).flat_map(|bits| (0..1_000).map(move |draw| (bits, draw))) {
        found[((bits | draw) + 123) % 1_000] += 1.0 / 256_000.0;
    }
    found
}

#[test]
fn last_names_are_all_there_once_and_the_others_drawn_by_nurand() {
    let numbers: BTreeMap<String, usize> = (0..1_000)
        .map(|number| {
            let mut out = Vec::new();
            write_last_name(number, &mut out);
            (String::from_utf8(out).expect("ASCII"), number as usize)
        })
        .collect();
    for profile in PROFILES {
        let made = tables(profile, 2);
        let names = |which: fn(u64) -> bool| {
            let units = (0..60_000).filter(move |unit| which(unit % 3_000));
            column(&made, "customer", 8, units).into_iter().map(|name| numbers[&name]).collect::<Vec<_>>()
        };
        let first = names(|place| place < 1_000);
        assert!(first.iter().enumerate().all(|(unit, name)| *name == unit % 1_000));
        let drawn = counted(1_000, names(|place| place >= 1_000).into_iter());
        assert_eq!(drawn.iter().sum::<u64>(), 40_000);
        assert!(follow(&drawn, &names_law()));
        assert!(!follow(&drawn, &uniform(1_000)), "a name drawn uniformly is another law");
    }
}

#[test]
fn credit_discounts_and_taxes_are_those_of_the_profile() {
    for profile in PROFILES {
        let hammerdb = profile == Profile::Hammerdb;
        let made = tables(profile, 500);
        let bad = column(&made, "customer", 15, 0..30_000).iter().filter(|credit| *credit == "BC").count() as u64;
        let (mine, other) = if hammerdb { (0.5, 0.1) } else { (0.1, 0.5) };
        assert!(follow(&[bad, 30_000 - bad], &[mine, 1.0 - mine]));
        assert!(!follow(&[bad, 30_000 - bad], &[other, 1.0 - other]));
        let discounts = column(&made, "customer", 17, 0..30_000);
        let taxes: Vec<String> =
            column(&made, "district", 4, 0..5_000).into_iter().chain(column(&made, "warehouse", 7, 0..500)).collect();
        if hammerdb {
            let (of_customers, of_places): (Vec<_>, Vec<_>) =
                (discounts.iter().map(|text| parts(text)).collect(), taxes.iter().map(|text| parts(text)).collect());
            assert!(of_customers.iter().chain(&of_places).all(|each| each % 100 == 0), "whole per cents");
            assert!(follow(&counted(51, of_customers.iter().map(|each| each / 100)), &uniform(51)));
            assert!(of_places.iter().all(|each| (1_000..=2_000).contains(each)));
            assert!(follow(&counted(11, of_places.iter().map(|each| each / 100 - 10)), &uniform(11)));
        } else {
            // 0 to 5,000 and 0 to 2,000 ten-thousandths: the last cell has one more.
            for (values, most) in [(&discounts, 5_000), (&taxes, 2_000)] {
                let cells = most / 100;
                let mut law = vec![100.0 / (most + 1) as f64; cells];
                law[cells - 1] = 101.0 / (most + 1) as f64;
                let found = counted(cells, values.iter().map(|text| (parts(text) / 100).min(cells - 1)));
                assert!(follow(&found, &law));
            }
        }
    }
}

#[test]
fn the_customer_of_an_order_is_a_permutations_or_one_of_those_not_yet_reached() {
    let law_of = |order: u64| {
        // Tenths of the customers from the order's number to 3,000.
        let left = 3_001 - order;
        (0..10).map(move |tenth| ((tenth + 1) * left / 10 - tenth * left / 10) as f64)
    };
    let tenth = |order: u64, customer: u64| {
        let (left, place) = (3_001 - order, customer - order);
        (0..10).find(|tenth| place < (tenth + 1) * left / 10).expect("it is one of them") as usize
    };
    let units = || (0..60_000).filter(|unit| unit % 3_000 < 2_900);
    let made = tables(Profile::Hammerdb, 2);
    let customers: Vec<u64> =
        column(&made, "orders", 3, units()).into_iter().map(|text| text.parse().expect("a number")).collect();
    assert!(units().zip(&customers).all(|(unit, customer)| (unit % 3_000 + 1..=3_000).contains(customer)));
    let found = counted(10, units().zip(&customers).map(|(unit, customer)| tenth(unit % 3_000 + 1, *customer)));
    let mut law = [0.0; 10];
    for order in units().map(|unit| unit % 3_000 + 1) {
        law.iter_mut().zip(law_of(order)).for_each(|(sum, share)| *sum += share / (3_001 - order) as f64);
    }
    let all = law.iter().sum::<f64>();
    assert!(follow(&found, &law.iter().map(|sum| sum / all).collect::<Vec<_>>()));
    // A permutation, as the specification has it, is uniform over all of them.
    let thirds = |profile| {
        let made = tables(profile, 2);
        let drawn = column(&made, "orders", 3, (0..60_000).filter(|unit| unit % 3_000 < 1_000));
        counted(3, drawn.into_iter().map(|text| (text.parse::<usize>().expect("a number") - 1) / 1_000))
    };
    assert!(follow(&thirds(Profile::Spec), &uniform(3)));
    assert!(!follow(&thirds(Profile::Hammerdb), &uniform(3)));
}
