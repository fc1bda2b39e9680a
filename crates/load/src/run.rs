//! A load from its beginning to its end, and again when the server was lost.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use pgdyno_drive::Talk;
use serde_json::{Value, json};

use crate::adapt::{Adapt, Change};
use crate::crew::{Crew, Event, spawn};
use crate::error::LoadError;
use crate::ledger::{self, Chunks};
use crate::order::LoadSpec;
use crate::shared::Shared;
use crate::source::Source;
use crate::statement;
use crate::tally::Seen;
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
/// What cannot be read or loaded; whatever is in the ledger stays in the table. SIGTERM and SIGINT, and that nobody reads
/// `out`: chunks under way are cancelled.
pub fn load(spec: &LoadSpec, out: &mut impl Write) -> Result<(), LoadError> {
    spec.check()?;
    let signalled = pgdyno_signals::block().map_err(|error| {
        LoadError::new(format!("the kernel refused a descriptor: {error}"), "look at the limit of open files")
    })?;
    let (tell, told) = channel();
    listen(signalled, tell.clone())?;
    let sources = spec.sources.iter().map(Source::inspect).collect::<Result<Vec<_>, _>>()?;
    let may_again = spec.ledger.is_some() && sources.iter().all(Source::can_be_read_again);
    let mut run = Run { spec, sources, out, tell, told, begun: Instant::now(), reached: false, lost: None };
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
        let _ = rustix::io::read(&signalled, &mut what);
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
}

impl<W: Write> Run<'_, W> {
    /// One try, from what the ledger says.
    fn attempt(&mut self) -> Result<(), LoadError> {
        let mut control = Talk::open(&self.spec.named_server(), &Arc::new(AtomicBool::new(false)))?;
        self.reached = true;
        let shared = Arc::new(self.prepare(&mut control)?);
        let before = shared.tally.seen();
        let loaded = self.work(&shared).and_then(|sessions| finish(&shared, &mut control).map(|()| sessions));
        if shared.tally.seen() != before {
            self.lost = None;
        }
        // Rows that were rejected can be looked at after an error too; the error is what is told.
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
    fn prepare(&mut self, control: &mut Talk) -> Result<Shared, LoadError> {
        let done = match &self.spec.ledger {
            None => Chunks::new(),
            Some(ledger) => {
                self.lock(control, ledger.job)?;
                ledger::read(control, ledger)?
            }
        };
        let version = control.server_version().to_owned();
        let major = version.split(|c: char| !c.is_ascii_digit()).next().and_then(|number| number.parse().ok());
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let shared = Shared::new(self.spec, self.sources.clone(), major.unwrap_or_default(), cores, done)?;
        for chunk in shared.done.values() {
            shared.tally.committed(chunk.end - chunk.begin, chunk.rows_loaded, chunk.rows_rejected);
        }
        let Seen { chunks, rows_loaded, .. } = shared.tally.seen();
        let source = |source: &Source| json!({"name": source.name, "bytes_stored": source.stored_bytes(), "compression": source.compression});
        let sources: Vec<Value> = self.sources.iter().map(source).collect();
        self.say(&json!({"event": "begin", "server_version": version, "sources": sources, "chunks_done": chunks,
            "rows_done": rows_loaded}));
        Ok(shared)
    }

    /// Takes a job for this process alone. The sessions of a loader that was killed may hold it a little longer.
    fn lock(&self, control: &mut Talk, job: i64) -> Result<(), LoadError> {
        let since = Instant::now();
        loop {
            let told = control.query(&statement::lock(job))?;
            if told.rows.into_iter().flatten().flatten().any(|free| free == "t") {
                return Ok(());
            }
            if since.elapsed() > LOCK_MAX {
                let message = format!("another loader works on job {job}");
                return Err(LoadError::new(message, "wait for it, or end it: pg_locks has its process (advisory)"));
            }
            if let Ok(Event::Stop) = self.told.recv_timeout(LOCK_RETRY) {
                return Err(LoadError::stopped());
            }
        }
    }

    /// Loads everything that is not done. Returns how many sessions did that at last.
    fn work(&mut self, shared: &Arc<Shared>) -> Result<usize, LoadError> {
        let mut crew = Crew::start(shared, &self.tell)?;
        let sessions = self.spec.connections as usize;
        for _ in 0..sessions {
            if let Err(error) = crew.add() {
                shared.fail(error);
                break;
            }
        }
        // A rate that is asked for is not reached sooner by more sessions.
        let sessions_max = if shared.pace.is_limited() { sessions } else { self.spec.connections_max() as usize };
        let mut adapt = Adapt::new(sessions, sessions_max, self.begun.elapsed());
        let interval = Duration::from_millis(self.spec.interval_ms);
        let stored_all = self.sources.iter().map(Source::stored_bytes).sum::<Option<u64>>();
        let mut due = Instant::now() + interval;
        while crew.running > 0 {
            match self.told.recv_timeout(due.saturating_duration_since(Instant::now())) {
                Ok(Event::Ended) => crew.running -= 1,
                Ok(Event::Stop) => shared.fail(LoadError::stopped()),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            if crew.running > 0 && Instant::now() < due {
                continue;
            }
            due = Instant::now() + interval;
            if !self.say(&shared.tally.progress(self.begun.elapsed(), stored_all, crew.running)) {
                // Whoever asked for this load is gone.
                shared.fail(LoadError::stopped());
            }
            change(&mut adapt, adapt_now(self.begun, shared), shared, &mut crew);
        }
        crew.join();
        shared.failure().map_or(Ok(adapt.sessions()), Err)
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
            if Talk::open(&self.spec.named_server(), &Arc::new(AtomicBool::new(false))).is_ok() {
                return Ok(());
            }
        }
        Err(error)
    }

    fn end(&mut self, shared: &Shared, sessions: usize, reject_files: &[PathBuf]) {
        let Seen { bytes, rows_loaded, rows_rejected, chunks } = shared.tally.seen();
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

    /// False when nobody listens.
    fn say(&mut self, line: &Value) -> bool {
        writeln!(self.out, "{line}").and_then(|()| self.out.flush()).is_ok()
    }
}

/// The time and the bytes that were sent.
fn adapt_now(begun: Instant, shared: &Shared) -> (Duration, u64) {
    (begun.elapsed(), shared.tally.sent())
}

/// Begins or ends a session, if that is what the rate says.
fn change(adapt: &mut Adapt, (now, sent): (Duration, u64), shared: &Shared, crew: &mut Crew) {
    if shared.stopping() {
        return;
    }
    match adapt.look(now, sent) {
        Change::None => return,
        Change::Add => {
            shared.sessions.store(adapt.sessions(), Ordering::Relaxed);
            if crew.add().is_err() {
                // The server has no room for it; those that there are go on.
                adapt.refused();
            }
        }
        Change::Remove => {}
    }
    shared.sessions.store(adapt.sessions(), Ordering::Relaxed);
}

/// Everything was sent and told to be committed: puts it on disk, and looks whether the ledger has all of it.
fn finish(shared: &Shared, control: &mut Talk) -> Result<(), LoadError> {
    let seen = shared.tally.seen();
    let all_cut = shared.sources_cut.load(Ordering::Relaxed) == shared.sources.len();
    let chunks = (shared.done.len() + shared.chunks_cut.load(Ordering::Relaxed)) as u64;
    if !all_cut || seen.chunks != chunks {
        let message = format!("{} chunks of {chunks} were loaded, and nothing said why", seen.chunks);
        return Err(LoadError::new(message, "this is a bug in pgdyno"));
    }
    control.query(statement::DURABLE)?;
    let Some(ledger) = &shared.spec.ledger else { return Ok(()) };
    let recorded = ledger::read(control, ledger)?;
    let sum = |of: fn(&ledger::Done) -> u64| recorded.values().map(of).sum::<u64>();
    let found = Seen {
        bytes: sum(|done| done.end - done.begin),
        rows_loaded: sum(|done| done.rows_loaded),
        rows_rejected: sum(|done| done.rows_rejected),
        chunks: recorded.len() as u64,
    };
    if found == seen {
        return Ok(());
    }
    let message = format!(
        "the ledger has {} chunks with {} rows, and {} with {} were committed: the server lost some of them",
        found.chunks, found.rows_loaded, seen.chunks, seen.rows_loaded
    );
    Err(LoadError { absent: true, ..LoadError::new(message, "run it again: it loads what is missing") })
}
