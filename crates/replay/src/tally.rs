//! What came of the statements of a capture, each held against what was recorded of it.

use std::collections::BTreeMap;

use pgdyno_capture::{Call, Ending};
use pgdyno_measure::Latency;
use serde_json::{Value, json};

use crate::link::Answer;
use crate::shapes::{SHAPES_MAX, Shape, Shapes};

/// One hour; what takes longer is counted there.
pub(crate) const LATENCY_US_MAX: u64 = 3_600_000_000;

/// How a statement that was sent ended, beside what was recorded of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Done, as in production.
    Executed,
    /// Failed with the error that it had in production.
    FailedAsRecorded,
    /// Failed otherwise than in production.
    NewlyFailed,
    /// Failed in production and not here.
    NoLongerFailed,
}

impl End {
    pub(crate) const ALL: [Self; 4] = [Self::Executed, Self::FailedAsRecorded, Self::NewlyFailed, Self::NoLongerFailed];

    /// As documents have it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Executed => "executed",
            Self::FailedAsRecorded => "failed_as_recorded",
            Self::NewlyFailed => "newly_failed",
            Self::NoLongerFailed => "no_longer_failed",
        }
    }

    /// Whether it did what it did in production.
    pub(crate) fn is_good(self) -> bool {
        matches!(self, Self::Executed | Self::FailedAsRecorded)
    }
}

/// Counts of a replay, or of a part of it: they add up.
pub(crate) struct Tally {
    ends: [u64; End::ALL.len()],
    pub not_begun: u64,
    /// Of the sessions that are replayed, statements outside the part that is sent.
    pub not_asked: u64,
    /// Statements of before that part that set something for their session.
    pub settings: u64,
    left_out: BTreeMap<&'static str, u64>,
    /// The same by statement.
    left_out_shapes: BTreeMap<String, u64>,
    /// Recorded time of all statements, and of those that were left out.
    recorded_us: u64,
    left_out_us: u64,
    /// New errors by statement and SQLSTATE.
    errors: BTreeMap<(String, String), u64>,
    shapes: Shapes,
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
    /// Of the statements that were sent, COPYs whose rows were made.
    pub copies_made: u64,
}

impl Tally {
    pub(crate) fn new() -> Self {
        let latency = || Latency::new(LATENCY_US_MAX);
        Self {
            ends: [0; End::ALL.len()],
            not_begun: 0,
            not_asked: 0,
            settings: 0,
            left_out: BTreeMap::new(),
            left_out_shapes: BTreeMap::new(),
            recorded_us: 0,
            left_out_us: 0,
            errors: BTreeMap::new(),
            shapes: Shapes::default(),
            response: latency(),
            service: latency(),
            recorded: latency(),
            behind: latency(),
            late: latency(),
            sessions: 0,
            lost: 0,
            copies_made: 0,
        }
    }

    /// A statement that is not sent.
    pub(crate) fn left_out(&mut self, call: &Call, why: &'static str) {
        *self.left_out.entry(why).or_default() += 1;
        let found = call.shape();
        if self.left_out_shapes.len() < SHAPES_MAX || self.left_out_shapes.contains_key(&found) {
            *self.left_out_shapes.entry(found).or_default() += 1;
        }
        let us = recorded(call).unwrap_or(0);
        (self.recorded_us, self.left_out_us) =
            (self.recorded_us.saturating_add(us), self.left_out_us.saturating_add(us));
    }

    /// How late a statement was sent. `own_us` is what nothing but the driver is to blame for.
    pub(crate) fn sent(&mut self, behind_us: u64, own_us: Option<u64>) {
        self.behind.record(behind_us);
        if let Some(own_us) = own_us {
            self.late.record(own_us);
        }
    }

    /// A statement that was sent, with the number of its text in the capture's table, and how long it took since it was due and since it was sent.
    pub(crate) fn answered(
        &mut self,
        (call, text): (&Call, Option<usize>),
        answer: Answer,
        (response_us, service_us): (u64, u64),
    ) -> End {
        let before = recorded(call);
        self.recorded_us = self.recorded_us.saturating_add(before.unwrap_or(0));
        let was = match call.ending {
            Ending::Failed(state) => Some(state),
            Ending::Done(_) | Ending::Unknown => None,
        };
        let end = match (answer, was) {
            (Answer::Done, None) => End::Executed,
            (Answer::Done, Some(_)) => End::NoLongerFailed,
            // A log without SQLSTATE says that it failed.
            (Answer::Failed(now), Some(was)) if now == was || &was == b"?????" => End::FailedAsRecorded,
            (Answer::Failed(_) | Answer::Lost, _) => End::NewlyFailed,
        };
        self.ends[end as usize] += 1;
        let (name, shape) = self.shapes.of(call, text);
        if end == End::NewlyFailed {
            let error =
                if let Answer::Failed(now) = &answer { String::from_utf8_lossy(now) } else { "connection".into() };
            *self.errors.entry((name.clone(), error.into_owned())).or_default() += 1;
        }
        self.response.record(response_us);
        shape.calls += 1;
        shape.response_us += response_us;
        if let (Answer::Done, Some(before)) = (answer, before) {
            self.service.record(service_us);
            self.recorded.record(before);
            shape.timed += 1;
            shape.us += service_us;
            shape.recorded_us = shape.recorded_us.saturating_add(before);
        }
        end
    }

    /// Adds what another lane did.
    pub(crate) fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.ends.iter_mut().zip(other.ends) {
            *mine += theirs;
        }
        self.not_begun += other.not_begun;
        self.not_asked += other.not_asked;
        self.settings += other.settings;
        self.recorded_us = self.recorded_us.saturating_add(other.recorded_us);
        self.left_out_us = self.left_out_us.saturating_add(other.left_out_us);
        self.sessions += other.sessions;
        self.lost += other.lost;
        self.copies_made += other.copies_made;
        for (why, count) in &other.left_out {
            *self.left_out.entry(why).or_default() += count;
        }
        for (shape, count) in &other.left_out_shapes {
            *self.left_out_shapes.entry(shape.clone()).or_default() += count;
        }
        for (key, count) in &other.errors {
            *self.errors.entry(key.clone()).or_default() += count;
        }
        self.shapes.add(&other.shapes);
        self.response.add(&other.response);
        self.service.add(&other.service);
        self.recorded.add(&other.recorded);
        self.behind.add(&other.behind);
        self.late.add(&other.late);
    }

    /// As it is written. No value is in it: statements are named by their shapes, errors by their SQLSTATE.
    pub(crate) fn document(&self) -> Value {
        let error = |((shape, sqlstate), count): (&(String, String), &u64)| json!({"statement": shape, "sqlstate": sqlstate, "count": count});
        let statement = |(shape, found): &(String, Shape)| {
            json!({
                "statement": shape,
                "calls": found.calls,
                "response_us": found.response_us,
                "timed": found.timed,
                "us": found.us,
                "recorded_us": found.recorded_us,
            })
        };
        let left_out: u64 = self.left_out.values().sum();
        let sent: u64 = self.ends.iter().sum();
        let mut found = json!({
            "statements": sent + left_out + self.not_begun,
            "not_begun": self.not_begun,
            "not_asked": self.not_asked,
            "settings": self.settings,
            "left_out": self.left_out,
            "left_out_statements": self.left_out_shapes,
            "recorded_us": self.recorded_us,
            "left_out_us": self.left_out_us,
            "sessions": self.sessions,
            "connections_lost": self.lost,
            "copies_made": self.copies_made,
            "errors": self.errors.iter().map(error).collect::<Vec<_>>(),
            "by_statement": self.shapes.sorted().into_iter().map(statement).collect::<Vec<_>>(),
            "response_us": self.response.figures(),
            "service_us": self.service.figures(),
            "recorded_service_us": self.recorded.figures(),
            "behind_us": self.behind.figures(),
            "late_us": self.late.figures(),
        });
        for end in End::ALL {
            found[end.name()] = json!(self.ends[end as usize]);
        }
        found
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
    use super::*;
    use crate::testing::call;

    #[test]
    fn durations_that_cannot_be_are_added_without_an_end() {
        let endless = call("SELECT 1", Ending::Done(u64::MAX));
        let (mut tally, mut both) = (Tally::new(), Tally::new());
        for _ in 0..2 {
            tally.left_out(&endless, "its time cannot be");
            tally.answered((&endless, None), Answer::Done, (5, 4));
            both.add(&tally);
        }
        let found = both.document();
        assert_eq!((&found["recorded_us"], &found["left_out_us"]), (&json!(u64::MAX), &json!(u64::MAX)));
        assert_eq!(found["by_statement"][0]["recorded_us"], u64::MAX);
    }

    #[test]
    fn each_statement_is_counted_once_by_what_came_of_it() {
        let (good, bad) = (call("SELECT 'secret'", Ending::Done(100)), call("SELECT 1/0", Ending::Failed(*b"22012")));
        let mut tally = Tally::new();
        let mut answered = |call: &Call, answer| tally.answered((call, None), answer, (5, 4));
        assert_eq!(answered(&good, Answer::Done), End::Executed);
        answered(&good, Answer::Failed(*b"42P01"));
        answered(&good, Answer::Lost);
        answered(&bad, Answer::Failed(*b"22012"));
        answered(&bad, Answer::Failed(*b"42P01"));
        answered(&bad, Answer::Done);
        tally.left_out(&good, "for a test");
        tally.not_begun += 2;
        let mut both = Tally::new();
        both.add(&tally);
        let found = both.document();
        assert_eq!(found["statements"], 9);
        let counts = ["executed", "failed_as_recorded", "newly_failed", "no_longer_failed", "not_begun"];
        assert_eq!(counts.map(|name| found[name].as_u64().unwrap()), [1, 1, 3, 1, 2]);
        assert_eq!((found["recorded_us"].as_u64(), found["left_out_us"].as_u64()), (Some(400), Some(100)));
        assert_eq!(found["left_out_statements"], serde_json::json!({"SELECT ?": 1}));
        assert!(!found.to_string().contains("secret"));
    }
}
