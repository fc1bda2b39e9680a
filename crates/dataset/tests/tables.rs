//! The tables that benchmarks begin with.

use pgdyno_dataset::{DataSet, PgbenchTables, Rows, SysbenchTables, Table, Tables};
use pgdyno_workload::keys::SysbenchKeys;
use proptest::prelude::*;

fn pgbench(scale: u32) -> PgbenchTables {
    PgbenchTables { scale, fillfactor: 100, foreign_keys: false, tablespace: None, index_tablespace: None }
}

fn sysbench(tables: u32, rows: u64) -> SysbenchTables {
    SysbenchTables { tables, rows, auto_inc: true, secondary_index: true, keys: SysbenchKeys::Special }
}

fn named(set: &dyn DataSet, name: &str) -> Table {
    seeded(set, 1, name)
}

fn seeded(set: &dyn DataSet, seed: u64, name: &str) -> Table {
    set.tables(seed).into_iter().find(|table| table.name == name).expect("the set has this table")
}

fn line(table: &Table, row: u64) -> String {
    let mut out = Vec::new();
    assert_eq!(table.rows.write(row, &mut out), 1);
    String::from_utf8(out).expect("rows are ASCII")
}

#[test]
fn pgbench_has_its_rows_in_its_order() {
    let set = pgbench(3);
    let rows: Vec<(String, u64)> = set.tables(1).into_iter().map(|table| (table.name, table.rows.units())).collect();
    let wanted =
        [("pgbench_accounts", 300_000), ("pgbench_tellers", 30), ("pgbench_branches", 3), ("pgbench_history", 0)];
    assert_eq!(rows, wanted.map(|(name, rows)| (name.to_owned(), rows)));
    let accounts = named(&set, "pgbench_accounts");
    assert_eq!(line(&accounts, 0), "1\t1\t0\t\n");
    assert_eq!(line(&accounts, 99_999), "100000\t1\t0\t\n");
    assert_eq!(line(&accounts, 100_000), "100001\t2\t0\t\n");
    let tellers = named(&set, "pgbench_tellers");
    assert_eq!((line(&tellers, 9), line(&tellers, 10)), ("10\t1\t0\t\\N\n".into(), "11\t2\t0\t\\N\n".into()));
    assert_eq!(line(&named(&set, "pgbench_branches"), 2), "3\t0\t\\N\n");
}

#[test]
fn accounts_are_bigint_from_the_scale_on_from_which_pgbench_makes_them_so() {
    let aid = |scale| {
        let set = pgbench(scale);
        ["pgbench_accounts", "pgbench_history"].map(|name| named(&set, name).create.contains("aid bigint"))
    };
    assert_eq!((aid(19_999), aid(20_000)), ([false; 2], [true; 2]));
}

#[test]
fn places_fill_factor_and_foreign_keys_are_where_pgbench_has_them() {
    let set = PgbenchTables {
        fillfactor: 80,
        foreign_keys: true,
        tablespace: Some("fast".to_owned()),
        index_tablespace: Some("odd \"name".to_owned()),
        ..pgbench(1)
    };
    let tables = set.tables(1);
    assert!(tables.iter().all(|table| table.create.ends_with("TABLESPACE \"fast\"")));
    let filled: Vec<bool> = tables.iter().map(|table| table.create.contains("fillfactor = 80")).collect();
    assert_eq!(filled, [true, true, true, false], "not the history");
    let keys: Vec<&str> = tables.iter().filter_map(|table| table.primary_key.as_deref()).collect();
    assert!(keys.len() == 3 && keys.iter().all(|key| key.ends_with("USING INDEX TABLESPACE \"odd \"\"name\"")));
    let counts: Vec<usize> = tables.iter().map(|table| table.foreign_keys.len()).collect();
    assert_eq!(counts, [1, 1, 0, 3]);
}

#[test]
fn sysbench_makes_tables_by_number_with_a_sequence_and_an_index() {
    let set = sysbench(2, 10);
    let table = named(&set, "sbtest2");
    assert!(table.create.starts_with("CREATE TABLE sbtest2 (id SERIAL, k INTEGER DEFAULT '0' NOT NULL,"));
    assert_eq!(table.after_rows, ["SELECT setval('sbtest2_id_seq', 10)"]);
    assert_eq!(table.indexes, ["CREATE INDEX k_2 ON sbtest2(k)"]);
    assert_eq!(set.drops(), ["DROP TABLE IF EXISTS sbtest1", "DROP TABLE IF EXISTS sbtest2"]);
    let plain = SysbenchTables { auto_inc: false, secondary_index: false, ..sysbench(1, 10) };
    let table = named(&plain, "sbtest1");
    assert!(table.create.contains("id INTEGER NOT NULL"));
    assert!(table.after_rows.is_empty() && table.indexes.is_empty());
}

#[test]
fn k_has_the_distribution_that_was_asked_for() {
    const ROWS: u64 = 20_000;
    let share = |keys, range: std::ops::RangeInclusive<i64>| {
        let table = seeded(&SysbenchTables { keys, ..sysbench(1, ROWS) }, 7, "sbtest1");
        let k = |row| line(&table, row).split('\t').nth(1).unwrap().parse::<i64>().unwrap();
        let values: Vec<i64> = (0..ROWS).map(k).collect();
        assert!(values.iter().all(|k| (1..=ROWS as i64).contains(k)));
        values.iter().filter(|k| range.contains(k)).count() as f64 / ROWS as f64
    };
    // The hot band of `special`, 0.4975 to 0.5050 of the table, with the part of the bell that lies in it.
    let band = 9_950..=10_101;
    let special = share(SysbenchKeys::Special, band.clone());
    let uniform = share(SysbenchKeys::Uniform, band);
    // Five standard deviations of 20,000 draws: 0.015 around 0.75, and 0.003 around 0.0076.
    assert!((0.735..0.78).contains(&special), "{special}");
    assert!((0.004..0.011).contains(&uniform), "{uniform}");
}

fn read(tables: &str) -> Tables {
    serde_json::from_str(tables).expect("it can be read")
}

#[test]
fn what_is_left_open_is_as_the_originals_have_it() {
    let pgbench = read("{\"pgbench\": {\"scale\": 3}}");
    assert!(pgbench.set().check().is_ok());
    assert_eq!(pgbench.set().tables(1)[0].rows.units(), 300_000);
    let tables = read("{\"sysbench\": {\"tables\": 2, \"rows\": 5}}").set().tables(1);
    assert!(tables[0].create.contains("SERIAL") && tables[1].indexes.len() == 1);
}

#[test]
fn what_cannot_be_made_is_refused() {
    for tables in [
        "{\"pgbench\": {\"scale\": 0}}",
        "{\"pgbench\": {\"scale\": 1, \"fillfactor\": 9}}",
        "{\"sysbench\": {\"tables\": 0, \"rows\": 1}}",
        "{\"sysbench\": {\"tables\": 1, \"rows\": 2147483648}}",
    ] {
        assert!(read(tables).set().check().is_err(), "{tables}");
    }
    let unknown = serde_json::from_str::<Tables>("{\"pgbench\": {\"scale\": 1, \"size\": 2}}");
    assert!(unknown.is_err_and(|error| error.to_string().contains("size")));
}

/// Orders of one to three lines each.
#[derive(Debug)]
struct Orders;

impl Rows for Orders {
    fn units(&self) -> u64 {
        1_000
    }

    fn write(&self, unit: u64, out: &mut Vec<u8>) -> u64 {
        let lines = unit % 3 + 1;
        (0..lines).for_each(|line| out.extend_from_slice(format!("{unit}\t{line}\n").as_bytes()));
        lines
    }
}

#[test]
fn units_are_written_in_pieces_and_their_rows_are_counted() {
    let mut whole = Vec::new();
    let rows: u64 = (0..Orders.units()).map(|unit| Orders.write(unit, &mut whole)).sum();
    let (mut units, mut pieces, mut counted) = (0..Orders.units(), Vec::new(), 0);
    while !units.is_empty() {
        let mut piece = Vec::new();
        counted += Orders.write_until(100, &mut units, &mut piece);
        assert!(piece.len() >= 100 || units.is_empty());
        pieces.extend_from_slice(&piece);
    }
    assert_eq!((counted, pieces), (rows, whole));
}

proptest! {
    #[test]
    fn a_row_depends_on_nothing_but_its_number_its_table_and_the_seed(
        seed in any::<u64>(), row in 0_u64..1_000_000, other in 0_u64..1_000_000,
    ) {
        let set = sysbench(2, 1_000_000);
        let (first, second) = (seeded(&set, seed, "sbtest1"), seeded(&set, seed, "sbtest2"));
        let before = line(&first, row);
        line(&first, other);
        prop_assert_eq!(&line(&first, row), &before);
        prop_assert_ne!(line(&second, row), before.clone());
        prop_assert_ne!(line(&seeded(&set, seed ^ 1, "sbtest1"), row), before);
    }

    #[test]
    fn texts_are_groups_of_eleven_digits(seed in any::<u64>(), row in 0_u64..100) {
        let line = line(&seeded(&sysbench(1, 100), seed, "sbtest1"), row);
        let fields: Vec<&str> = line.trim_end_matches('\n').split('\t').collect();
        prop_assert_eq!(fields[0].parse::<u64>().unwrap(), row + 1);
        for (text, groups, length) in [(fields[2], 10, 119), (fields[3], 5, 59)] {
            prop_assert_eq!(text.len(), length);
            prop_assert_eq!(text.split('-').count(), groups);
            prop_assert!(text.split('-').all(|g| g.len() == 11 && g.bytes().all(|digit| digit.is_ascii_digit())));
        }
    }
}
