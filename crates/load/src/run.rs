//! A load from its beginning to its end, and again when the server was lost.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use pgdyno_connection::Connection;
use pgdyno_host as host;
use rustix::io::Errno;
use serde_json::{Value, json};

use crate::counters::Totals;
use crate::error::LoadError;
use crate::ledger::{self, Chunks, Start, statement};
use crate::read::source::Source;
use crate::send::scaler::{Change, SessionScaler};
use crate::send::sessions::{Event, Sessions, spawn};
use crate::shared::Shared;
use crate::spec::LoadSpec;
use crate::usage::Usage;

/// Between two looks whether a server is back.
const RETRY: Duration = Duration::from_millis(500);
/// Between two looks whether a job is free.
const LOCK_RETRY: Duration = Duration::from_millis(50);
/// How long a server takes at most to see that a session is gone which it does not work for.
const LOCK_MAX: Duration = Duration::from_secs(3);

/// Loads files into a table. Writes JSON lines to `out`: `begin`, `progress` at each interval, `end`; and `lost` when the
/// server went away and is waited for.
///
/// # Errors
/// What cannot be read or loaded; whatever is in the ledger stays in the table. SIGTERM and SIGINT, and that no process reads
/// `out`: chunks under way are cancelled.
pub fn load(spec: &LoadSpec, out: &mut impl Write) -> Result<(), LoadError> {
    spec.check()?;
    let signalled =
        pgdyno_signals::block().map_err(|error| host::Fault::of_kernel("signals cannot be watched", &error))?;
    let (tell, told) = channel();
    listen(signalled, tell.clone())?;
    let sources = spec.sources.iter().map(Source::inspect).collect::<Result<Vec<_>, _>>()?;
    let may_again = spec.ledger.is_some() && sources.iter().all(Source::can_be_read_again);
    let (begun, known) = (Instant::now(), Chunks::new());
    let mut run = Run { spec, sources, out, tell, told, begun, reached: false, lost: None, known, start: None };
    loop {
        match run.attempt() {
            Ok(()) => return Ok(()),
            Err(error) if error.absent && may_again && run.reached => run.wait_for_server(error)?,
            Err(error) => return Err(error),
        }
    }
}

/// Tells when a signal comes. The thread ends with the process.
fn listen(signalled: OwnedFd, tell: Sender<Event>) -> Result<(), LoadError> {
    spawn("signal", move || {
        let mut what = [0_u8; 128];
        while rustix::io::read(&signalled, &mut what) == Err(Errno::INTR) {}
        let _ = tell.send(Event::Stop);
    })?;
    Ok(())
}

struct Run<'a, W> {
    spec: &'a LoadSpec,
    sources: Vec<Source>,
    out: &'a mut W,
    tell: Sender<Event>,
    told: Receiver<Event>,
    begun: Instant,
    /// Whether there was a server at all.
    reached: bool,
    /// When the server went away, if nothing was loaded since.
    lost: Option<Instant>,
    /// Chunks that were in the ledger when they were last looked at, or were committed since.
    known: Chunks,
    /// When the server began, at that time.
    start: Option<Start>,
}

impl<W: Write> Run<'_, W> {
    /// One try, from what the ledger says.
    fn attempt(&mut self) -> Result<(), LoadError> {
        let mut control = Connection::open(&self.spec.server, &Arc::new(AtomicBool::new(false)))?;
        self.reached = true;
        let shared = Arc::new(self.prepare(&mut control)?);
        let before = shared.counters.totals();
        let loaded = self.work(&shared).and_then(|sessions| finish(&shared, &mut control).map(|()| sessions));
        self.known = shared.known();
        if shared.counters.totals() != before {
            self.lost = None;
        }
        // Rows that were rejected can be looked at after an error too; the error is what is reported.
        let joined = shared.rejects.as_ref().map_or(Ok(Vec::new()), |all| all.join(|source| shared.header(source)));
        if let Some(rejects) = &shared.rejects {
            if (loaded.is_ok() || self.spec.ledger.is_none()) && joined.is_ok() {
                rejects.tidy()?;
            }
            rejects.leave();
        }
        let (sessions, reject_files) = (loaded?, joined?);
        self.end(&shared, sessions, &reject_files);
        Ok(())
    }

    /// Takes the job, and reads what is done of it.
    fn prepare(&mut self, control: &mut Connection) -> Result<Shared, LoadError> {
        let done = match &self.spec.ledger {
            None => Chunks::new(),
            Some(ledger) => {
                self.lock(control, ledger.job)?;
                let start = ledger::start(control)?;
                let done = ledger::read(control, ledger, self.sources.len())?;
                // A server that crashed may have lost the last commits, rows and lines; one that did not has lost none.
                if self.start.as_ref() == Some(&start) {
                    ledger::require_all(ledger, &self.known, &done)?;
                }
                self.start = Some(start);
                done
            }
        };
        let version = control.server_version().to_owned();
        let major = version.split(|c: char| !c.is_ascii_digit()).next().and_then(|number| number.parse().ok());
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let shared = Shared::new(self.spec, self.sources.clone(), major.unwrap_or_default(), cores, done)?;
        for chunk in shared.done.values() {
            shared.counters.committed(chunk.end - chunk.begin, chunk.rows_loaded, chunk.rows_rejected);
        }
        let Totals { chunks, rows_loaded, .. } = shared.counters.totals();
        let source = |source: &Source| json!({"name": source.name, "bytes_stored": source.stored_bytes(), "compression": source.compression});
        let sources: Vec<Value> = self.sources.iter().map(source).collect();
        self.say(&json!({"event": "begin", "server_version": version, "sources": sources, "chunks_done": chunks,
            "rows_done": rows_loaded}));
        Ok(shared)
    }

    /// Takes a job for this process alone. The sessions of a loader that was killed may hold it a little longer.
    fn lock(&self, control: &mut Connection, job: i64) -> Result<(), LoadError> {
        let since = Instant::now();
        loop {
            let told = control.query(&statement::lock(job))?;
            if told.rows.into_iter().flatten().flatten().any(|free| free == "t") {
                return Ok(());
            }
            if since.elapsed() > LOCK_MAX {
                let message = format!("another loader is working on job {job}");
                return Err(LoadError::new(message, "wait for it, or end it: pg_locks has its process (advisory)"));
            }
            if let Ok(Event::Stop) = self.told.recv_timeout(LOCK_RETRY) {
                return Err(LoadError::stopped());
            }
        }
    }

    /// Loads everything that is not done. Returns how many sessions did that at last.
    fn work(&mut self, shared: &Arc<Shared>) -> Result<usize, LoadError> {
        let mut sessions = Sessions::start(shared, &self.tell)?;
        let sessions_min = self.spec.connections as usize;
        for _ in 0..sessions_min {
            if let Err(error) = sessions.add() {
                shared.fail(error);
                break;
            }
        }
        // A rate that is asked for is not reached sooner by more sessions.
        let sessions_max =
            if shared.rate_limit.is_limited() { sessions_min } else { self.spec.connections_max() as usize };
        let mut scaler = SessionScaler::new(sessions_min, sessions_max, self.begun.elapsed());
        let interval = Duration::from_millis(self.spec.interval_ms);
        let stored_all = self.sources.iter().map(Source::stored_bytes).sum::<Option<u64>>();
        let mut due = Instant::now() + interval;
        while sessions.running > 0 {
            match self.told.recv_timeout(due.saturating_duration_since(Instant::now())) {
                Ok(Event::Ended) => sessions.running -= 1,
                Ok(Event::Stop) => shared.fail(LoadError::stopped()),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            if sessions.running > 0 && Instant::now() < due {
                continue;
            }
            due = Instant::now() + interval;
            if !self.say(&shared.counters.progress(self.begun.elapsed(), stored_all, sessions.running)) {
                // The process that asked for this load is gone.
                shared.fail(LoadError::stopped());
            }
            scale(&mut scaler, self.begun.elapsed(), shared, &mut sessions);
        }
        sessions.join();
        if shared.failure().is_some() {
            // What an error leaves in the table is known only now.
            self.say(&shared.counters.progress(self.begun.elapsed(), stored_all, 0));
        }
        shared.failure().map_or(Ok(scaler.sessions()), Err)
    }

    /// Waits until the server answers; what it was lost by, when it does not in time.
    fn wait_for_server(&mut self, error: LoadError) -> Result<(), LoadError> {
        let since = *self.lost.get_or_insert_with(Instant::now);
        self.say(&json!({"event": "lost", "message": error.message}));
        let patience = Duration::from_secs(self.spec.reconnect_s);
        while since.elapsed() < patience {
            match self.told.recv_timeout(RETRY) {
                Ok(Event::Stop) => return Err(LoadError::stopped()),
                Ok(Event::Ended) | Err(_) => {}
            }
            if Connection::open(&self.spec.server, &Arc::new(AtomicBool::new(false))).is_ok() {
                return Ok(());
            }
        }
        Err(error)
    }

    fn end(&mut self, shared: &Shared, sessions: usize, reject_files: &[PathBuf]) {
        let Totals { bytes, rows_loaded, rows_rejected, chunks } = shared.counters.totals();
        let Usage { user_ms, system_ms, rss_bytes_max } = Usage::now();
        self.say(&json!({
            "event": "end",
            "rows_loaded": rows_loaded,
            "rows_rejected": rows_rejected,
            "bytes": bytes,
            "chunks": chunks,
            "connections": sessions,
            "elapsed_ms": self.begun.elapsed().as_secs_f64() * 1e3,
            "cpu_ms": {"user": user_ms, "system": system_ms},
            "rss_bytes_max": rss_bytes_max,
            "reject_files": reject_files,
        }));
    }

    /// False when no process reads it.
    fn say(&mut self, line: &Value) -> bool {
        writeln!(self.out, "{line}").and_then(|()| self.out.flush()).is_ok()
    }
}

/// Begins or ends a session, if that is what the rate says.
fn scale(scaler: &mut SessionScaler, now: Duration, shared: &Shared, sessions: &mut Sessions) {
    if shared.stopping() {
        return;
    }
    match scaler.look(now, shared.counters.sent()) {
        Change::None => return,
        Change::Add => {
            shared.sessions.store(scaler.sessions(), Ordering::Relaxed);
            if sessions.add().is_err() {
                // The server has no room for it; the sessions that it has continue.
                scaler.refused();
            }
        }
        Change::Remove => {}
    }
    shared.sessions.store(scaler.sessions(), Ordering::Relaxed);
}

/// Everything was sent and told to be committed: puts it on disk, looks whether the ledger has all of it, and proves a last time
/// that the files are as they were.
fn finish(shared: &Shared, control: &mut Connection) -> Result<(), LoadError> {
    let known = shared.known();
    let all_cut = shared.sources_cut.load(Ordering::Relaxed) == shared.sources.len();
    let chunks = shared.done.len() + shared.chunks_cut.load(Ordering::Relaxed);
    if !all_cut || known.len() != chunks {
        let message = format!("{} of {chunks} chunks were loaded, and no error was reported", known.len());
        return Err(LoadError::new(message, "this is a bug in pgdyno"));
    }
    control.query(statement::DURABLE)?;
    if let Some(ledger) = &shared.spec.ledger {
        // This session is as old as the first of these commits: a server that lost one would have ended it.
        ledger::require_all(ledger, &known, &ledger::read(control, ledger, shared.sources.len())?)?;
    }
    shared.sources.iter().try_for_each(Source::unchanged)
}
