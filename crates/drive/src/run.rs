//! The whole of a run: connect, drive, add up, say.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};

use pgdyno_host::{self as host, crew, raise_open_files};
use pgdyno_measure::{Account, Line, Ready, Record, Second, Stretch, Summary, say};
use pgdyno_workload::{StatementId, Workload};
use rustix::event::{EventfdFlags, eventfd};
use serde_json::{Value, json};

use crate::begin::Teller;
use crate::clock::{Clock, process_cpu_ns};
use crate::ending::Ending;
use crate::reconnect::Failures;
use crate::seats::seats;
use crate::spec::{BeginSpec, DriveSpec};
use crate::worker::{Report, Shared, Worker};
use pgdyno_connection::Fault;
use pgdyno_connection::Server;
use pgdyno_connection::{Session, log_in};

const NS_PER_MS: u64 = 1_000_000;

/// Says what would be driven, and connects to nothing: `{"scripts": [NAME, ...], "statements": [TEXT, ...], "sent":
/// [{"script", "line", "text"}, ...]}`, the last with every statement that stands in a script, its parameters as `$1`, `$2`, ….
///
/// What is wrong with the specification or a script of it is returned, the latter with line and column.
pub fn check(spec: &DriveSpec) -> Result<Value, Fault> {
    let workload = spec.workload()?;
    spec.protocol(&workload)?;
    let names: Vec<&str> = workload.scripts().iter().map(|script| script.name.as_str()).collect();
    let sent: Vec<Value> = (0..)
        .map(StatementId)
        .zip(workload.statements())
        .filter_map(|(id, template)| {
            let (script, at) = workload.place_of(id)?;
            Some(json!({"script": script, "line": at.line, "text": template.numbered()}))
        })
        .collect();
    Ok(json!({"scripts": names, "statements": workload.groups().texts, "sent": sent}))
}

/// Drives the server until the time is over, or SIGTERM or SIGINT. Writes JSON lines to `out`: `ready` when every
/// client is connected, `second` for each second, `summary` at the end. Where the instant to begin at is given
/// later, `line` reads further lines: with it, and with questions about the clock before it and after the summary.
///
/// An error before anything was begun is returned, as of a server that cannot be reached or a thread that cannot be had. A statement that the server refuses
/// for a reason that will not go away ends the run before its time: what was done until then is in the summary, which says in
/// `ended_by` why it ended, and that is returned too. Lost connections are opened again and are no error.
pub fn run(
    spec: &DriveSpec,
    line: impl FnMut() -> io::Result<String> + Send + 'static,
    out: &mut impl Write,
) -> Result<Option<Fault>, Fault> {
    let workload = spec.workload()?;
    let (protocol, retries) = (spec.protocol(&workload)?, workload.retries(spec.tries_max));
    let signalled = pgdyno_signals::block().map_err(|error| kernel(&error))?;
    let to = server_of(spec, &workload)?;
    let connecting = Clock::start();
    raise_open_files();
    let sessions = connect(spec, to)?;
    let connect_ns = connecting.now();
    let server_version = sessions.first().map(|session| session.server_version.clone());
    let seats = seats(spec, &workload, (protocol, retries), to, sessions)?;
    let ring = eventfd(0, EventfdFlags::CLOEXEC).map_err(|error| kernel(&error.into()))?;
    let bell = ring.try_clone().map_err(|error| kernel(&error))?;
    let ready = |begin_ns| Ready { clients: spec.clients, connect_ns, server_version, begin_ns, seed: spec.seed };
    let (clock, ready, teller) = match spec.begin {
        BeginSpec::Now => (Clock::start(), Some(ready), None),
        BeginSpec::Told { within_ms } => {
            let teller = Teller::listen(line, within_ms)?;
            say(out, &Line::Ready(ready(None)));
            (Clock::from(teller.instant(&signalled, out)?), None, Some(teller))
        }
    };
    let end_ns = spec.end_ns();
    let shared = Shared {
        clock,
        names: (0..workload.statements().len()).map(|id| format!("p{id}")).collect(),
        protocol,
        groups: workload.groups().of.clone(),
        forgiven: retries.codes,
        stop: [signalled, ring],
        failed: AtomicBool::new(false),
        end_ns,
        drain_ns: end_ns.saturating_add(spec.drain_ms.saturating_mul(NS_PER_MS)),
        grid_ns: spec.warmup_ms.saturating_mul(NS_PER_MS),
        continue_on_error: spec.continue_on_error,
        connects: workload.connects(),
    };
    let mut sum = Sum::new(spec, &workload, shared.clock, connect_ns);
    if let Some(ready) = ready {
        say(out, &Line::Ready(ready(Some(clock.monotonic_ns(0)))));
    }
    let (report, reports) = channel();
    let worker = |(index, seat)| Worker::new(&shared, index, seat, report.clone()).map_err(|error| kernel(&error));
    let workers = seats.into_iter().enumerate().map(worker).collect::<Result<Vec<_>, Fault>>()?;
    drop(report);
    let stop = || {
        let _ = rustix::io::write(&bell, &1_u64.to_ne_bytes());
    };
    let halt = || {
        shared.failed.store(true, Ordering::Relaxed);
        stop();
    };
    crew(
        "drive",
        workers,
        &halt,
        |_, worker| worker.run(),
        |_| {
            sum.add_up(&reports, out, stop);
            Ok::<(), Fault>(())
        },
    )?;
    let ending = sum.finish(out)?;
    if let Some(teller) = teller {
        teller.end(&shared.stop[0], out);
    }
    Ok(ending)
}

/// Where clients connect to; none for those that need no session.
fn server_of<'a>(spec: &'a DriveSpec, workload: &Workload) -> Result<Option<&'a Server>, Fault> {
    if workload.connects() && spec.server.is_none() {
        return Err(Fault::new("the specification names no server", "name one, or drive idle clients"));
    }
    Ok(spec.server.as_ref().filter(|_| workload.connects()))
}

fn connect(spec: &DriveSpec, to: Option<&Server>) -> Result<Vec<Session>, Fault> {
    let Some(to) = to else { return Ok(Vec::new()) };
    (0..spec.clients).map(|_| log_in(to).map_err(|error| error.into_fault(to))).collect()
}

/// What all threads come to.
struct Sum<'a> {
    workload: &'a Workload,
    clock: Clock,
    connect_ns: u64,
    warmup_ns: u64,
    seconds: Vec<Vec<Record>>,
    warmup: Account,
    whole: Record,
    scheduled: u64,
    disconnected: u64,
    begin_late_ns: u64,
    woke_late_ns: u64,
    inputs: BTreeMap<&'static str, u64>,
    failures: Failures,
    ending: Option<Ending>,
    cpu_before_ns: (u64, u64),
}

impl<'a> Sum<'a> {
    fn new(spec: &DriveSpec, workload: &'a Workload, clock: Clock, connect_ns: u64) -> Self {
        let warmup_ns = spec.warmup_ms.saturating_mul(NS_PER_MS);
        Self {
            workload,
            clock,
            connect_ns,
            warmup_ns,
            seconds: (0..spec.threads).map(|_| Vec::new()).collect(),
            warmup: Account::default(),
            whole: Record::new(workload.scripts().len(), workload.groups().texts.len(), warmup_ns),
            scheduled: 0,
            disconnected: 0,
            begin_late_ns: 0,
            woke_late_ns: 0,
            inputs: BTreeMap::new(),
            failures: Failures::default(),
            ending: None,
            cpu_before_ns: process_cpu_ns(),
        }
    }

    /// Takes reports until all threads are done; the first that ends the run stops the others.
    fn add_up(&mut self, reports: &Receiver<Report>, out: &mut impl Write, stop: impl Fn()) {
        for report in reports {
            match report {
                Report::Second(thread, record) => {
                    self.seconds[thread].push(*record);
                    if self.seconds.iter().all(|waiting| !waiting.is_empty()) {
                        let parts: Vec<_> = self.seconds.iter_mut().map(|waiting| waiting.remove(0)).collect();
                        self.second(parts, out);
                    }
                }
                Report::Ending(ending) => {
                    stop();
                    self.ending.get_or_insert(ending);
                }
                Report::End { last, scheduled, disconnected, begin_late_ns, woke_late_ns, inputs, failures } => {
                    self.failures.add(failures);
                    inputs.into_iter().for_each(|(name, count)| *self.inputs.entry(name).or_default() += count);
                    self.scheduled += scheduled;
                    self.disconnected += disconnected;
                    self.begin_late_ns = self.begin_late_ns.max(begin_late_ns);
                    self.woke_late_ns = self.woke_late_ns.max(woke_late_ns);
                    self.rest(*last);
                }
            }
        }
    }

    /// A second of which all threads have told.
    fn second(&mut self, parts: Vec<Record>, out: &mut impl Write) {
        let mut parts = parts.into_iter();
        let Some(mut all) = parts.next() else { return };
        parts.for_each(|part| all.add(&part));
        self.count(&all);
        let (stretch, warmup) = (self.stretch(&all, all.begin_ns), all.end_ns <= self.warmup_ns);
        say(out, &Line::Second(Box::new(Second { stretch, warmup })));
    }

    /// Seconds that not all threads had, since some were done before.
    fn rest(&mut self, last: Record) {
        self.count(&last);
    }

    fn count(&mut self, record: &Record) {
        if record.end_ns <= self.warmup_ns {
            self.warmup.add(&record.account());
        } else {
            self.whole.add(record);
        }
    }

    fn stretch(&self, record: &Record, begin_ns: u64) -> Stretch {
        let (begin_ns, end_ns) = (self.clock.monotonic_ns(begin_ns), self.clock.monotonic_ns(record.end_ns));
        record.stretch(self.workload.scripts(), self.workload.groups(), begin_ns, end_ns)
    }

    /// Says the whole, after proving that nothing that was scheduled is missing from it.
    fn finish(mut self, out: &mut impl Write) -> Result<Option<Fault>, Fault> {
        for waiting in std::mem::take(&mut self.seconds) {
            waiting.iter().for_each(|record| self.count(record));
        }
        let account = self.whole.account();
        let settled = account.settled() + self.warmup.settled();
        assert_eq!(self.scheduled, settled, "scheduled = skipped + succeeded + rolled back + failed");
        let (user, system) = process_cpu_ns();
        let elapsed_s = self.whole.end_ns.saturating_sub(self.warmup_ns).max(1) as f64 / 1e9;
        let summary = Summary {
            stretch: self.stretch(&self.whole, self.warmup_ns),
            tps: account.succeeded as f64 / elapsed_s,
            qps: self.whole.queries_total() as f64 / elapsed_s,
            connect_ns: self.connect_ns,
            begin_late_ns: self.begin_late_ns,
            woke_late_ns: self.woke_late_ns,
            scheduled_with_warmup: self.scheduled,
            settled_in_warmup: self.warmup.settled(),
            process_user_ns: user - self.cpu_before_ns.0,
            process_system_ns: system - self.cpu_before_ns.1,
            clients_disconnected: self.disconnected,
            reconnects_failed: self.failures.counts,
            reconnect_error: self.failures.last,
            inputs: self.inputs,
            ended_by: self.ending.as_ref().map(|ending| ending.ended_by(self.workload)),
            unit: "us",
        };
        say(out, &Line::Summary(Box::new(summary)));
        Ok(self.ending.map(|ending| ending.fault(self.workload)))
    }
}

fn kernel(error: &io::Error) -> Fault {
    host::Fault::of_kernel("clients cannot be watched", error).into()
}
