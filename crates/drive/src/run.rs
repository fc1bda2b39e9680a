//! The whole of a run: connect, drive, add up, say.

use std::io::Write;
use std::sync::mpsc::{Receiver, channel};

use pgdyno_workload::Arrivals;
use rustix::event::{EventfdFlags, eventfd};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};

use crate::clock::{Clock, process_cpu_ns};
use crate::conninfo::ConnInfo;
use crate::error::DriveError;
use crate::link::Link;
use crate::login::{Session, log_in};
use crate::reconnect::Reconnect;
use crate::record::{Account, Record};
use crate::spec::DriveSpec;
use crate::worker::{Crew, Report, Shared, Slot, Worker};
use crate::workload::Workload;

const NS_PER_MS: u64 = 1_000_000;

/// Says what would be driven, and connects to nothing: `{"scripts": [NAME, ...], "statements": [TEXT, ...]}`.
///
/// What is wrong with the specification or a script of it is returned, the latter with line and column.
pub fn check(spec: &DriveSpec) -> Result<Value, DriveError> {
    spec.check()?;
    let workload = Workload::new(spec)?;
    Ok(json!({"scripts": workload.scripts, "statements": workload.groups.texts}))
}

/// Drives the server until the time is over, or SIGTERM or SIGINT. Writes JSON lines to `out`: `ready` when every
/// client is connected, `second` for each second, `summary` at the end.
///
/// An error that ends the run is returned: a server that cannot be reached at the beginning, or that refuses a
/// statement for a reason that will not go away. Lost connections are made anew and are no error.
pub fn run(spec: &DriveSpec, out: &mut impl Write) -> Result<(), DriveError> {
    spec.check()?;
    let workload = Workload::new(spec)?;
    let signalled = pgdyno_signals::block().map_err(|error| kernel(&error))?;
    let to = ConnInfo::resolve(&spec.server, |name| std::env::var(name).ok().filter(|value| !value.is_empty()))?;
    let connecting = Clock::start();
    raise_limit();
    let sessions = connect(spec, &workload, &to)?;
    let connect_ns = connecting.now();
    let server_version = sessions.first().map(|session| session.server_version.clone());
    let ring = eventfd(0, EventfdFlags::CLOEXEC).map_err(|error| kernel(&error.into()))?;
    let bell = ring.try_clone().map_err(|error| kernel(&error))?;
    let end_ns = spec.end_ns();
    let shared = Shared {
        clock: Clock::start(),
        names: (0..workload.statements).map(|id| format!("p{id}")).collect(),
        protocol: workload.protocol,
        groups: workload.groups.of.clone(),
        forgiven: workload.forgiven(),
        stop: [signalled, ring],
        end_ns,
        drain_ns: end_ns + spec.drain_ms * NS_PER_MS,
        grid_ns: spec.warmup_ms * NS_PER_MS,
        continue_on_error: spec.continue_on_error,
        connects: workload.connects(),
    };
    let crews = crews(spec, &workload, &to, sessions)?;
    let mut sum = Sum::new(spec, &workload, shared.clock, connect_ns);
    say(
        out,
        &json!({"ready": {"clients": spec.clients, "connect_ns": connect_ns, "server_version": server_version,
        "begin_ns": shared.clock.monotonic_ns(0), "seed": spec.seed}}),
    );
    std::thread::scope(|scope| {
        let (report, reports) = channel();
        for (index, crew) in crews.into_iter().enumerate() {
            let worker = Worker::new(&shared, index, crew, report.clone()).map_err(|error| kernel(&error))?;
            let thread = std::thread::Builder::new().name(format!("drive {index}"));
            thread.spawn_scoped(scope, || worker.run()).map_err(|error| kernel(&error))?;
        }
        drop(report);
        sum.add_up(&reports, out, || {
            let _ = rustix::io::write(&bell, &1_u64.to_ne_bytes());
        })
    })?;
    sum.finish(out)
}

/// Each client takes a descriptor, and the usual limit of 1,024 is there for programs that use select(2).
fn raise_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

fn connect(spec: &DriveSpec, workload: &Workload, to: &ConnInfo) -> Result<Vec<Session>, DriveError> {
    let wanted = if workload.connects() { spec.clients } else { 0 };
    (0..wanted).map(|_| log_in(to).map_err(|error| error.into_error(to))).collect()
}

/// Divides clients and schedule among the threads.
fn crews(
    spec: &DriveSpec,
    workload: &Workload,
    to: &ConnInfo,
    sessions: Vec<Session>,
) -> Result<Vec<Crew>, DriveError> {
    let mut sessions = sessions.into_iter();
    let mut next = 0;
    let crew = |thread: u32| {
        let last = u64::from(spec.clients) * u64::from(thread + 1) / u64::from(spec.threads);
        let numbers = next..last as u32;
        next = numbers.end;
        let share = numbers.len() as f64 / f64::from(spec.clients);
        let ahead = f64::from(spec.threads - 1 - thread) / f64::from(spec.threads);
        let mut arrivals = Arrivals::new(spec.pattern(share), spec.seed, thread).ahead(ahead).until(spec.end_ns());
        if let Some(late_max_ms) = spec.late_max_ms {
            arrivals = arrivals.late_max_ns(late_max_ms * NS_PER_MS);
        }
        let slot = |number| {
            let session = sessions.next();
            let link = session.map(|session| Link::new(session, workload.protocol, workload.statements));
            Slot::new(workload.client(number), link)
        };
        Ok(Crew {
            slots: numbers.map(slot).collect(),
            arrivals,
            reconnect: workload.connects().then(|| Reconnect::start(to)).transpose()?,
            record: Record::new(workload.scripts.len(), workload.groups.texts.len(), 0),
        })
    };
    (0..spec.threads).map(crew).collect()
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
    cpu_before_ns: (u64, u64),
}

impl<'a> Sum<'a> {
    fn new(spec: &DriveSpec, workload: &'a Workload, clock: Clock, connect_ns: u64) -> Self {
        let warmup_ns = spec.warmup_ms * NS_PER_MS;
        Self {
            workload,
            clock,
            connect_ns,
            warmup_ns,
            seconds: (0..spec.threads).map(|_| Vec::new()).collect(),
            warmup: Account::default(),
            whole: Record::new(workload.scripts.len(), workload.groups.texts.len(), warmup_ns),
            scheduled: 0,
            cpu_before_ns: process_cpu_ns(),
        }
    }

    /// Takes reports until all threads are done; the first failure stops the others and is returned.
    fn add_up(&mut self, reports: &Receiver<Report>, out: &mut impl Write, stop: impl Fn()) -> Result<(), DriveError> {
        let mut failure = None;
        for report in reports {
            match report {
                Report::Second(thread, record) => {
                    self.seconds[thread].push(*record);
                    if self.seconds.iter().all(|waiting| !waiting.is_empty()) {
                        let parts: Vec<_> = self.seconds.iter_mut().map(|waiting| waiting.remove(0)).collect();
                        self.second(parts, out);
                    }
                }
                Report::End { last, scheduled } => {
                    self.scheduled += scheduled;
                    self.rest(*last);
                }
                Report::Failure(error) => {
                    stop();
                    failure.get_or_insert(error);
                }
            }
        }
        failure.map_or(Ok(()), Err)
    }

    /// A second of which all threads have told.
    fn second(&mut self, parts: Vec<Record>, out: &mut impl Write) {
        let mut parts = parts.into_iter();
        let Some(mut all) = parts.next() else { return };
        parts.for_each(|part| all.add(&part));
        self.count(&all);
        self.say_stretch("second", &all, out);
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

    fn say_stretch(&self, what: &str, record: &Record, out: &mut impl Write) {
        let mut document = record.document(&self.workload.scripts, &self.workload.groups);
        document.insert("warmup".to_owned(), json!(record.end_ns <= self.warmup_ns));
        document.insert("begin_ns".to_owned(), json!(self.clock.monotonic_ns(record.begin_ns)));
        document.insert("end_ns".to_owned(), json!(self.clock.monotonic_ns(record.end_ns)));
        say(out, &json!({what: document}));
    }

    /// Says the whole, after proving that nothing that was scheduled is missing from it.
    fn finish(mut self, out: &mut impl Write) -> Result<(), DriveError> {
        for waiting in std::mem::take(&mut self.seconds) {
            waiting.iter().for_each(|record| self.count(record));
        }
        let account = self.whole.account();
        let settled = account.settled() + self.warmup.settled();
        assert_eq!(self.scheduled, settled, "scheduled = skipped + succeeded + failed");
        let (user, system) = process_cpu_ns();
        let mut document = self.whole.document(&self.workload.scripts, &self.workload.groups);
        let elapsed_s = self.whole.end_ns.saturating_sub(self.warmup_ns).max(1) as f64 / 1e9;
        let more = [
            ("begin_ns", json!(self.clock.monotonic_ns(self.warmup_ns))),
            ("end_ns", json!(self.clock.monotonic_ns(self.whole.end_ns))),
            ("tps", json!(account.succeeded as f64 / elapsed_s)),
            ("qps", json!(self.whole.queries_total() as f64 / elapsed_s)),
            ("connect_ns", json!(self.connect_ns)),
            ("scheduled_with_warmup", json!(self.scheduled)),
            ("settled_in_warmup", json!(self.warmup.settled())),
            ("process_user_ns", json!(user - self.cpu_before_ns.0)),
            ("process_system_ns", json!(system - self.cpu_before_ns.1)),
            ("unit", json!("us")),
        ];
        document.extend(more.map(|(key, value)| (key.to_owned(), value)));
        say(out, &json!({"summary": document}));
        Ok(())
    }
}

fn say(out: &mut impl Write, line: &Value) {
    // Whoever listened may be gone; there is nobody left to tell.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

fn kernel(error: &std::io::Error) -> DriveError {
    DriveError::new(format!("the kernel refused a descriptor or a thread: {error}"), "look at the limits of both")
}
