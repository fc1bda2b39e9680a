//! How far it is, for whoever waits.

use std::sync::atomic::{AtomicU64, Ordering};

use pgdyno_clock::{SECOND_NS, monotonic_ns};
use serde_json::{Map, Value, json};

use crate::plan::{Plan, Step, What};

/// Before this share is done, what is left is not foretold: the first rows say little of the others.
const FORETELL_PERMILLE: u64 = 10;

/// Counters that all sessions share.
pub(crate) struct Progress {
    begin_ns: u64,
    rows_expected: u64,
    weight_all: u64,
    rows: AtomicU64,
    bytes: AtomicU64,
    /// Of the steps that are done, and of the units that were copied.
    weight: AtomicU64,
    under_way: [AtomicU64; What::ALL.len()],
}

/// What the last line said, for rates between two lines.
#[derive(Clone, Copy)]
pub(crate) struct Seen {
    t_ns: u64,
    rows: u64,
    bytes: u64,
}

impl Progress {
    /// Nothing is done.
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            begin_ns: monotonic_ns(),
            rows_expected: plan.rows_expected(),
            weight_all: plan.weight(),
            rows: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            weight: AtomicU64::new(0),
            under_way: Default::default(),
        }
    }

    /// When it began.
    pub(crate) fn begin_ns(&self) -> u64 {
        self.begin_ns
    }

    /// Bytes that were sent as rows.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn begin(&self, step: &Step) {
        self.under_way[step.what as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn end(&self, step: &Step) {
        self.under_way[step.what as usize].fetch_sub(1, Ordering::Relaxed);
        self.weight.fetch_add(step.weight, Ordering::Relaxed);
    }

    pub(crate) fn copied(&self, weight: u64, rows: u64, bytes: u64) {
        self.weight.fetch_add(weight, Ordering::Relaxed);
        self.rows.fetch_add(rows, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Where it stands.
    pub(crate) fn seen(&self) -> Seen {
        Seen { t_ns: monotonic_ns(), rows: self.rows.load(Ordering::Relaxed), bytes: self.bytes() }
    }

    /// A line of progress, with rates since `before`. `share` is by estimated cost, and the time that is left follows
    /// from it; NULL while nothing can be said.
    pub(crate) fn document(&self, before: Seen, now: Seen) -> Value {
        let done = self.weight.load(Ordering::Relaxed);
        let all = self.weight_all.max(1);
        let elapsed_s = seconds(now.t_ns - self.begin_ns);
        let known = done >= all * FORETELL_PERMILLE / 1000 && done > 0;
        let left_s = known.then(|| elapsed_s * (all.saturating_sub(done)) as f64 / done as f64);
        let since_s = seconds(now.t_ns - before.t_ns).max(1e-9);
        let mut under_way = Map::new();
        for what in What::ALL {
            let count = self.under_way[what as usize].load(Ordering::Relaxed);
            if count > 0 {
                under_way.insert(what.name().to_owned(), json!(count));
            }
        }
        json!({
            "t_ns": now.t_ns,
            "rows": now.rows,
            "rows_all": self.rows_expected,
            "bytes": now.bytes,
            "rows_per_s": (now.rows - before.rows) as f64 / since_s,
            "bytes_per_s": (now.bytes - before.bytes) as f64 / since_s,
            "share": (done as f64 / all as f64).min(1.0),
            "left_s": left_s,
            "under_way": under_way,
        })
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / SECOND_NS as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::order;

    #[test]
    fn the_share_grows_from_nothing_to_everything() {
        let plan = Plan::new(&order(r#""tables": {"pgbench": {"scale": 1}}"#).unwrap());
        let progress = Progress::new(&plan);
        let share = || progress.document(progress.seen(), progress.seen())["share"].as_f64().unwrap();
        let mut shares = vec![share()];
        for step in plan.stages.iter().flatten().flatten() {
            progress.begin(step);
            let rows: u64 = step.batches().iter().map(|batch| batch.units.end - batch.units.start).sum();
            progress.copied(rows * What::Copy.weight(true), rows, 10 * rows);
            progress.end(step);
            shares.push(share());
        }
        assert!(shares.is_sorted(), "{shares:?}");
        assert_eq!((shares[0], shares[shares.len() - 1]), (0.0, 1.0));
        assert_eq!(progress.document(progress.seen(), progress.seen())["under_way"], json!({}));
    }

    #[test]
    fn rates_are_those_since_the_line_before() {
        let plan = Plan::new(&order(r#""tables": {"pgbench": {"scale": 1}}"#).unwrap());
        let progress = Progress::new(&plan);
        let before = Seen { t_ns: progress.begin_ns, rows: 0, bytes: 0 };
        progress.copied(50_000 * What::Copy.weight(true), 50_000, 700_000);
        let now = Seen { t_ns: progress.begin_ns + 2 * SECOND_NS, ..progress.seen() };
        let document = progress.document(before, now);
        assert_eq!((document["rows_per_s"].as_f64(), document["bytes_per_s"].as_f64()), (Some(25e3), Some(350e3)));
        assert!(document["left_s"].as_f64().unwrap() > 2.0, "keys are still to come");
    }
}
