//! sysbench's tests: what they send, judged by the scripts of 1.0.20 and the legacy one.

use crate::host::{Host, Run, drive};
use pgdyno_workload::keys::SysbenchKeys;
use pgdyno_workload::*;

fn run(settings: Sysbench, client: u32, transactions: u64) -> Run {
    let workload = settings.workload();
    let identity = Identity { seed: 3, client, transactions_max: Some(transactions), retries: Retries::SYSBENCH };
    drive(&workload, &Host::default(), identity, &mut Arrivals::new(Pattern::Closed(Think::None), 3, 0))
}

fn test(test: SysbenchTest) -> Vec<String> {
    run(Sysbench::new(test, 1), 0, 1).sent
}

/// The statement without what differs between executions: numbers and texts become `?`.
fn shape(sql: &str) -> String {
    let mut shape = String::new();
    let mut quoted = false;
    for c in sql.replace("sbtest", "T").chars() {
        match c {
            '\'' => {
                quoted = !quoted;
                if quoted {
                    shape.push('?');
                }
            }
            _ if quoted => {}
            c if c.is_ascii_digit() && shape.ends_with('?') => {}
            c if c.is_ascii_digit() && !shape.ends_with('T') && !shape.ends_with("k+") => shape.push('?'),
            c => shape.push(c),
        }
    }
    shape
}

const QUERIES: [&str; 5] = [
    "SELECT c FROM T1 WHERE id=?",
    "SELECT c FROM T1 WHERE id BETWEEN ? AND ?",
    "SELECT SUM(k) FROM T1 WHERE id BETWEEN ? AND ?",
    "SELECT c FROM T1 WHERE id BETWEEN ? AND ? ORDER BY c",
    "SELECT DISTINCT c FROM T1 WHERE id BETWEEN ? AND ? ORDER BY c",
];
const CHANGES: [&str; 4] = [
    "UPDATE T1 SET k=k+1 WHERE id=?",
    "UPDATE T1 SET c=? WHERE id=?",
    "DELETE FROM T1 WHERE id=?",
    "INSERT INTO T1 (id, k, c, pad) VALUES (?, ?, ?, ?)",
];

fn around<'a>(inner: &[&'a str]) -> Vec<&'a str> {
    [&["BEGIN"], inner, &["COMMIT"]].concat()
}

#[test]
fn each_test_sends_its_statements_in_their_order() {
    let points = [QUERIES[0]; 9];
    let queries = [&points[..], &QUERIES].concat();
    let points_of_k = format!("SELECT id, k, c, pad FROM T1 WHERE k IN ({}?)", "?, ".repeat(9));
    let ranges_of_k = format!("SELECT count(k) FROM T1 WHERE {}k BETWEEN ? AND ?", "k BETWEEN ? AND ? OR ".repeat(9));
    let expected: [(SysbenchTest, Vec<&str>); 10] = [
        (SysbenchTest::ReadWrite, around(&[&queries[..], &CHANGES].concat())),
        (SysbenchTest::ReadOnly, around(&queries)),
        (SysbenchTest::WriteOnly, around(&CHANGES)),
        (SysbenchTest::PointSelect, vec![QUERIES[0]]),
        (SysbenchTest::Insert, vec!["INSERT INTO T1 (k, c, pad) VALUES (?, ?, ?)"]),
        (SysbenchTest::Delete, vec![CHANGES[2]]),
        (SysbenchTest::UpdateIndex, vec![CHANGES[0]]),
        (SysbenchTest::UpdateNonIndex, vec![CHANGES[1]]),
        (SysbenchTest::RandomPoints, vec![&points_of_k]),
        (SysbenchTest::RandomRanges, vec![&ranges_of_k]),
    ];
    for (kind, statements) in expected {
        let shapes: Vec<String> = test(kind).iter().map(|sql| shape(sql)).collect();
        assert_eq!(shapes, statements, "{}", kind.name());
    }
}

#[test]
fn the_legacy_transaction_has_eighteen_statements_on_one_table() {
    let settings = Sysbench { tables: 50, ..Sysbench::new(SysbenchTest::Legacy, 1) };
    let run = run(settings, 0, 20);
    assert_eq!(run.sent.len(), 20 * 20, "18 statements, BEGIN and COMMIT");
    let table = |sql: &String| sql.split("sbtest").nth(1).map(|rest| rest.split(' ').next().unwrap().to_owned());
    let mut drawn: Vec<String> = Vec::new();
    for transaction in run.sent.chunks(20) {
        let mut tables: Vec<String> = transaction.iter().filter_map(table).collect();
        assert_eq!(tables.len(), 18);
        tables.dedup();
        assert_eq!(tables.len(), 1, "{tables:?}");
        drawn.extend(tables);
    }
    drawn.sort();
    drawn.dedup();
    assert!(drawn.len() > 10, "of 50 tables 20 transactions meet more than ten");
    assert!(run.sent.iter().any(|sql| sql.starts_with("SELECT SUM(K)")), "the legacy script writes K");
}

#[test]
fn groups_of_one_transaction_draw_their_own_tables() {
    let settings = Sysbench { tables: 1_000, ..Sysbench::new(SysbenchTest::ReadWrite, 1) };
    let sent = run(settings, 0, 1).sent;
    let mut tables: Vec<&str> =
        sent.iter().filter_map(|sql| sql.split("sbtest").nth(1)).map(|rest| rest.split(' ').next().unwrap()).collect();
    assert_eq!(tables.len(), 18);
    tables.dedup();
    // Ten point queries are one group; four ranges, two updates, and the row that goes and comes are seven.
    assert_eq!(tables.len(), 8, "{tables:?}");
}

#[test]
fn a_row_comes_back_with_its_id_and_texts_have_their_length() {
    let sent = test(SysbenchTest::WriteOnly);
    let deleted = sent[3].rsplit('=').next().unwrap();
    let values: Vec<&str> = sent[4].split_once("VALUES (").unwrap().1.trim_end_matches(')').split(", ").collect();
    assert_eq!(values[0], deleted);
    assert_eq!((values[2].len(), values[3].len()), (121, 61), "119 and 59 characters between apostrophes");
    let digits = |text: &str| text.trim_matches('\'').split('-').all(|group| group.len() == 11);
    assert!(digits(values[2]) && digits(values[3]));
    assert_eq!(values[2].matches('-').count(), 9);
}

#[test]
fn queries_are_counted_as_sysbench_counts_them() {
    let workload = Sysbench::new(SysbenchTest::ReadWrite, 1).workload();
    let shapes: Vec<(String, Class)> =
        workload.statements().iter().map(|template| (shape(template.numbered()), template.class())).collect();
    let count = |class| shapes.iter().filter(|(_, of)| *of == class).count();
    // Five kinds of queries, four of changes; BEGIN, COMMIT and ROLLBACK.
    assert_eq!((count(Class::Read), count(Class::Write), count(Class::Other)), (5, 4, 3));
}

#[test]
fn clients_of_the_tests_on_k_keep_to_their_part() {
    let settings =
        Sysbench { table_size: 1_000, keys: SysbenchKeys::Uniform, ..Sysbench::new(SysbenchTest::RandomPoints, 4) };
    let sent = run(settings, 2, 50).sent;
    let keys = sent.iter().flat_map(|sql| sql.split_once("IN (").unwrap().1.trim_end_matches(')').split(", "));
    let keys: Vec<i64> = keys.map(|key| key.parse().unwrap()).collect();
    assert_eq!(keys.len(), 500);
    assert!(keys.iter().all(|key| (500..=750).contains(key)));
}

#[test]
fn an_existing_key_is_tried_again_with_other_values() {
    let workload = Sysbench::new(SysbenchTest::Insert, 1).workload();
    let identity = Identity { seed: 3, client: 0, transactions_max: Some(1), retries: Retries::SYSBENCH };
    let mut arrivals = Arrivals::new(Pattern::Closed(Think::None), 3, 0);
    let run = drive(&workload, &Host::failing(0, SqlState::UNIQUE_VIOLATION), identity, &mut arrivals);
    assert_eq!((run.sent.len(), run.finished.len(), run.finished[0].1.tries), (2, 1, 2));
    assert_ne!(run.sent[0], run.sent[1]);
}

#[test]
fn options_change_how_often_a_statement_is_sent() {
    let changed = Sysbench {
        point_selects: 2,
        simple_ranges: 0,
        sum_ranges: 0,
        order_ranges: 3,
        index_updates: 0,
        delete_inserts: 2,
        range_size: 7,
        skip_trx: true,
        ..Sysbench::new(SysbenchTest::ReadWrite, 1)
    };
    let sent = run(changed, 0, 1).sent;
    let shapes: Vec<String> = sent.iter().map(|sql| shape(sql)).collect();
    let mut expected = vec![QUERIES[0], QUERIES[0], QUERIES[3], QUERIES[3], QUERIES[3], QUERIES[4], CHANGES[1]];
    expected.extend([CHANGES[2], CHANGES[3], CHANGES[2], CHANGES[3]]);
    assert_eq!(shapes, expected);
    let (first, last) = sent[2].split_once("BETWEEN ").unwrap().1.split_once(" AND ").unwrap();
    let number = |text: &str| text.split(' ').next().unwrap().parse::<i64>().unwrap();
    assert_eq!(number(last) - number(first), 6);
    // Its script asks for one row, whatever the option is.
    let settings = Sysbench { point_selects: 5, ..Sysbench::new(SysbenchTest::PointSelect, 1) };
    assert_eq!(run(settings, 0, 1).sent.len(), 1);
}

#[test]
fn the_tests_on_k_ask_for_as_many_values_as_they_are_told() {
    let new = |test| Sysbench { random_points: 3, number_of_ranges: 2, delta: 9, ..Sysbench::new(test, 1) };
    let points = run(new(SysbenchTest::RandomPoints), 0, 1).sent;
    assert!(points[0].ends_with(')') && points[0].matches(", ").count() == 3 + 2, "{points:?}");
    let ranges = run(new(SysbenchTest::RandomRanges), 0, 1).sent;
    let bounds: Vec<i64> = ranges[0].split(' ').filter_map(|word| word.parse().ok()).collect();
    assert_eq!(bounds.len(), 4);
    assert!(bounds.chunks(2).all(|pair| pair[1] - pair[0] == 9), "{ranges:?}");
}

#[test]
fn statistics_know_the_kinds_of_statements_and_not_the_tables() {
    let settings = Sysbench { tables: 12, ..Sysbench::new(SysbenchTest::ReadWrite, 1) };
    let workload = settings.workload();
    let groups = workload.groups();
    assert_eq!(groups.of.len(), workload.statements().len());
    assert_eq!(groups.texts.len(), 9 + 3, "nine kinds, BEGIN, COMMIT and ROLLBACK");
    let bare = |text: &str| text.replace(|c: char| c.is_ascii_digit(), "");
    for (template, group) in workload.statements().iter().zip(&groups.of) {
        let group = *group as usize;
        assert_eq!(bare(template.numbered()), bare(&groups.texts[group].replace("sbtestN", "sbtest")));
        assert_eq!(template.class(), groups.classes[group]);
    }
    let one = Sysbench::new(SysbenchTest::Legacy, 1).workload();
    let one = one.groups();
    assert!(one.texts.contains(&"UPDATE sbtest1 SET k=k+1 WHERE id=$1".to_owned()));
}
