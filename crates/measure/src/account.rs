//! How transactions ended.

use pgdyno_workload::{Skip, Transaction, Verdict};
use serde::Serialize;

/// Counts whose sum is what was scheduled, but for `retries`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Account {
    /// Transactions that did what they were to do.
    pub succeeded: u64,
    /// Rolled back because they were meant to be: a good end too, with its latency.
    pub rolled_back: u64,
    /// Transactions that failed and were not tried again.
    pub failed: u64,
    /// Transactions that were not begun because they were later than allowed.
    pub skipped_late: u64,
    /// Transactions that were due and had not begun when the run ended.
    pub skipped_ended: u64,
    /// Tries beyond the first, of those that ended either way.
    pub retries: u64,
}

impl Account {
    /// Counts a transaction that is over.
    pub fn count(&mut self, done: &Transaction) {
        self.retries += u64::from(done.tries.saturating_sub(1));
        let end = match done.verdict {
            Verdict::Succeeded => &mut self.succeeded,
            Verdict::RolledBack => &mut self.rolled_back,
            Verdict::Failed(_) => &mut self.failed,
            Verdict::Skipped(Skip::Late) => &mut self.skipped_late,
            Verdict::Skipped(Skip::Ended) => &mut self.skipped_ended,
        };
        *end += 1;
    }

    /// All transactions that are over.
    pub fn settled(&self) -> u64 {
        self.succeeded + self.rolled_back + self.failed + self.skipped_late + self.skipped_ended
    }

    /// Adds another account.
    pub fn add(&mut self, other: &Self) {
        self.succeeded += other.succeeded;
        self.rolled_back += other.rolled_back;
        self.failed += other.failed;
        self.skipped_late += other.skipped_late;
        self.skipped_ended += other.skipped_ended;
        self.retries += other.retries;
    }
}
