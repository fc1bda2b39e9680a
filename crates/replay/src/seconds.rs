//! What each second of a replay came to.

use pgdyno_measure::Latency;
use serde_json::{Value, json};

use crate::tally::{End, LATENCY_US_MAX};

/// A second, from its begin to its end.
pub(crate) struct Second {
    begin_ns: u64,
    end_ns: u64,
    ends: [u64; End::ALL.len()],
    /// From when statements were due to their answers.
    response: Latency,
    /// From when they were sent.
    service: Latency,
    /// How late they were sent.
    behind: Latency,
}

impl Second {
    fn new(begin_ns: u64, end_ns: u64) -> Self {
        let latency = || Latency::new(LATENCY_US_MAX);
        let ends = [0; End::ALL.len()];
        Self { begin_ns, end_ns, ends, response: latency(), service: latency(), behind: latency() }
    }

    /// The same memory for a second that is to come.
    pub(crate) fn cleared(mut self) -> Self {
        self.ends = [0; End::ALL.len()];
        for times in [&mut self.response, &mut self.service, &mut self.behind] {
            times.clear();
        }
        self
    }

    /// As it is written.
    pub(crate) fn document(&self) -> Value {
        let mut found = json!({
            "begin_ns": self.begin_ns,
            "end_ns": self.end_ns,
            "response_us": self.response.encoded(),
            "service_us": self.service.encoded(),
            "behind_us": self.behind.figures(),
        });
        for end in End::ALL {
            found[end.name()] = json!(self.ends[end as usize]);
        }
        found
    }
}

/// An answer, with its times in microseconds.
#[derive(Clone, Copy)]
pub(crate) struct Answered {
    pub end: End,
    pub behind_us: u64,
    pub response_us: u64,
    pub service_us: u64,
}

/// The seconds of a run: the present one, and those that are over and not yet told.
pub(crate) struct Seconds {
    second_ns: u64,
    now: Second,
    over: Vec<Second>,
    /// Seconds that were told and [cleared](Second::cleared): each has 0.3 MiB, and a replay may last for days.
    spare: Vec<Second>,
    answered: u64,
}

impl Seconds {
    pub(crate) fn new(begin_ns: u64, second_ns: u64) -> Self {
        let now = Second::new(begin_ns, begin_ns + second_ns);
        Self { second_ns, now, over: Vec::new(), spare: Vec::new(), answered: 0 }
    }

    /// Counts a statement that was answered at `now_ns`. Its times are those of a good end.
    pub(crate) fn count(&mut self, now_ns: u64, one: Answered) {
        self.turn(now_ns);
        self.answered += 1;
        self.now.ends[one.end as usize] += 1;
        self.now.behind.record(one.behind_us);
        if one.end.is_good() {
            self.now.response.record(one.response_us);
            self.now.service.record(one.service_us);
        }
    }

    /// Takes the seconds that are over at `now_ns`.
    pub(crate) fn take(&mut self, now_ns: u64) -> Vec<Second> {
        self.turn(now_ns);
        std::mem::take(&mut self.over)
    }

    /// Takes a cleared second back.
    pub(crate) fn reuse(&mut self, second: Second) {
        self.spare.push(second);
    }

    /// The end of the run: the last second ends here.
    pub(crate) fn end(&mut self, now_ns: u64) -> Vec<Second> {
        let mut over = self.take(now_ns);
        let mut last = std::mem::replace(&mut self.now, Second::new(now_ns, now_ns + self.second_ns));
        last.end_ns = now_ns.max(last.begin_ns + 1);
        over.push(last);
        over
    }

    /// Statements so far.
    pub(crate) fn answered(&self) -> u64 {
        self.answered
    }

    fn turn(&mut self, now_ns: u64) {
        while now_ns >= self.now.end_ns {
            let begin_ns = self.now.end_ns;
            let end_ns = begin_ns + self.second_ns;
            let next = match self.spare.pop() {
                Some(spare) => Second { begin_ns, end_ns, ..spare },
                None => Second::new(begin_ns, end_ns),
            };
            self.over.push(std::mem::replace(&mut self.now, next));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_belongs_to_the_second_in_which_it_was_answered_and_no_second_is_missing() {
        let mut seconds = Seconds::new(1000, 100);
        let one = |end| Answered { end, behind_us: 1, response_us: 3, service_us: 2 };
        seconds.count(1099, one(End::Executed));
        seconds.count(1350, one(End::FailedAsRecorded));
        seconds.count(1360, one(End::NewlyFailed));
        let found: Vec<Value> = seconds.end(1380).iter().map(Second::document).collect();
        let edges = |one: &Value| (one["begin_ns"].as_u64().unwrap(), one["end_ns"].as_u64().unwrap());
        assert_eq!(
            found.iter().map(edges).collect::<Vec<_>>(),
            [(1000, 1100), (1100, 1200), (1200, 1300), (1300, 1380)]
        );
        assert_eq!((&found[0]["executed"], &found[1]["executed"]), (&json!(1), &json!(0)));
        assert_eq!((&found[3]["failed_as_recorded"], &found[3]["newly_failed"]), (&json!(1), &json!(1)));
        assert_eq!((&found[3]["behind_us"]["count"], seconds.answered()), (&json!(2), 3));
        assert!(found[1]["response_us"].is_null() && found[3]["response_us"].is_string());
    }

    #[test]
    fn a_second_in_the_memory_of_another_has_nothing_of_it() {
        let mut seconds = Seconds::new(0, 100);
        seconds.count(50, Answered { end: End::Executed, behind_us: 1, response_us: 3, service_us: 2 });
        for told in seconds.take(100) {
            seconds.reuse(told.cleared());
        }
        assert!(seconds.take(200).pop().is_some_and(|second| second.begin_ns == 100));
        assert!(seconds.spare.is_empty());
        let found = seconds.end(250).pop().unwrap().document();
        assert_eq!((&found["begin_ns"], &found["end_ns"], &found["executed"]), (&json!(200), &json!(250), &json!(0)));
        assert_eq!((&found["behind_us"]["count"], &found["behind_us"]["max"]), (&json!(0), &json!(0)));
        assert!(found["response_us"].is_null() && found["service_us"].is_null());
    }
}
