//! The sessions at work, and what is said meanwhile.

use std::collections::BTreeMap;
use std::io::Write;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

use pgdyno_clock::monotonic_ns;
use pgdyno_connection::{Connection, Fault, Server};
use pgdyno_dataset::Table;
use pgdyno_host::{self as host, crew, timespec};
use pgdyno_measure::say;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::Errno;
use serde_json::{Value, json};

use crate::digest::Sent;
use crate::plan::{Plan, Step, What, Work, unit_weight};
use crate::progress::Progress;
use crate::spec::FillSpec;
use crate::undo::undo;

const NS_PER_MS: u64 = 1_000_000;
/// Rows are sent in messages of about this size: a Unix socket holds three of them, so that rows are made while the
/// server takes in those before.
const MESSAGE_BYTES: usize = 64 * 1024;

/// A step that is done.
struct Done {
    what: What,
    table: Option<usize>,
    session: usize,
    begin_ns: u64,
    end_ns: u64,
    /// Rows that were copied, by their table.
    rows: BTreeMap<usize, Sent>,
}

/// What all sessions share.
struct Shared<'a> {
    plan: &'a Plan,
    progress: Progress,
    /// The next job of each stage.
    next: Vec<AtomicUsize>,
    /// Tables that are there for good.
    made: Vec<AtomicBool>,
    /// Whether what the tables stand in was made: then all in it is ours.
    made_around: AtomicBool,
    /// The order to stop, for sessions too.
    stop: Arc<AtomicBool>,
    bell: OwnedFd,
}

/// A session with its number, and where it says what is done.
type Seat = (usize, Connection, Sender<Done>);
type Crew<'a> = host::Crew<'a, Fault>;

/// Fills the server, or removes the tables. Writes JSON lines to `out`: `ready`, `progress` at each interval, `step` for
/// each thing that is done, `summary` at the end.
///
/// An error is returned, after what was made is removed again: a server that cannot be reached or refuses something, or
/// SIGTERM or SIGINT, a thread that the machine does not give, a panic in one.
pub fn run(spec: &FillSpec, out: &mut impl Write) -> Result<(), Fault> {
    spec.check()?;
    let plan = Plan::new(spec);
    let signalled = pgdyno_signals::block().map_err(|error| kernel(&error))?;
    let stop = Arc::new(AtomicBool::new(false));
    let server = &spec.server;
    let count = plan.sessions_max().clamp(1, spec.connections as usize);
    let sessions = (0..count).map(|_| open(server, &stop)).collect::<Result<Vec<_>, _>>()?;
    let server_version = sessions[0].server_version().to_owned();
    let shared = Shared {
        plan: &plan,
        progress: Progress::new(&plan),
        next: plan.stages.iter().map(|_| AtomicUsize::new(0)).collect(),
        made: plan.tables.iter().map(|_| AtomicBool::new(false)).collect(),
        made_around: AtomicBool::new(false),
        stop,
        bell: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(|error| kernel(&error.into()))?,
    };
    let ready = json!({"server_version": server_version, "sessions": count, "begin_ns": shared.progress.begin_ns(),
        "rows_all": plan.rows_expected(), "tables": plan.tables.len()});
    say(out, &json!({"ready": ready}));
    let (report, reports) = channel();
    let seats: Vec<Seat> =
        sessions.into_iter().enumerate().map(|(number, session)| (number, session, report.clone())).collect();
    drop(report);
    let interval_ns = spec.interval_ms.saturating_mul(NS_PER_MS);
    let mut done = Vec::new();
    let filled = crew(
        "fill",
        seats,
        &|| shared.halt(),
        |crew, seat| shared.work(crew, seat),
        |crew| shared.watch(crew, interval_ns, &signalled, &reports, &mut done, out),
    );
    if let Err(failure) = filled {
        let made = plan.tables.iter().zip(&shared.made).filter(|(_, made)| made.load(Ordering::Relaxed));
        let names: Vec<&str> = made.map(|(table, _)| table.name.as_str()).collect();
        let around = shared.made_around.load(Ordering::Relaxed).then(|| spec.tables.set().drops());
        return Err(undo(server, &names, around, failure));
    }
    say(out, &json!({"summary": shared.summary(&done, count)}));
    Ok(())
}

/// Opens a session whose commits are on disk when they are told, whatever the server's setting: a vacuum freezes only rows
/// of which that is known, and there are few commits.
fn open(server: &Server, stop: &Arc<AtomicBool>) -> Result<Connection, Fault> {
    let mut session = Connection::open(server, stop)?;
    session.query("SET synchronous_commit = on")?;
    Ok(session)
}

impl Shared<'_> {
    /// One session: takes jobs of a stage until there are none, waits for the others, goes on with the next stage.
    fn work(&self, crew: &Crew<'_>, seat: Seat) -> Result<(), Fault> {
        let (number, mut session, report) = seat;
        for (stage, next) in self.plan.stages.iter().zip(&self.next) {
            while !crew.stops() {
                let Some(job) = stage.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
                self.job(number, &mut session, job, &report)?;
            }
            if !crew.meet() {
                break;
            }
        }
        drop(report);
        self.ring();
        Ok(())
    }

    /// Ends what sessions wait for, and wakes the one that watches them.
    fn halt(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.ring();
    }

    fn job(&self, number: usize, session: &mut Connection, job: &[Step], report: &Sender<Done>) -> Result<(), Fault> {
        for step in job {
            let begin_ns = monotonic_ns();
            self.progress.begin(step);
            let rows = self.step(session, step)?;
            self.progress.end(step);
            match step.table {
                Some(table) if step.creates => self.made[table].store(true, Ordering::Relaxed),
                None if step.what == What::Create => self.made_around.store(true, Ordering::Relaxed),
                _ => (),
            }
            let end_ns = monotonic_ns();
            let done = Done { what: step.what, table: step.table, session: number, begin_ns, end_ns, rows };
            // It is received as long as there are sessions.
            let _ = report.send(done);
            self.ring();
        }
        Ok(())
    }

    /// Does a step, and returns the rows that it wrote into which table.
    fn step(&self, session: &mut Connection, step: &Step) -> Result<BTreeMap<usize, Sent>, Fault> {
        let (before, freeze, after): (&[String], bool, &[String]) = match &step.work {
            Work::Statements(statements) => (statements, false, &[]),
            Work::Copy { before, freeze, after, .. } => (before, *freeze, after),
            Work::Batches { .. } | Work::First(_) => (&[], false, &[]),
        };
        let mut rows = BTreeMap::<usize, Sent>::new();
        all(session, before)?;
        for batch in step.batches() {
            let table = &self.plan.tables[batch.table];
            let written = if self.plan.inserts {
                self.insert(session, table, batch.units)?
            } else {
                self.copy(session, table, batch.units, freeze)?
            };
            *rows.entry(batch.table).or_default() += written;
        }
        all(session, after)?;
        Ok(rows)
    }

    /// Copies the rows of some units, and returns them.
    fn copy(
        &self,
        session: &mut Connection,
        table: &Table,
        mut units: Range<u64>,
        freeze: bool,
    ) -> Result<Sent, Fault> {
        let columns = table.rows.columns().map(|names| format!(" ({names})")).unwrap_or_default();
        let sql = format!("COPY {}{columns} FROM STDIN{}", table.name, if freeze { " WITH (FREEZE)" } else { "" });
        let weight = unit_weight(table);
        let mut sent = Sent::default();
        let taken = session.copy_in(&sql, |out| {
            let first = units.start;
            let rows = table.rows.write_until(MESSAGE_BYTES, &mut units, out);
            self.progress.copied((units.start - first) * weight, rows, out.len() as u64);
            sent += Sent::of(rows, out);
            !units.is_empty()
        })?;
        if taken == sent.rows && units.is_empty() { Ok(sent) } else { Err(kept_out(table, taken, sent.rows)) }
    }

    /// Inserts the rows of some units by one statement, and returns them.
    fn insert(&self, session: &mut Connection, table: &Table, mut units: Range<u64>) -> Result<Sent, Fault> {
        let columns = table.rows.columns().map(|names| format!(" ({names})")).unwrap_or_default();
        let (count, mut text) = (units.end - units.start, Vec::new());
        let rows = table.rows.write_until(usize::MAX, &mut units, &mut text);
        let sent = Sent::of(rows, &text);
        let text = String::from_utf8(text).expect("rows are text");
        let values: Vec<String> = text.lines().map(literals).collect();
        let found = session.query(&format!("INSERT INTO {}{columns} VALUES {}", table.name, values.join(", ")))?;
        self.progress.copied(count * unit_weight(table), rows, text.len() as u64);
        let taken = found.affected().unwrap_or_default();
        if taken == rows { Ok(sent) } else { Err(kept_out(table, taken, rows)) }
    }

    fn ring(&self) {
        // It can only fail when nobody has listened for 2^64 times.
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }

    /// Says what happens until all sessions have ended; stops them when a signal comes.
    fn watch(
        &self,
        crew: &Crew<'_>,
        interval_ns: u64,
        signalled: &OwnedFd,
        reports: &Receiver<Done>,
        done: &mut Vec<Done>,
        out: &mut impl Write,
    ) -> Result<(), Fault> {
        let mut before = self.progress.seen();
        let mut due_ns = self.progress.begin_ns().saturating_add(interval_ns);
        loop {
            if wait(&self.bell, (!crew.stops()).then_some(signalled), due_ns).map_err(|error| kernel(&error))? {
                crew.fail(Fault::new("interrupted", "run the command again").coded("fill.interrupted", Value::Null));
            }
            let ended = loop {
                match reports.try_recv() {
                    Ok(step) => {
                        say(out, &json!({"step": self.document(&step)}));
                        done.push(step);
                    }
                    Err(TryRecvError::Empty) => break false,
                    Err(TryRecvError::Disconnected) => break true,
                }
            };
            if monotonic_ns() >= due_ns || ended {
                let now = self.progress.seen();
                say(out, &json!({"progress": self.progress.document(before, now)}));
                before = now;
                let late = monotonic_ns().saturating_sub(due_ns) / interval_ns;
                due_ns = due_ns.saturating_add(interval_ns.saturating_mul(late + 1));
            }
            if ended {
                return Ok(());
            }
        }
    }

    fn document(&self, done: &Done) -> Value {
        let table = done.table.map(|number| &self.plan.tables[number].name);
        json!({"what": done.what.name(), "table": table, "session": done.session, "begin_ns": done.begin_ns,
            "end_ns": done.end_ns, "rows": done.rows.values().map(|sent| sent.rows).sum::<u64>()})
    }

    fn summary(&self, done: &[Done], sessions: usize) -> Value {
        let mut sent = vec![Sent::default(); self.plan.tables.len()];
        for (&table, &more) in done.iter().flat_map(|step| &step.rows) {
            sent[table] += more;
        }
        let by_table = || self.plan.tables.iter().map(|table| table.name.as_str()).zip(&sent);
        let rows: BTreeMap<&str, u64> = by_table().map(|(name, sent)| (name, sent.rows)).collect();
        let digests: BTreeMap<&str, String> =
            by_table().map(|(name, sent)| (name, format!("{:016x}", sent.digest))).collect();
        let spans: BTreeMap<&str, u64> = What::ALL
            .into_iter()
            .map(|what| (what.name(), covered_ns(done.iter().filter(|step| step.what == what))))
            .filter(|(_, covered)| *covered > 0)
            .collect();
        json!({"begin_ns": self.progress.begin_ns(), "end_ns": monotonic_ns(), "sessions": sessions, "rows": rows,
            "rows_all": sent.iter().map(|sent| sent.rows).sum::<u64>(), "digests": digests, "bytes": self.progress.bytes(), "ns": spans})
    }
}

/// A line of COPY's text format without backslashes, as the values of an INSERT.
fn literals(line: &str) -> String {
    let quoted = line.split('\t').map(|value| format!("'{}'", value.replace('\'', "''")));
    format!("({})", quoted.collect::<Vec<_>>().join(", "))
}

fn kept_out(table: &Table, taken: u64, sent: u64) -> Fault {
    Fault::new(
        format!("the server took {taken} rows of {}, and {sent} were sent", table.name),
        "look for a trigger or a rule that keeps rows out",
    )
}

/// How long at least one of the steps was under way.
fn covered_ns<'a>(steps: impl Iterator<Item = &'a Done>) -> u64 {
    let mut spans: Vec<(u64, u64)> = steps.map(|step| (step.begin_ns, step.end_ns)).collect();
    spans.sort_unstable();
    let mut until = 0;
    let covered = spans.into_iter().map(|(begin, end)| {
        let new = end.saturating_sub(begin.max(until));
        until = until.max(end);
        new
    });
    covered.sum()
}

fn all(session: &mut Connection, statements: &[String]) -> Result<(), Fault> {
    statements.iter().try_for_each(|sql| session.query(sql).map(drop))
}

/// Waits for the bell, a signal, or an instant. True when there was a signal.
fn wait(bell: &OwnedFd, signalled: Option<&OwnedFd>, until_ns: u64) -> std::io::Result<bool> {
    let left = timespec(until_ns.saturating_sub(monotonic_ns()));
    let mut watched: Vec<PollFd<'_>> =
        [Some(bell), signalled].into_iter().flatten().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
    match poll(&mut watched, Some(&left)) {
        Err(Errno::INTR) => return Ok(false),
        other => other?,
    };
    let told = watched.get(1).is_some_and(|signal| !signal.revents().is_empty());
    let mut rung = [0_u8; 8];
    let _ = rustix::io::read(bell, &mut rung);
    Ok(told)
}

fn kernel(error: &std::io::Error) -> Fault {
    host::Fault::of_kernel("the sessions cannot be watched", error).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(begin_ns: u64, end_ns: u64) -> Done {
        Done { what: What::Copy, table: None, session: 0, begin_ns, end_ns, rows: BTreeMap::new() }
    }

    #[test]
    fn a_row_is_written_as_values() {
        assert_eq!(literals("1\tit's\t"), "('1', 'it''s', '')");
    }

    #[test]
    fn what_several_sessions_do_at_the_same_time_is_counted_once() {
        let steps = [done(30, 40), done(0, 10), done(5, 20), done(6, 7)];
        assert_eq!(covered_ns(steps.iter()), 30);
        assert_eq!(covered_ns([].iter()), 0);
    }
}
