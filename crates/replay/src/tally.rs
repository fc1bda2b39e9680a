//! What came of the statements of a capture, each held against what was recorded of it.

use std::collections::BTreeMap;

use pgdyno_capture::{Call, Ending, shape};
use pgdyno_measure::Latency;
use serde_json::{Value, json};

use crate::link::Answer;

/// One hour; what takes longer is counted there.
const LATENCY_US_MAX: u64 = 3_600_000_000;
/// Statements that are told apart in errors and times; the others are one.
const SHAPES_MAX: usize = 5_000;
const OTHERS: &str = "(other statements)";

/// Statements of one shape.
#[derive(Default)]
struct Shape {
    calls: u64,
    us: u64,
    recorded_us: u64,
}

/// Counts of a replay, or of a part of it: they add up.
pub(crate) struct Tally {
    executed: u64,
    failed_as_recorded: u64,
    newly_failed: u64,
    /// Failed in production and not here.
    no_longer_failed: u64,
    pub not_begun: u64,
    left_out: BTreeMap<&'static str, u64>,
    /// Recorded time of all statements, and of those that were left out.
    recorded_us: u64,
    left_out_us: u64,
    /// New errors by statement and SQLSTATE.
    errors: BTreeMap<(String, String), u64>,
    shapes: BTreeMap<String, Shape>,
    /// From when a statement was due to its answer.
    response: Latency,
    /// From when it was sent to its answer, and the same in production.
    service: Latency,
    recorded: Latency,
    /// How late statements were sent, and how much of it is the driver's own.
    behind: Latency,
    late: Latency,
    pub sessions: u64,
    pub lost: u64,
}

impl Tally {
    pub(crate) fn new() -> Self {
        let latency = || Latency::new(LATENCY_US_MAX);
        Self {
            executed: 0,
            failed_as_recorded: 0,
            newly_failed: 0,
            no_longer_failed: 0,
            not_begun: 0,
            left_out: BTreeMap::new(),
            recorded_us: 0,
            left_out_us: 0,
            errors: BTreeMap::new(),
            shapes: BTreeMap::new(),
            response: latency(),
            service: latency(),
            recorded: latency(),
            behind: latency(),
            late: latency(),
            sessions: 0,
            lost: 0,
        }
    }

    /// A statement that is not sent.
    pub(crate) fn left_out(&mut self, call: &Call, why: &'static str) {
        *self.left_out.entry(why).or_default() += 1;
        let us = recorded(call).unwrap_or(0);
        (self.recorded_us, self.left_out_us) = (self.recorded_us + us, self.left_out_us + us);
    }

    /// How late a statement was sent. `own_us` is what nothing but the driver is to blame for.
    pub(crate) fn sent(&mut self, behind_us: u64, own_us: Option<u64>) {
        self.behind.record(behind_us);
        if let Some(own_us) = own_us {
            self.late.record(own_us);
        }
    }

    /// A statement that was sent, with how long it took since it was due and since it was sent.
    pub(crate) fn answered(&mut self, call: &Call, answer: Answer, response_us: u64, service_us: u64) {
        let before = recorded(call);
        self.recorded_us += before.unwrap_or(0);
        let was = match call.ending {
            Ending::Failed(state) => Some(state),
            Ending::Done(_) | Ending::Unknown => None,
        };
        match (answer, was) {
            (Answer::Done, None) => self.executed += 1,
            (Answer::Done, Some(_)) => self.no_longer_failed += 1,
            // A log without SQLSTATE says that it failed.
            (Answer::Failed(now), Some(was)) if now == was || &was == b"?????" => self.failed_as_recorded += 1,
            (Answer::Failed(now), _) => self.fail(call, &String::from_utf8_lossy(&now)),
            (Answer::Lost, _) => self.fail(call, "connection"),
        }
        self.response.record(response_us);
        let key = self.key(&call.text);
        let shape = self.shapes.entry(key).or_default();
        shape.calls += 1;
        if let (Answer::Done, Some(before)) = (answer, before) {
            self.service.record(service_us);
            self.recorded.record(before);
            shape.us += service_us;
            shape.recorded_us += before;
        }
    }

    fn fail(&mut self, call: &Call, error: &str) {
        self.newly_failed += 1;
        let key = self.key(&call.text);
        *self.errors.entry((key, error.to_owned())).or_default() += 1;
    }

    fn key(&self, text: &str) -> String {
        let found = shape(text);
        if self.shapes.len() < SHAPES_MAX || self.shapes.contains_key(&found) { found } else { OTHERS.to_owned() }
    }

    /// Adds what another lane did.
    pub(crate) fn add(&mut self, other: &Self) {
        self.executed += other.executed;
        self.failed_as_recorded += other.failed_as_recorded;
        self.newly_failed += other.newly_failed;
        self.no_longer_failed += other.no_longer_failed;
        self.not_begun += other.not_begun;
        self.recorded_us += other.recorded_us;
        self.left_out_us += other.left_out_us;
        self.sessions += other.sessions;
        self.lost += other.lost;
        for (why, count) in &other.left_out {
            *self.left_out.entry(why).or_default() += count;
        }
        for (key, count) in &other.errors {
            *self.errors.entry(key.clone()).or_default() += count;
        }
        for (key, theirs) in &other.shapes {
            let mine = self.shapes.entry(key.clone()).or_default();
            mine.calls += theirs.calls;
            mine.us += theirs.us;
            mine.recorded_us += theirs.recorded_us;
        }
        self.response.add(&other.response);
        self.service.add(&other.service);
        self.recorded.add(&other.recorded);
        self.behind.add(&other.behind);
        self.late.add(&other.late);
    }

    /// As it is written. No value is in it: statements are named by their shapes, errors by their SQLSTATE.
    pub(crate) fn document(&self) -> Value {
        let error = |((shape, sqlstate), count): (&(String, String), &u64)| json!({"statement": shape, "sqlstate": sqlstate, "count": count});
        let statement = |(shape, found): (&String, &Shape)| json!({"statement": shape, "calls": found.calls, "us": found.us, "recorded_us": found.recorded_us});
        let left_out: u64 = self.left_out.values().sum();
        let sent = self.executed + self.failed_as_recorded + self.newly_failed + self.no_longer_failed;
        json!({
            "statements": sent + left_out + self.not_begun,
            "executed": self.executed,
            "failed_as_recorded": self.failed_as_recorded,
            "newly_failed": self.newly_failed,
            "no_longer_failed": self.no_longer_failed,
            "not_begun": self.not_begun,
            "left_out": self.left_out,
            "recorded_us": self.recorded_us,
            "left_out_us": self.left_out_us,
            "sessions": self.sessions,
            "connections_lost": self.lost,
            "errors": self.errors.iter().map(error).collect::<Vec<_>>(),
            "by_statement": self.shapes.iter().map(statement).collect::<Vec<_>>(),
            "response_us": self.response.figures(),
            "service_us": self.service.figures(),
            "recorded_service_us": self.recorded.figures(),
            "behind_us": self.behind.figures(),
            "late_us": self.late.figures(),
        })
    }
}

fn recorded(call: &Call) -> Option<u64> {
    match call.ending {
        Ending::Done(us) => Some(us),
        Ending::Failed(_) | Ending::Unknown => None,
    }
}

#[cfg(test)]
mod tests {
    use pgdyno_capture::Protocol;

    use super::*;

    fn call(text: &str, ending: Ending) -> Call {
        Call {
            due_us: 0,
            protocol: Protocol::Text,
            name: String::new(),
            text: text.to_owned(),
            values: Vec::new(),
            transaction: 1,
            ending,
            without_values: false,
            cut: false,
        }
    }

    #[test]
    fn each_statement_is_counted_once_by_what_came_of_it() {
        let (good, bad) = (call("SELECT 'secret'", Ending::Done(100)), call("SELECT 1/0", Ending::Failed(*b"22012")));
        let mut tally = Tally::new();
        tally.answered(&good, Answer::Done, 5, 4);
        tally.answered(&good, Answer::Failed(*b"42P01"), 5, 4);
        tally.answered(&good, Answer::Lost, 5, 4);
        tally.answered(&bad, Answer::Failed(*b"22012"), 5, 4);
        tally.answered(&bad, Answer::Failed(*b"42P01"), 5, 4);
        tally.answered(&bad, Answer::Done, 5, 4);
        tally.left_out(&good, "for a test");
        tally.not_begun += 2;
        let mut both = Tally::new();
        both.add(&tally);
        let found = both.document();
        assert_eq!(found["statements"], 9);
        let counts = ["executed", "failed_as_recorded", "newly_failed", "no_longer_failed", "not_begun"];
        assert_eq!(counts.map(|name| found[name].as_u64().unwrap()), [1, 1, 3, 1, 2]);
        assert_eq!((found["recorded_us"].as_u64(), found["left_out_us"].as_u64()), (Some(400), Some(100)));
        assert!(!found.to_string().contains("secret"));
    }
}
