//! The whole of a replay: lanes beside each other, and what is said meanwhile.

use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use pgdyno_capture::{Account, CaptureFile};
use pgdyno_clock::{monotonic_ns, process_cpu_ns};
use pgdyno_connection::Fault;
use pgdyno_host::{self as host, crew};
use pgdyno_measure::say;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::asked::{Part, PartSpec};
use crate::errands::Errands;
use crate::keys::{Exchange, KeysSpec};
use crate::lane::drive;
use crate::lanes::{Lane, lanes};
use crate::link::Copied;
use crate::made::{Copies, CopySpec};
use crate::shared::{Endpoint, Pace, Shared, fault};
use crate::tally::Tally;
use crate::types;

const LOOK: Duration = Duration::from_millis(100);
/// Of one thread on average: a third of what a core can send (docs/reference/replay.md), as loads have peaks.
const STATEMENTS_PER_S_OF_THREAD: f64 = 20_000.0;

/// What to replay, and where.
#[derive(Deserialize)]
pub struct ReplaySpec {
    capture: PathBuf,
    endpoints: Vec<Endpoint>,
    /// How many captured seconds are driven in one.
    speed: f64,
    pace: Pace,
    #[serde(flatten)]
    part: PartSpec,
    /// How long a second of what is measured lasts here.
    #[serde(default = "one_second_ms")]
    second_ms: u64,
    #[serde(default)]
    keys: Option<KeysSpec>,
    /// Where the database must not be newer than the capture: nothing is sent then.
    #[serde(default)]
    newer: Option<NewerSpec>,
    /// COPYs without rows whose rows are made; the others are left out.
    #[serde(default)]
    copies: Vec<CopySpec>,
    /// Of what is drawn.
    #[serde(default)]
    seed: u64,
    /// After so many seconds it is given up.
    limit_s: f64,
}

/// How many keys of the capture a database may have before it is newer than the capture.
#[derive(Deserialize)]
struct NewerSpec {
    /// Of those that statements of the capture were answered with.
    share: f64,
    /// Values that a sequence skips by itself.
    ahead: u64,
}

fn one_second_ms() -> u64 {
    1000
}

/// Replays a capture. Writes JSON lines to `out`: `ready` before the first statement, `second` for each, `progress` after
/// it, `summary` at the end.
///
/// # Errors
/// A capture that cannot be read, and a machine that gives no threads. Statements that fail are counted.
pub fn run(spec: ReplaySpec, out: &mut impl Write) -> Result<(), Fault> {
    let signalled = pgdyno_signals::block().map_err(|error| unwatched(&error))?;
    let mut file = CaptureFile::open(&spec.capture).map_err(fault)?;
    let contents = file.contents();
    let part = Part::of(spec.part, &contents);
    let second_ns = spec.second_ms.max(1) * 1_000_000;
    let paced = (spec.pace, spec.speed);
    let mut shared = Shared::new(contents.sessions, spec.endpoints, paced, second_ns, part);
    let lanes = lanes(&shared.sessions, |session| shared.chosen(session));
    let chosen: Vec<usize> = lanes.iter().flat_map(|lane| lane.sessions.iter().copied()).collect();
    let errands = Errands::start(lanes.len())?;
    shared.types = Arc::new(types::find(&mut file, &shared, &chosen, &errands)?);
    if contents.account.copied_bytes > 0 {
        shared.copied = Some(Arc::new(Copied::of(file.another().map_err(fault)?)));
    }
    if let Some(keys) = spec.keys {
        let asked = shared.asked(&chosen, &contents.account);
        shared.keys = Some(Exchange::new(keys, &mut file, &asked, shared.sessions.len())?);
    }
    require_not_newer(shared.keys.as_ref(), spec.newer.as_ref())?;
    shared.copies = Copies::new(spec.copies, spec.seed);
    // Lanes and this: a replay without sessions begins, too.
    shared.begins_after(lanes.len() + 1);
    let others = shared.sessions.iter().filter(|session| !shared.chosen(session));
    let mut total = Tally::new();
    total.not_asked = others.fold(0, |sum: u64, session| sum.saturating_add(session.calls));
    let calls = contents.account.calls.saturating_sub(total.not_asked);
    let captured_s = part.seconds(shared.sessions.iter().filter(|session| shared.chosen(session)));
    let threads = threads(lanes.len(), calls as f64 * shared.speed / captured_s.max(f64::EPSILON));
    let (report, reports) = channel();
    let seat = |number| {
        let own: Vec<&Lane> = lanes.iter().skip(number).step_by(threads).collect();
        Ok((own, file.another().map_err(fault)?, report.clone()))
    };
    let seats = (0..threads).map(seat).collect::<Result<Vec<_>, Fault>>()?;
    drop(report);
    let (_, (ended, end_ns)) = crew(
        "lanes",
        seats,
        &|| shared.halt(),
        |_, (own, file, report)| drive(&own, file, &shared, &errands, report),
        |_| {
            shared.logged_in();
            let mut following = Following {
                shared: &shared,
                errands: &errands,
                lanes: lanes.len(),
                is_ready: false,
                limit: Duration::try_from_secs_f64(spec.limit_s).unwrap_or(Duration::MAX),
                calls,
                out,
            };
            following.until_the_end(&reports, &signalled, &mut total).map(|ended| (ended, monotonic_ns()))
        },
    )?;
    for second in shared.seconds(|seconds| seconds.end(end_ns)) {
        say(out, &json!({"second": second.document()}));
    }
    let mut summary = total.document();
    summary["keys"] = json!(shared.keys.as_ref().map(Exchange::document));
    summary["calls"] = json!(contents.account.calls);
    add_reading(&mut summary, &contents.account, shared.sessions.len());
    summary["lanes"] = json!(lanes.len());
    summary["threads"] = json!(threads);
    summary["end_ns"] = json!(end_ns);
    summary["took_s"] = json!(end_ns.saturating_sub(shared.begin_ns()) as f64 / 1e9);
    summary["captured_s"] = json!(captured_s);
    summary["cpu_s"] = json!(process_cpu_ns() as f64 / 1e9);
    summary["ended_by"] = json!(ended);
    say(out, &json!({"summary": summary}));
    Ok(())
}

/// Says what the capture itself lacks.
fn add_reading(summary: &mut Value, account: &Account, sessions: usize) {
    summary["log_entries"] = json!(account.entries);
    summary["log_lost"] = json!(account.missing.saturating_add(account.torn).saturating_add(account.not_text));
    summary["reading"] = json!(account.left_out(sessions));
}

/// Refuses a database that has the capture's keys already: it may be the very one that was captured.
fn require_not_newer(keys: Option<&Exchange>, most: Option<&NewerSpec>) -> Result<(), Fault> {
    let (Some(keys), Some(most)) = (keys, most) else { return Ok(()) };
    let found = keys.document();
    let is_newer = |fit: &&Value| {
        let of = |name: &str| fit[name].as_u64().unwrap_or(0);
        of("already") > most.ahead.max((most.share * of("returned") as f64) as u64)
    };
    let newer: Vec<&Value> = found["fits"].as_array().into_iter().flatten().filter(is_newer).collect();
    let Some(first) = newer.first() else { return Ok(()) };
    let column = first["column"].as_str().unwrap_or_default();
    let message = format!(
        "the database has {} of {} keys of {column} already that the capture made: it is newer than the capture, or the captured database itself. \
         Nothing was sent",
        first["already"], first["returned"]
    );
    let remedy = "restore a copy of the time when the capture began, and name that one";
    Err(Fault::new(message, remedy).coded("replay.database.newer", json!({"sequences": newer})))
}

/// How many threads share so many lanes: as many as their statements need, and half of the cores at most, as servers need the others.
fn threads(lanes: usize, statements_per_s: f64) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let wanted = (statements_per_s / STATEMENTS_PER_S_OF_THREAD).ceil() as usize;
    wanted.clamp(1, (cores / 2).max(1)).min(lanes)
}

/// What listens to the lanes while they work.
struct Following<'a, W> {
    shared: &'a Shared,
    errands: &'a Errands,
    lanes: usize,
    /// Whether it was said when the first statement is due.
    is_ready: bool,
    limit: Duration,
    /// Statements that there are.
    calls: u64,
    out: &'a mut W,
}

impl<W: Write> Following<'_, W> {
    /// Adds up what lanes report until all have ended. Returns why they were stopped.
    fn until_the_end(
        &mut self,
        reports: &Receiver<Tally>,
        signalled: &OwnedFd,
        total: &mut Tally,
    ) -> Result<Option<&'static str>, Fault> {
        let (begin, mut ended) = (Instant::now(), None);
        loop {
            match reports.recv_timeout(LOOK) {
                Ok(tally) => total.add(&tally),
                Err(RecvTimeoutError::Timeout) => (),
                Err(RecvTimeoutError::Disconnected) => {
                    self.tell();
                    return Ok(ended);
                }
            }
            if let Some(fault) = self.errands.panic() {
                return Err(fault);
            }
            if ended.is_none() && (is_told(signalled)? || begin.elapsed() > self.limit) {
                ended = Some(if begin.elapsed() > self.limit { "the time is over" } else { "interrupted" });
                self.shared.halt();
            }
            self.tell();
        }
    }

    /// Says what is over.
    fn tell(&mut self) {
        let begin_ns = self.shared.begin_ns();
        if begin_ns == 0 {
            return;
        }
        if !std::mem::replace(&mut self.is_ready, true) {
            say(self.out, &json!({"ready": {"begin_ns": begin_ns, "lanes": self.lanes}}));
        }
        let (over, answered) = self.shared.seconds(|seconds| (seconds.take(monotonic_ns()), seconds.answered()));
        for second in over {
            say(self.out, &json!({"second": second.document()}));
            let cleared = second.cleared();
            self.shared.seconds(|seconds| seconds.reuse(cleared));
            let share = answered as f64 / self.calls.max(1) as f64;
            say(self.out, &json!({"progress": {"share": share, "answered": answered}}));
        }
    }
}

/// Whether a signal has come.
pub(crate) fn is_told(signalled: &OwnedFd) -> Result<bool, Fault> {
    let mut watched = [PollFd::new(signalled, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    match poll(&mut watched, Some(&now)) {
        Ok(_) => Ok(!watched[0].revents().is_empty()),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(unwatched(&error.into())),
    }
}

/// Signals that cannot be watched.
pub(crate) fn unwatched(error: &io::Error) -> Fault {
    host::Fault::of_kernel("signals cannot be watched", error).into()
}
