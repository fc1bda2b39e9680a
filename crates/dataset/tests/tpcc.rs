//! The rows of the tables that are derived from TPC-C.

use pgdyno_dataset::{DataSet, Table, TpccTables};
use pgdyno_workload::tpcc::{Profile, Routines};

fn tables(profile: Profile, seed: u64) -> Vec<Table> {
    TpccTables { warehouses: 2, profile, routines: Routines::Functions }.tables(seed)
}

fn rows(tables: &[Table], name: &str, unit: u64) -> Vec<Vec<String>> {
    let table = tables.iter().find(|table| table.name == format!("pgdyno_tpcc.{name}")).expect("it is there");
    let mut out = Vec::new();
    let count = table.rows.write(unit, &mut out);
    let text = String::from_utf8(out).expect("rows are ASCII");
    let found: Vec<Vec<String>> = text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect();
    assert_eq!(found.len() as u64, count);
    found
}

#[test]
fn an_order_has_as_many_lines_as_it_says() {
    for profile in [Profile::Hammerdb, Profile::Spec] {
        let made = tables(profile, 1);
        for unit in (0..60).chain(2_080..2_120).chain(29_990..30_010) {
            let order = &rows(&made, "orders", unit)[0];
            let lines = rows(&made, "order_line", unit);
            assert_eq!(order[6], lines.len().to_string());
            let open = order[5] == "\\N";
            assert_eq!(open, unit % 3_000 + 1 > 2_100);
            for line in &lines {
                assert_eq!((&line[1], &line[2], &line[5]), (&order[1], &order[2], &order[4]));
                assert_eq!(line[0] == "\\N", open);
                assert_eq!(line[8] == "0.00", open == (profile == Profile::Hammerdb), "{line:?}");
            }
        }
        assert_eq!(rows(&made, "orders", 30_000)[0][2], "2", "the second warehouse follows the first");
    }
}

#[test]
fn the_customers_of_a_districts_orders_are_a_permutation_where_tpc_c_says_so() {
    let customers = |profile| {
        let made = tables(profile, 3);
        let drawn = (3_000..6_000).map(|unit| rows(&made, "orders", unit)[0][3].parse::<u32>().unwrap());
        drawn.collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(customers(Profile::Spec), (1..=3_000).collect());
    // 1,500.5 are expected.
    assert!((1_400..1_600).contains(&customers(Profile::Hammerdb).len()));
}

#[test]
fn a_seed_decides_every_row_and_another_one_gives_others() {
    for name in ["stock", "customer", "item", "order_line", "history", "warehouse", "district"] {
        let made = |seed| rows(&tables(Profile::Spec, seed), name, 1);
        assert_eq!(made(1), made(1));
        assert_ne!(made(1), made(2), "{name}");
    }
}

#[test]
fn what_cannot_be_made_is_refused() {
    for (asked, word) in [
        (r#"{"warehouses": 0}"#, "0 warehouses"),
        (r#"{"warehouses": 1, "profile": "spec", "routines": "procedures"}"#, "no procedures"),
    ] {
        let refusal = serde_json::from_str::<TpccTables>(asked).unwrap().check().unwrap_err();
        assert!(refusal.message.contains(word), "{asked}: {refusal}");
    }
}
