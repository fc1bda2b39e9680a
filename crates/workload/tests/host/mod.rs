//! A host with a virtual clock and a server that answers what a test says.

use pgdyno_workload::*;

/// What the server does.
#[derive(Default)]
pub struct Host {
    answer: Answer,
    /// Which statement, counted from 0 over all sends, fails, and how.
    failure: Option<(usize, SqlState)>,
}

/// What happened.
#[derive(Default)]
pub struct Run {
    /// The statements as the simple protocol would send them; `[` marks pipelined ones, `-` and `]` their ends.
    pub sent: Vec<String>,
    /// The keys that statements said they touch.
    pub keys: Vec<(&'static str, i64)>,
    /// When transactions were over, and how.
    pub finished: Vec<(Nanos, Transaction)>,
    /// Why the client gave up.
    pub aborted: Option<RunError>,
}

impl Host {
    /// How long each statement takes.
    pub const STATEMENT_NS: Nanos = 100_000;

    /// A server that answers each statement with these columns and so many equal rows.
    #[allow(dead_code, reason = "each test binary uses a part of the host")]
    pub fn answering(columns: &[(&str, Option<&str>)], rows: u64) -> Self {
        let mut host = Self::default();
        let set = host.answer.begin_set();
        columns.iter().for_each(|(name, _)| set.column(name));
        for _ in 0..rows {
            set.begin_row();
            columns.iter().for_each(|(_, value)| set.value(value.map(str::as_bytes)));
        }
        host
    }

    /// A server that refuses one statement.
    #[allow(dead_code, reason = "each test binary uses a part of the host")]
    pub fn failing(statement: usize, code: SqlState) -> Self {
        Self { failure: Some((statement, code)), ..Self::default() }
    }
}

/// Runs client 0 for so many transactions.
#[allow(dead_code, reason = "each test binary uses a part of the host")]
pub fn run(workload: &Workload, host: Host, transactions: u64) -> Run {
    run_as(workload, host, transactions, 0)
}

/// Runs one client for so many transactions, with up to three tries each, in a closed loop.
#[allow(dead_code, reason = "each test binary uses a part of the host")]
pub fn run_as(workload: &Workload, host: Host, transactions: u64, client: u32) -> Run {
    let retries = Retries { tries_max: 3, ..Retries::NONE };
    let identity = Identity { seed: 7, client, transactions_max: Some(transactions), retries };
    drive(workload, &host, identity, &mut Arrivals::new(Pattern::Closed(Think::None), 7, 0))
}

/// Runs one client to its end.
pub fn drive(workload: &Workload, host: &Host, identity: Identity, arrivals: &mut Arrivals) -> Run {
    let mut client = workload.client(identity);
    let (mut now, mut run, mut status) = (0, Run::default(), Status::Idle);
    let mut outcome = Outcome::Ready;
    loop {
        outcome = match client.next(now, outcome, arrivals) {
            Next::Send(statement) => {
                let failed = host.failure.filter(|(number, _)| *number == run.sent.len());
                status = record(statement, status, &mut run);
                if statement.pipelined {
                    Outcome::Ready
                } else {
                    now += Host::STATEMENT_NS;
                    match failed {
                        None => Outcome::Succeeded { status, answer: statement.keep.then_some(&host.answer) },
                        Some((_, sqlstate)) => Outcome::Failed { sqlstate, status },
                    }
                }
            }
            Next::Sync { wait } => {
                run.sent.push(if wait { "]" } else { "-" }.to_owned());
                if wait { Outcome::Succeeded { status, answer: None } } else { Outcome::Ready }
            }
            Next::WaitUntil(at) => {
                assert!(at > now, "a wait is for later");
                now = at;
                Outcome::Ready
            }
            Next::Finished(transaction) => {
                run.finished.push((now, transaction));
                Outcome::Ready
            }
            Next::Aborted(error) => {
                run.aborted = Some(error.clone());
                return run;
            }
            Next::Done => return run,
        };
    }
}

fn record(statement: Statement<'_>, status: Status, run: &mut Run) -> Status {
    let mut text = if statement.pipelined { b"[".to_vec() } else { Vec::new() };
    statement.template.write_substituted(statement.parameters, &mut text);
    let text = String::from_utf8(text).expect("the text was one");
    for access in statement.template.accesses() {
        if let Some(index) = access.parameter {
            run.keys.push((access.relation, statement.parameters.integer(index).expect("a key is a number")));
        }
    }
    let after = match text.as_str() {
        "BEGIN" => Status::InTransaction,
        "END" | "COMMIT" | "ROLLBACK" => Status::Idle,
        _ => status,
    };
    run.sent.push(text);
    after
}
