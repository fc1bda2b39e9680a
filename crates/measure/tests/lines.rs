//! The lines are those that the Python side is tested with: `tests/workload/driver_lines.jsonl`.
//!
//! When a line changes, `PGDYNO_WRITE_LINES=1 cargo test -p pgdyno-measure` writes the file again, and
//! `tests/workload/test_native_record.py` says whether it is still understood.

use std::collections::BTreeMap;

use pgdyno_measure::*;
use pgdyno_workload::{Failure, Groups, ScriptInfo, SqlState, Template, Transaction, Verdict};
use serde_json::{Value, json};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/workload/driver_lines.jsonl");
const SECOND_NS: u64 = 1_000_000_000;

/// A run of two seconds after a warm-up of one, with one failure.
fn lines() -> Vec<u8> {
    let scripts = [ScriptInfo::new("select-only", 3), ScriptInfo::new("simple-update", 1)];
    let groups = Groups::each(&[Template::new("SELECT 1")]);
    let mut out = Vec::new();
    let server_version = Some("18.6".to_owned());
    say(
        &mut out,
        &Line::Ready(Ready { clients: 2, connect_ns: 4_000_000, server_version, begin_ns: Some(0), seed: 1 }),
    );
    let mut whole = Record::new(2, 1, SECOND_NS);
    for second in 0..3 {
        let record = record(second * SECOND_NS);
        let stretch = record.stretch(&scripts, &groups, record.begin_ns, record.end_ns);
        say(&mut out, &Line::Second(Box::new(Second { stretch, warmup: second == 0 })));
        if second > 0 {
            whole.add(&record);
        }
    }
    let ended_by = Some(EndedBy {
        message: "the server refused (23505): duplicate key".to_owned(),
        remedy: "look at the server's log".to_owned(),
        code: "drive.statement.refused".to_owned(),
        data: json!({"sqlstate": "23505", "script": "simple-update", "line": 2}),
        refused: Some(Refused {
            script: "simple-update".to_owned(),
            line: Some(2),
            statement: None,
            sqlstate: "23505".to_owned(),
        }),
    });
    let summary = Summary {
        stretch: whole.stretch(&scripts, &groups, SECOND_NS, whole.end_ns),
        tps: 2.0,
        qps: 1.0,
        connect_ns: 4_000_000,
        begin_late_ns: 50_000,
        woke_late_ns: 60_000,
        scheduled_with_warmup: 9,
        settled_in_warmup: 3,
        process_user_ns: 2_000,
        process_system_ns: 1_000,
        clients_disconnected: 0,
        reconnects_failed: BTreeMap::from([("53300".to_owned(), 2)]),
        reconnect_error: Some("the server refused (53300): too many connections".to_owned()),
        inputs: BTreeMap::from([("payments", 3)]),
        ended_by,
        unit: "us",
    };
    say(&mut out, &Line::Summary(Box::new(summary)));
    out
}

fn record(begin_ns: u64) -> Record {
    let mut record = Record::new(2, 1, begin_ns);
    let ends = [Verdict::Succeeded, Verdict::Succeeded, Verdict::Failed(Failure::Sql(SqlState::UNIQUE_VIOLATION))];
    for (script, verdict) in [0, 1, 1].into_iter().zip(ends) {
        let done = Transaction { script, ordinal: 0, scheduled: begin_ns, started: begin_ns, tries: 1, verdict };
        record.transaction(begin_ns + 100_000, &done);
    }
    record.statement(0, 100_000);
    record.wake(2_000);
    record.cpu_ns = 500;
    record.end_ns = begin_ns + SECOND_NS;
    record
}

/// A document without the bytes of its histograms: how they are compressed is the library's.
fn without_bytes(mut document: Value) -> Value {
    match &mut document {
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                let encoded = name.ends_with("_us") && value.is_string();
                *value = if encoded { Value::from("histogram") } else { without_bytes(value.take()) };
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| *value = without_bytes(value.take())),
        _ => {}
    }
    document
}

fn read(text: &[u8]) -> Vec<Value> {
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| without_bytes(serde_json::from_slice(line).expect("a line is a document"))).collect()
}

#[test]
fn the_lines_are_those_that_the_python_side_is_tested_with() {
    let made = lines();
    if std::env::var_os("PGDYNO_WRITE_LINES").is_some() {
        std::fs::write(FILE, &made).expect("the file can be written");
    }
    let known = std::fs::read(FILE).expect("the file is there");
    assert_eq!(read(&made), read(&known), "see the head of this test");
}
