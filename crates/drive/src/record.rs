//! What a stretch of time came to: counts and distributions, mergeable by adding.
//!
//! Transactions belong to the second in which they end. Latencies are whole microseconds in HDR histograms of three
//! significant digits up to one hour, the same as those made of pgbench's logs, so that both merge.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use pgdyno_workload::{Class, Failure, Groups, Skip, SqlState, Transaction, Verdict};
use serde_json::{Map, Value, json};

/// One hour; what takes longer is counted there.
const LATENCY_US_MAX: u64 = 3_600_000_000;
/// 0.1 % of the value.
const DIGITS: u8 = 3;

/// A distribution of microseconds.
#[derive(Clone)]
pub(crate) struct Latency(Histogram<u32>);

impl Latency {
    fn new() -> Self {
        Self(Histogram::new_with_bounds(1, LATENCY_US_MAX, DIGITS).expect("the bounds are in order"))
    }

    fn record(&mut self, ns: u64) {
        self.0.saturating_record(ns / 1000);
    }

    fn add(&mut self, other: &Self) {
        self.0.add(&other.0).expect("all have the same bounds");
    }

    /// Base64 of HDR's compressed V2 encoding, or nothing when nothing happened.
    fn encoded(&self, serializer: &mut V2DeflateSerializer) -> Value {
        if self.0.is_empty() {
            return Value::Null;
        }
        let mut bytes = Vec::new();
        serializer.serialize(&self.0, &mut bytes).expect("a buffer takes all bytes");
        Value::String(STANDARD.encode(bytes))
    }

    /// Figures for whoever reads the line without a decoder.
    fn figures(&self) -> Value {
        let at = |quantile: f64| self.0.value_at_quantile(quantile);
        json!({"count": self.0.len(), "mean": self.0.mean(), "p50": at(0.5), "p99": at(0.99), "max": self.0.max()})
    }
}

/// Counts whose sum is what was scheduled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Account {
    pub succeeded: u64,
    pub failed: u64,
    pub skipped_late: u64,
    pub skipped_ended: u64,
    /// Tries beyond the first, of those that ended either way.
    pub retries: u64,
}

impl Account {
    pub(crate) fn settled(&self) -> u64 {
        self.succeeded + self.failed + self.skipped_late + self.skipped_ended
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.succeeded += other.succeeded;
        self.failed += other.failed;
        self.skipped_late += other.skipped_late;
        self.skipped_ended += other.skipped_ended;
        self.retries += other.retries;
    }

    fn document(&self) -> Value {
        json!({"succeeded": self.succeeded, "failed": self.failed, "skipped_late": self.skipped_late,
            "skipped_ended": self.skipped_ended, "retries": self.retries})
    }
}

/// Of one script.
#[derive(Clone)]
struct Script {
    account: Account,
    response: Latency,
    service: Latency,
}

/// A stretch of time of one thread, or of all.
#[derive(Clone)]
pub(crate) struct Record {
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
    pub(crate) fn new(scripts: usize, statements: usize, begin_ns: u64) -> Self {
        let script = Script { account: Account::default(), response: Latency::new(), service: Latency::new() };
        Self {
            begin_ns,
            end_ns: begin_ns,
            cpu_ns: 0,
            lost: 0,
            down_ns: 0,
            scripts: vec![script; scripts],
            statements: vec![Latency::new(); statements],
            errors: BTreeMap::new(),
            lag: Latency::new(),
            wake: Latency::new(),
        }
    }

    /// An empty one of the same workload.
    pub(crate) fn successor(&self) -> Self {
        Self::new(self.scripts.len(), self.statements.len(), self.end_ns)
    }

    /// Counts a transaction that is over. Response time is from when it was to begin, service time from when it did.
    pub(crate) fn transaction(&mut self, now: u64, done: &Transaction) {
        let script = &mut self.scripts[done.script as usize];
        let account = &mut script.account;
        account.retries += u64::from(done.tries.saturating_sub(1));
        match done.verdict {
            Verdict::Skipped(Skip::Late) => account.skipped_late += 1,
            Verdict::Skipped(Skip::Ended) => account.skipped_ended += 1,
            Verdict::Failed(failure) => {
                account.failed += 1;
                *self.errors.entry(class(failure)).or_default() += 1;
            }
            Verdict::Succeeded => {
                account.succeeded += 1;
                script.response.record(now - done.scheduled);
                script.service.record(now - done.started);
            }
        }
        if done.tries > 0 {
            self.lag.record(done.started - done.scheduled);
        }
    }

    /// Counts a statement that was answered, by its group.
    pub(crate) fn statement(&mut self, group: u32, ns: u64) {
        self.statements[group as usize].record(ns);
    }

    /// Counts how late the driver was where nothing but itself was waited for.
    pub(crate) fn wake(&mut self, late_ns: u64) {
        self.wake.record(late_ns);
    }

    /// Adds what another thread did meanwhile, or what came next.
    pub(crate) fn add(&mut self, other: &Self) {
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
    pub(crate) fn account(&self) -> Account {
        let mut all = Account::default();
        self.scripts.iter().for_each(|script| all.add(&script.account));
        all
    }

    /// Statements that were answered, of all classes.
    pub(crate) fn queries_total(&self) -> u64 {
        self.statements.iter().map(|latency| latency.0.len()).sum()
    }

    /// As JSON; the names are those of the workload's scripts.
    pub(crate) fn document(&self, scripts: &[String], groups: &Groups) -> Map<String, Value> {
        let mut serializer = V2DeflateSerializer::new();
        let of_script = |(name, script): (&String, &Script)| {
            let mut document = script.account.document();
            document["name"] = json!(name);
            document["response_us"] = script.response.encoded(&mut serializer);
            document["service_us"] = script.service.encoded(&mut serializer);
            document
        };
        let by_script: Vec<_> = scripts.iter().zip(&self.scripts).map(of_script).collect();
        let named = groups.texts.iter().zip(&groups.classes).zip(&self.statements);
        let by_statement: Vec<_> = named
            .map(|((name, class), latency)| {
                let service_us = latency.encoded(&mut serializer);
                json!({"name": name, "class": class_name(*class), "count": latency.0.len(), "service_us": service_us})
            })
            .collect();
        let Value::Object(mut document) = self.account().document() else { unreachable!("it is an object") };
        let more = [
            ("scripts", json!(by_script)),
            ("statements", json!(by_statement)),
            ("queries", self.queries(groups)),
            ("errors", json!(self.errors)),
            ("lag_us", self.lag.figures()),
            ("wake_us", self.wake.figures()),
            ("cpu_ns", json!(self.cpu_ns)),
            ("connections_lost", json!(self.lost)),
            ("down_ns", json!(self.down_ns)),
        ];
        document.extend(more.map(|(key, value)| (key.to_owned(), value)));
        document
    }

    /// Statements by class, as sysbench adds them up.
    fn queries(&self, groups: &Groups) -> Value {
        let of = |wanted: Class| {
            let counted = groups.classes.iter().zip(&self.statements).filter(|(class, _)| **class == wanted);
            counted.map(|(_, latency)| latency.0.len()).sum::<u64>()
        };
        json!({"read": of(Class::Read), "write": of(Class::Write), "other": of(Class::Other)})
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
