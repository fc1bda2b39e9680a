//! Transactions without a statement: what they cost is the driver's own.

use pgdyno_workload::{Arrivals, Claim, Client, Nanos, Next, Outcome, Random, Transaction, Verdict};

/// A client that takes transactions as they are due and is at once done with each.
pub(crate) struct Idle {
    random: Random,
    due: Option<Nanos>,
    ordinal: u64,
    thinking: bool,
}

impl Idle {
    pub(crate) fn new(random: Random) -> Self {
        Self { random, due: None, ordinal: 0, thinking: false }
    }

    fn over(&mut self, scheduled: Nanos, started: Nanos, tries: u32, verdict: Verdict) -> Next<'_> {
        let ordinal = if tries > 0 { self.ordinal } else { 0 };
        self.ordinal += u64::from(tries);
        self.due = None;
        self.thinking = true;
        Next::Finished(Transaction { script: 0, ordinal, scheduled, started, tries, verdict })
    }
}

impl Client for Idle {
    fn next(&mut self, now: Nanos, _outcome: Outcome<'_>, arrivals: &mut Arrivals) -> Next<'_> {
        if std::mem::take(&mut self.thinking) && !arrivals.has_ended(now) {
            let think_ns = arrivals.think_ns(&mut self.random);
            if think_ns > 0 {
                return Next::WaitUntil(now + think_ns);
            }
        }
        let due = match self.due {
            // The end came early.
            Some(due) if arrivals.give_back(due) => return Next::Done,
            Some(due) => due,
            None => match arrivals.claim(now) {
                Claim::Begin(at) => at,
                Claim::Skip(at, skip) => return self.over(at, at, 0, Verdict::Skipped(skip)),
                Claim::None => return Next::Done,
            },
        };
        self.due = Some(due);
        if due > now {
            return Next::WaitUntil(due);
        }
        self.over(due, now, 1, Verdict::Succeeded)
    }
}
