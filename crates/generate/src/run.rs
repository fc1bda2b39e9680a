//! Several files at a time, and what is said meanwhile.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use pgdyno_dataset::DataFile;
use pgdyno_host::{self as host, Fault, crew};
use pgdyno_measure::say;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde_json::{Value, json};

use crate::job::{Job, Made};
use crate::sink::refused;

/// How often the order to stop is looked for, and how often it is said how far the files are.
const LOOK: Duration = Duration::from_millis(100);
const TELL: Duration = Duration::from_secs(1);

/// What to make.
#[derive(Debug, Clone)]
pub struct GenerateSpec {
    /// The data set's files.
    pub set: Vec<DataFile>,
    /// How much of it that is; what 1 is, is the data set's own. For the summary.
    pub scale: f64,
    /// From which everything derives, if there is a choice. For the summary.
    pub seed: Option<u64>,
    /// The folder; it is made if it is not there.
    pub out: PathBuf,
    /// Which files; empty for all.
    pub files: Vec<String>,
    /// Whether they are compressed.
    pub gzip: bool,
    /// Whether files that are there are replaced; otherwise one of them ends it before anything is written.
    pub overwrite: bool,
    /// How many threads make them.
    pub threads: usize,
}

/// Where a thread says what became whole.
type Report = Sender<Made>;
type Crew<'a> = host::Crew<'a, Fault>;

struct Shared {
    /// The largest files come first.
    jobs: Vec<Job>,
    /// The first that nobody has begun.
    next: AtomicUsize,
    rows: AtomicU64,
    bytes: AtomicU64,
    /// Bytes that are expected of all files, for the share that is done.
    expected: u64,
}

/// Makes the files. Writes JSON lines to `out`: `progress` about once a second, `file` for each that is done, `summary` at the
/// end.
///
/// # Errors
/// What is wrong with the order, and what the kernel refuses; SIGTERM and SIGINT; a panic. A file that is not whole is removed.
pub fn run(spec: &GenerateSpec, out: &mut impl Write) -> Result<(), Fault> {
    let jobs = jobs(spec)?;
    let signalled = pgdyno_signals::block().map_err(|error| Fault::of_kernel("signals cannot be watched", &error))?;
    std::fs::create_dir_all(&spec.out).map_err(|error| refused(&spec.out, &error))?;
    let expected = jobs.iter().map(Job::bytes_expected).sum::<u64>().max(1);
    let blocks = jobs.iter().map(Job::blocks).sum::<u64>();
    let shared =
        Shared { jobs, next: AtomicUsize::new(0), rows: AtomicU64::new(0), bytes: AtomicU64::new(0), expected };
    let begin = Instant::now();
    let threads = spec.threads.clamp(1, usize::try_from(blocks).unwrap_or(usize::MAX));
    let (report, reports) = channel();
    let seats: Vec<Report> = vec![report; threads];
    let (_, done) = crew(
        "generate",
        seats,
        &|| shared.jobs.iter().for_each(Job::wake),
        |crew, report| shared.work(crew, &report),
        |crew| shared.listen(crew, &reports, &signalled, begin, out),
    )?;
    say(out, &json!({"summary": summary(spec, &done, begin)}));
    Ok(())
}

/// The files that are asked for. Nothing is opened yet.
fn jobs(spec: &GenerateSpec) -> Result<Vec<Job>, Fault> {
    let named = |file: &DataFile, name: &str| {
        let name = name.trim_end_matches(".gz");
        name == file.name || name.strip_suffix(&*file.suffix) == Some(&format!("{}.", file.name))
    };
    if let Some(unknown) = spec.files.iter().find(|name| spec.set.iter().all(|file| !named(file, name))) {
        let names: Vec<&str> = spec.set.iter().map(|file| file.name).collect();
        return Err(Fault::new(format!("there is no file {unknown}"), format!("take {}", names.join(", "))));
    }
    let wanted = |file: &&DataFile| spec.files.is_empty() || spec.files.iter().any(|name| named(file, name));
    let mut jobs: Vec<Job> = spec
        .set
        .iter()
        .filter(wanted)
        .map(|file| {
            let suffix = if spec.gzip { ".gz" } else { "" };
            let path = spec.out.join(format!("{}.{}{suffix}", file.name, file.suffix));
            Job::new(file.clone(), path, spec.threads.max(1))
        })
        .collect();
    if !spec.overwrite
        && let Some(there) = jobs.iter().map(Job::path).find(|path| path.symlink_metadata().is_ok())
    {
        let remedy = "name another folder, or replace what is there with --overwrite";
        return Err(Fault::new(format!("{} is there already", there.display()), remedy));
    }
    jobs.sort_by_key(|job| std::cmp::Reverse(job.bytes_expected()));
    Ok(jobs)
}

impl Shared {
    /// One thread: files that nobody has begun, then blocks of those that others have.
    fn work(&self, crew: &Crew<'_>, report: &Report) -> Result<(), Fault> {
        let mut fresh = std::iter::from_fn(|| self.jobs.get(self.next.fetch_add(1, Ordering::Relaxed)));
        fresh.try_for_each(|job| self.help(crew, job, report))?;
        self.jobs.iter().try_for_each(|job| self.help(crew, job, report))
    }

    /// Makes blocks of a file until there are none to take.
    fn help(&self, crew: &Crew<'_>, job: &Job, report: &Report) -> Result<(), Fault> {
        while let Some(number) = job.take(|| crew.stops())? {
            let written = job.make(number)?;
            self.rows.fetch_add(written.rows, Ordering::Relaxed);
            self.bytes.fetch_add(written.bytes, Ordering::Relaxed);
            if let Some(made) = written.made {
                // It is received as long as this thread works.
                let _ = report.send(made);
            }
        }
        Ok(())
    }

    /// Says what becomes whole and how far the rest is, until all threads have ended.
    fn listen(
        &self,
        crew: &Crew<'_>,
        reports: &Receiver<Made>,
        signalled: &OwnedFd,
        begin: Instant,
        out: &mut impl Write,
    ) -> Result<BTreeMap<PathBuf, Made>, Fault> {
        let (mut done, mut told) = (BTreeMap::new(), begin);
        loop {
            match reports.recv_timeout(LOOK) {
                Ok(made) => {
                    say(out, &json!({"file": made.document()}));
                    done.insert(made.path.clone(), made);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(done),
            }
            if !crew.stops() && is_told(signalled)? {
                crew.fail(
                    Fault::new("interrupted", "run the command again").coded("generate.interrupted", Value::Null),
                );
            }
            if told.elapsed() >= TELL {
                told = Instant::now();
                say(out, &json!({"progress": self.progress(begin)}));
            }
        }
    }

    fn progress(&self, begin: Instant) -> Value {
        let (rows, bytes) = (self.rows.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed));
        let share = (bytes as f64 / self.expected as f64).min(1.0);
        json!({"rows": rows, "bytes": bytes, "share": share, "seconds": begin.elapsed().as_secs_f64()})
    }
}

fn summary(spec: &GenerateSpec, done: &BTreeMap<PathBuf, Made>, begin: Instant) -> Value {
    let sum = |of: fn(&Made) -> u64| done.values().map(of).sum::<u64>();
    let mut summary = json!({
        "scale": spec.scale,
        "files": done.values().map(Made::document).collect::<Vec<_>>(),
        "rows": sum(|made| made.rows),
        "bytes": sum(|made| made.bytes),
        "stored_bytes": sum(|made| made.stored_bytes),
        "seconds": begin.elapsed().as_secs_f64(),
    });
    if let Some(seed) = spec.seed {
        summary["seed"] = json!(seed);
    }
    summary
}

/// Whether a signal has come.
fn is_told(signalled: &OwnedFd) -> Result<bool, Fault> {
    let mut watched = [PollFd::new(signalled, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    match poll(&mut watched, Some(&now)) {
        Ok(_) => Ok(!watched[0].revents().is_empty()),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(Fault::of_kernel("signals cannot be watched", &error.into())),
    }
}
