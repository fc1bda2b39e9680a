//! The whole of a replay: lanes beside each other, and what is said meanwhile.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use pgdyno_capture::{CaptureError, CaptureFile};
use pgdyno_clock::{monotonic_ns, process_cpu_ns};
use pgdyno_connection::Fault;
use pgdyno_measure::say;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Deserialize;
use serde_json::json;

use crate::lane::drive;
use crate::lanes::lanes;
use crate::shared::{Endpoint, Pace, Shared};
use crate::tally::Tally;

const LOOK: Duration = Duration::from_millis(100);
const TELL: Duration = Duration::from_secs(1);
/// Lanes are begun before the first statement is due: a thread takes microseconds.
const HEAD_START_NS: u64 = 200_000_000;
/// Stack of a lane's thread: it holds no statement.
const STACK_BYTES: usize = 256 << 10;

/// What to replay, and where.
#[derive(Deserialize)]
pub struct ReplaySpec {
    capture: PathBuf,
    endpoints: Vec<Endpoint>,
    /// How many captured seconds are driven in one.
    speed: f64,
    pace: Pace,
    /// After so many seconds it is given up.
    limit_s: f64,
}

/// Replays a capture. Writes JSON lines to `out`: `progress` about once a second, `summary` at the end.
///
/// # Errors
/// A capture that cannot be read, and a machine that gives no threads. Statements that fail are counted.
pub fn run(spec: ReplaySpec, out: &mut impl Write) -> Result<(), Fault> {
    let fault = |error: CaptureError| Fault::new(error.message, error.remedy);
    let signalled = pgdyno_signals::block()
        .map_err(|error| Fault::new(format!("signals cannot be watched: {error}"), "raise the limit of files"))?;
    let file = CaptureFile::open(&spec.capture).map_err(fault)?;
    let contents = file.contents();
    let (first_us, last_us) = (contents.account.first_us, contents.account.last_us);
    let lanes = lanes(&contents.sessions);
    let shared = Shared {
        sessions: contents.sessions,
        pace: spec.pace,
        endpoints: spec.endpoints,
        speed: spec.speed,
        begin_ns: monotonic_ns() + HEAD_START_NS,
        first_us,
        stop: AtomicBool::new(false),
        answered: AtomicU64::new(0),
    };
    let limit = Duration::from_secs_f64(spec.limit_s);
    let calls = contents.account.calls;
    let mut total = Tally::new();
    let ended = std::thread::scope(|scope| {
        let (report, reports) = channel();
        for lane in &lanes {
            let (shared, report) = (&shared, report.clone());
            let file = file.another().map_err(fault)?;
            let begun = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, move || {
                // Whoever takes it lives as long as this thread.
                let _ = report.send(drive(lane, file, shared));
            });
            if let Err(error) = begun {
                shared.stop.store(true, Ordering::Relaxed);
                return Err(Fault::new(format!("a thread cannot be begun: {error}"), "raise the limit of processes"));
            }
        }
        drop(report);
        let (begin, mut told, mut ended) = (Instant::now(), Instant::now(), None);
        loop {
            match reports.recv_timeout(LOOK) {
                Ok(Ok(tally)) => total.add(&tally),
                Ok(Err(error)) => {
                    shared.stop.store(true, Ordering::Relaxed);
                    return Err(fault(error));
                }
                Err(RecvTimeoutError::Timeout) => (),
                Err(RecvTimeoutError::Disconnected) => return Ok(ended),
            }
            if ended.is_none() && (is_told(&signalled) || begin.elapsed() > limit) {
                ended = Some(if begin.elapsed() > limit { "the time is over" } else { "interrupted" });
                shared.stop.store(true, Ordering::Relaxed);
            }
            if told.elapsed() >= TELL {
                told = Instant::now();
                let answered = shared.answered.load(Ordering::Relaxed);
                say(out, &json!({"progress": {"share": answered as f64 / calls.max(1) as f64, "answered": answered}}));
            }
        }
    })?;
    let mut summary = total.document();
    summary["lanes"] = json!(lanes.len());
    summary["took_s"] = json!(monotonic_ns().saturating_sub(shared.begin_ns) as f64 / 1e9);
    summary["captured_s"] = json!((last_us - first_us) as f64 / 1e6);
    summary["cpu_s"] = json!(process_cpu_ns() as f64 / 1e9);
    summary["ended_by"] = json!(ended);
    say(out, &json!({"summary": summary}));
    Ok(())
}

/// Whether a signal has come.
fn is_told(signalled: &OwnedFd) -> bool {
    let mut watched = [PollFd::new(signalled, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut watched, Some(&now)).is_ok() && !watched[0].revents().is_empty()
}
