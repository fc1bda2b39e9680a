//! What a stretch of time came to: counts and distributions, mergeable by adding.
//!
//! Transactions belong to the second in which they end. Latencies are whole microseconds in HDR histograms of three
//! significant digits up to one hour, the same as those made of pgbench's logs, so that both merge.

use std::collections::BTreeMap;

use pgdyno_workload::{Class, Failure, Groups, ScriptInfo, SqlState, Transaction, Verdict};

use crate::account::Account;
use crate::latency::Latency;
use crate::lines::{Queries, ScriptFigures, StatementFigures, Stretch};

/// One hour; what takes longer is counted there.
const LATENCY_US_MAX: u64 = 3_600_000_000;
const NS_PER_US: u64 = 1000;

/// Of one script.
#[derive(Clone)]
struct Script {
    account: Account,
    response: Latency,
    service: Latency,
}

/// A stretch of time of one thread, or of all.
#[derive(Clone)]
pub struct Record {
    /// Since the beginning of the run.
    pub begin_ns: u64,
    /// Since the beginning of the run.
    pub end_ns: u64,
    /// CPU of the driver's threads that serve clients.
    pub cpu_ns: u64,
    /// Connections that were lost.
    pub lost: u64,
    /// How long clients had no connection, added up.
    pub down_ns: u64,
    scripts: Vec<Script>,
    statements: Vec<Latency>,
    errors: BTreeMap<String, u64>,
    lag: Latency,
    wake: Latency,
}

impl Record {
    /// An empty one that begins at `begin_ns`.
    pub fn new(scripts: usize, statements: usize, begin_ns: u64) -> Self {
        let script = Script {
            account: Account::default(),
            response: Latency::new(LATENCY_US_MAX),
            service: Latency::new(LATENCY_US_MAX),
        };
        Self {
            begin_ns,
            end_ns: begin_ns,
            cpu_ns: 0,
            lost: 0,
            down_ns: 0,
            scripts: vec![script; scripts],
            statements: vec![Latency::new(LATENCY_US_MAX); statements],
            errors: BTreeMap::new(),
            lag: Latency::new(LATENCY_US_MAX),
            wake: Latency::new(LATENCY_US_MAX),
        }
    }

    /// An empty one of the same workload.
    pub fn successor(&self) -> Self {
        Self::new(self.scripts.len(), self.statements.len(), self.end_ns)
    }

    /// Counts a transaction that is over. Response time is from when it was to begin, service time from when it did.
    pub fn transaction(&mut self, now: u64, done: &Transaction) {
        let script = &mut self.scripts[done.script as usize];
        script.account.count(done);
        match done.verdict {
            Verdict::Succeeded | Verdict::RolledBack => {
                script.response.record((now - done.scheduled) / NS_PER_US);
                script.service.record((now - done.started) / NS_PER_US);
            }
            Verdict::Failed(failure) => *self.errors.entry(class(failure)).or_default() += 1,
            Verdict::Skipped(_) => (),
        }
        if done.tries > 0 {
            self.lag.record((done.started - done.scheduled) / NS_PER_US);
        }
    }

    /// Counts so many transactions that were due and had not begun when the run ended. Of which script they would have been is
    /// not known.
    pub fn never_begun(&mut self, count: u64) {
        if let Some(first) = self.scripts.first_mut() {
            first.account.skipped_ended += count;
        }
    }

    /// Counts a statement that was answered, by its group.
    pub fn statement(&mut self, group: u32, ns: u64) {
        self.statements[group as usize].record(ns / NS_PER_US);
    }

    /// Counts how late the driver was where nothing but itself was waited for.
    pub fn wake(&mut self, late_ns: u64) {
        self.wake.record(late_ns / NS_PER_US);
    }

    /// Adds what another thread did meanwhile, or what came next.
    pub fn add(&mut self, other: &Self) {
        self.begin_ns = self.begin_ns.min(other.begin_ns);
        self.end_ns = self.end_ns.max(other.end_ns);
        self.cpu_ns += other.cpu_ns;
        self.lost += other.lost;
        self.down_ns += other.down_ns;
        for (mine, theirs) in self.scripts.iter_mut().zip(&other.scripts) {
            mine.account.add(&theirs.account);
            mine.response.add(&theirs.response);
            mine.service.add(&theirs.service);
        }
        for (mine, theirs) in self.statements.iter_mut().zip(&other.statements) {
            mine.add(theirs);
        }
        for (error, count) in &other.errors {
            *self.errors.entry(error.clone()).or_default() += count;
        }
        self.lag.add(&other.lag);
        self.wake.add(&other.wake);
    }

    /// All scripts together.
    pub fn account(&self) -> Account {
        let mut all = Account::default();
        self.scripts.iter().for_each(|script| all.add(&script.account));
        all
    }

    /// Statements that were answered, of all classes.
    pub fn queries_total(&self) -> u64 {
        self.statements.iter().map(Latency::count).sum()
    }

    /// As it is written, from and to these instants of CLOCK_MONOTONIC.
    pub fn stretch(&self, scripts: &[ScriptInfo], groups: &Groups, begin_ns: u64, end_ns: u64) -> Stretch {
        let of_script = |(info, script): (&ScriptInfo, &Script)| ScriptFigures {
            name: info.name.clone(),
            account: script.account,
            response_us: script.response.encoded(),
            service_us: script.service.encoded(),
        };
        let named = groups.texts.iter().zip(&groups.classes).zip(&self.statements);
        let of_statement = |((name, class), latency): ((&String, &Class), &Latency)| StatementFigures {
            name: name.clone(),
            class: class_name(*class),
            count: latency.count(),
            service_us: latency.encoded(),
        };
        Stretch {
            begin_ns,
            end_ns,
            account: self.account(),
            scripts: scripts.iter().zip(&self.scripts).map(of_script).collect(),
            statements: named.map(of_statement).collect(),
            queries: self.queries(groups),
            errors: self.errors.clone(),
            lag_us: self.lag.figures(),
            wake_us: self.wake.figures(),
            cpu_ns: self.cpu_ns,
            connections_lost: self.lost,
            down_ns: self.down_ns,
        }
    }

    /// Statements by class, as sysbench adds them up.
    fn queries(&self, groups: &Groups) -> Queries {
        let of = |wanted: Class| {
            let counted = groups.classes.iter().zip(&self.statements).filter(|(class, _)| **class == wanted);
            counted.map(|(_, latency)| latency.count()).sum::<u64>()
        };
        Queries { read: of(Class::Read), write: of(Class::Write), other: of(Class::Other) }
    }
}

/// A class in the words of sysbench's report.
fn class_name(class: Class) -> &'static str {
    match class {
        Class::Read => "read",
        Class::Write => "write",
        Class::Other => "other",
    }
}

/// What errors are counted by: `serialization` and `deadlock` as pgbench does, the code for the rest.
fn class(failure: Failure) -> String {
    match failure {
        Failure::Sql(SqlState::SERIALIZATION_FAILURE) => "serialization".to_owned(),
        Failure::Sql(SqlState::DEADLOCK_DETECTED) => "deadlock".to_owned(),
        Failure::Sql(state) => state.as_str().to_owned(),
        Failure::Lost => "connection".to_owned(),
        Failure::Script => "script".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rollback_on_purpose_is_a_good_end_of_its_own() {
        let mut record = Record::new(1, 0, 0);
        let done = |verdict| Transaction { script: 0, ordinal: 0, scheduled: 1_000, started: 1_000, tries: 1, verdict };
        for verdict in [Verdict::Succeeded, Verdict::RolledBack, Verdict::RolledBack, Verdict::Failed(Failure::Lost)] {
            record.transaction(5_000_000, &done(verdict));
        }
        let account = record.account();
        assert_eq!((account.succeeded, account.rolled_back, account.failed, account.settled()), (1, 2, 1, 4));
        let scripts = [ScriptInfo::new("order", 1)];
        let line = serde_json::to_value(record.stretch(&scripts, &Groups::default(), 1, 2)).unwrap();
        assert_eq!((line["rolled_back"].as_u64(), line["scripts"][0]["rolled_back"].as_u64()), (Some(2), Some(2)));
        assert_eq!(record.scripts[0].response.count(), 3, "its latency counts");
    }
}
