//! The lines that a driver writes: one JSON document each, `{"second": {...}}`.

use std::collections::BTreeMap;
use std::io::Write;

use serde::Serialize;
use serde_json::Value;

use crate::account::Account;
use crate::latency::Figures;

/// A line. All instants are of CLOCK_MONOTONIC, in nanoseconds.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// Every client is connected.
    Ready(Ready),
    /// What this host's clock shows: somebody asked.
    Clock(ClockShown),
    /// A second is over.
    Second(Box<Second>),
    /// The run is over.
    Summary(Box<Summary>),
}

/// The beginning of a run.
#[derive(Debug, Serialize)]
pub struct Ready {
    /// Clients.
    pub clients: u32,
    /// How long it took to connect them.
    pub connect_ns: u64,
    /// The server's version; none where there is no server.
    pub server_version: Option<String>,
    /// The beginning of the warm-up; none where it is given later.
    pub begin_ns: Option<u64>,
    /// From which all that is random derives.
    pub seed: u64,
}

/// An answer to a question about the clock.
#[derive(Debug, Serialize)]
pub struct ClockShown {
    /// The question's.
    pub number: u64,
    /// CLOCK_MONOTONIC when the question was read.
    pub monotonic_ns: u64,
}

/// What a stretch of time came to. Histograms are base64 of HDR's compressed V2 encoding.
#[derive(Debug, Serialize)]
pub struct Stretch {
    /// Its beginning.
    pub begin_ns: u64,
    /// Its end.
    pub end_ns: u64,
    /// How its transactions ended.
    #[serde(flatten)]
    pub account: Account,
    /// The same by type of transaction.
    pub scripts: Vec<ScriptFigures>,
    /// Statements by their text.
    pub statements: Vec<StatementFigures>,
    /// Statements by their class.
    pub queries: Queries,
    /// Failed transactions by their error.
    pub errors: BTreeMap<String, u64>,
    /// How late transactions began.
    pub lag_us: Figures,
    /// How late the driver was where it waited for nothing but a time.
    pub wake_us: Figures,
    /// CPU of the driver's threads that serve clients.
    pub cpu_ns: u64,
    /// Connections that were lost.
    pub connections_lost: u64,
    /// How long clients had no connection, added up.
    pub down_ns: u64,
}

/// A type of transaction in a stretch of time.
#[derive(Debug, Serialize)]
pub struct ScriptFigures {
    /// Its name.
    pub name: String,
    /// How its transactions ended.
    #[serde(flatten)]
    pub account: Account,
    /// Times from when they were to begin.
    pub response_us: Option<String>,
    /// Times from when they began.
    pub service_us: Option<String>,
}

/// A statement in a stretch of time.
#[derive(Debug, Serialize)]
pub struct StatementFigures {
    /// Its text.
    pub name: String,
    /// `read`, `write` or `other`, as sysbench's report has it.
    pub class: &'static str,
    /// How often it was answered.
    pub count: u64,
    /// How long that took.
    pub service_us: Option<String>,
}

/// Statements by class, as sysbench adds them up.
#[derive(Debug, Serialize)]
pub struct Queries {
    /// Statements that read.
    pub read: u64,
    /// Statements that write.
    pub write: u64,
    /// Others.
    pub other: u64,
}

/// A second of a run.
#[derive(Debug, Serialize)]
pub struct Second {
    /// What it came to.
    #[serde(flatten)]
    pub stretch: Stretch,
    /// Whether it is part of the warm-up.
    pub warmup: bool,
}

/// The whole of a run but for its warm-up.
#[derive(Debug, Serialize)]
pub struct Summary {
    /// What it came to.
    #[serde(flatten)]
    pub stretch: Stretch,
    /// Transactions that succeeded, per second until the last had ended.
    pub tps: f64,
    /// Statements, per second until the last transaction had ended.
    pub qps: f64,
    /// How long it took to connect all clients.
    pub connect_ns: u64,
    /// How late the last thread began.
    pub begin_late_ns: u64,
    /// How late the last thread woke to begin, after its timer.
    pub woke_late_ns: u64,
    /// Every transaction that was taken from the schedule.
    pub scheduled_with_warmup: u64,
    /// Transactions of the warm-up.
    pub settled_in_warmup: u64,
    /// User CPU of the process.
    pub process_user_ns: u64,
    /// System CPU of the process.
    pub process_system_ns: u64,
    /// Clients that had no connection when the time was over.
    pub clients_disconnected: u64,
    /// Attempts to open a lost connection again that failed, by what the server (SQLSTATE) or the machine said.
    pub reconnects_failed: BTreeMap<String, u64>,
    /// What the last of them met.
    pub reconnect_error: Option<String>,
    /// What clients asked for since the beginning, counted by the workload; empty where it counts nothing.
    pub inputs: BTreeMap<&'static str, u64>,
    /// Why the run ended before its time.
    pub ended_by: Option<EndedBy>,
    /// The unit of histograms.
    pub unit: &'static str,
}

/// Why a run ended before its time.
#[derive(Debug, Serialize)]
pub struct EndedBy {
    /// One sentence.
    pub message: String,
    /// What to do.
    pub remedy: String,
    /// A stable name of the error; empty where it has none.
    pub code: String,
    /// What a program may want to know of it.
    pub data: Value,
    /// The statement, if the server refused one.
    #[serde(flatten)]
    pub refused: Option<Refused>,
}

/// A statement that the server refused.
#[derive(Debug, Serialize)]
pub struct Refused {
    /// The name of its script.
    pub script: String,
    /// Its line there; none where it stands in no script, or is not known.
    pub line: Option<u32>,
    /// Its text; none where it is not known, as at the end of a pipeline.
    pub statement: Option<String>,
    /// The server's code.
    pub sqlstate: String,
}

/// Writes a line, and sees that it leaves. A reader that is gone is no error: there is nobody left to tell.
pub fn say(out: &mut impl Write, line: &impl Serialize) {
    let text = serde_json::to_string(line).expect("a line has texts for keys");
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}
