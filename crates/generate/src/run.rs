//! Several files at a time, and what is said meanwhile.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use pgdyno_dataset::{DataFile, Refusal};
use pgdyno_measure::say;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};

use crate::sink::{Sink, refused};

/// Rows are handed on in pieces of this size.
const PIECE_BYTES: usize = 256 << 10;
/// How often the order to stop is looked for, and how often it is said how far the files are.
const LOOK: Duration = Duration::from_millis(100);
const TELL: Duration = Duration::from_secs(1);

/// What to make.
#[derive(Debug, Clone)]
pub struct GenerateSpec {
    /// The data set's files, by its scale and seed.
    pub set: fn(f64, u64) -> Result<Vec<DataFile>, Refusal>,
    /// How much of it; what 1 is, is the data set's own.
    pub scale: f64,
    /// The folder; it is made if it is not there.
    pub out: PathBuf,
    /// Which files; empty for all.
    pub files: Vec<String>,
    /// Whether they are compressed.
    pub gzip: bool,
    /// From which everything derives.
    pub seed: u64,
    /// How many files are made at a time.
    pub threads: usize,
}

struct Shared<'a> {
    spec: &'a GenerateSpec,
    /// Those that take longest come first.
    files: Vec<DataFile>,
    next: AtomicUsize,
    stop: AtomicBool,
    rows: AtomicU64,
    bytes: AtomicU64,
    /// Bytes that are expected of all files, for the share that is done.
    expected: u64,
}

/// Makes the files. Writes JSON lines to `out`: `progress` about once a second, `file` for each that is done, `summary` at the
/// end.
///
/// # Errors
/// What is wrong with the order, and what the kernel refuses; SIGTERM and SIGINT. A file that is not whole is removed.
pub fn run(spec: &GenerateSpec, out: &mut impl Write) -> Result<(), Refusal> {
    let files = chosen(spec)?;
    let signalled = pgdyno_signals::block()
        .map_err(|error| Refusal::new(format!("signals cannot be watched: {error}"), "raise the limit of files"))?;
    std::fs::create_dir_all(&spec.out).map_err(|error| refused(&spec.out, &error))?;
    let expected = files.iter().map(DataFile::bytes_expected).sum::<u64>().max(1);
    let shared = Shared {
        spec,
        files,
        next: AtomicUsize::new(0),
        stop: AtomicBool::new(false),
        rows: AtomicU64::new(0),
        bytes: AtomicU64::new(0),
        expected,
    };
    let begin = Instant::now();
    let threads = spec.threads.clamp(1, shared.files.len());
    let (done, failure) = std::thread::scope(|scope| {
        let (report, reports) = channel();
        for _ in 0..threads {
            let (shared, report) = (&shared, report.clone());
            scope.spawn(move || shared.work(&report));
        }
        drop(report);
        let (mut done, mut failure, mut told) = (BTreeMap::new(), None, begin);
        loop {
            match reports.recv_timeout(LOOK) {
                Ok(Ok(made)) => {
                    say(out, &json!({"file": made.document()}));
                    done.insert(made.name, made);
                }
                // The first error is the one to tell; the others are told to stop by it.
                Ok(Err(error)) => {
                    failure.get_or_insert(error);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if is_told(&signalled) {
                shared.stop.store(true, Ordering::Relaxed);
                failure.get_or_insert_with(|| Refusal::new("interrupted", "run the command again"));
            }
            if told.elapsed() >= TELL {
                told = Instant::now();
                say(out, &json!({"progress": shared.progress(begin)}));
            }
        }
        (done, failure)
    });
    if let Some(failure) = failure {
        return Err(failure);
    }
    say(out, &json!({"summary": summary(spec, &done, begin)}));
    Ok(())
}

fn chosen(spec: &GenerateSpec) -> Result<Vec<DataFile>, Refusal> {
    let mut files = (spec.set)(spec.scale, spec.seed)?;
    let wanted: Vec<&str> =
        spec.files.iter().map(|name| name.trim_end_matches(".gz").trim_end_matches(".tsv")).collect();
    if let Some(unknown) = wanted.iter().find(|name| files.iter().all(|file| file.name != **name)) {
        let names: Vec<&str> = files.iter().map(|file| file.name).collect();
        return Err(Refusal::new(format!("there is no file {unknown}"), format!("take {}", names.join(", "))));
    }
    files.retain(|file| wanted.is_empty() || wanted.contains(&file.name));
    files.sort_by_key(|file| std::cmp::Reverse(file.bytes_expected()));
    Ok(files)
}

/// A file that is whole.
struct Made {
    name: &'static str,
    path: PathBuf,
    rows: u64,
    bytes: u64,
    stored_bytes: u64,
    seconds: f64,
}

impl Made {
    fn document(&self) -> Value {
        json!({"name": self.name, "path": self.path.display().to_string(), "rows": self.rows, "bytes": self.bytes,
            "stored_bytes": self.stored_bytes, "seconds": self.seconds})
    }
}

impl Shared<'_> {
    /// One thread: takes files until there are none.
    fn work(&self, report: &Sender<Result<Made, Refusal>>) {
        while let Some(file) = self.files.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            let made = self.make(file);
            if made.is_err() {
                self.stop.store(true, Ordering::Relaxed);
            }
            // Whoever takes it lives as long as this thread.
            let _ = report.send(made);
        }
    }

    fn make(&self, file: &DataFile) -> Result<Made, Refusal> {
        let begin = Instant::now();
        let suffix = if self.spec.gzip { "tsv.gz" } else { "tsv" };
        let path = self.spec.out.join(format!("{}.{suffix}", file.name));
        let mut sink = Sink::create(&path)?;
        let mut piece = Vec::with_capacity(PIECE_BYTES + PIECE_BYTES / 4);
        piece.extend_from_slice(file.columns.join("\t").as_bytes());
        piece.push(b'\n');
        let (mut rows, mut bytes) = (0, 0);
        let mut units = 0..file.rows.units();
        loop {
            let written = file.rows.write_until(PIECE_BYTES, &mut units, &mut piece);
            bytes += self.hand_on(&mut sink, &mut piece, written)?;
            rows += written;
            if units.is_empty() {
                break;
            }
        }
        let stored_bytes = sink.finish()?;
        Ok(Made { name: file.name, path, rows, bytes, stored_bytes, seconds: begin.elapsed().as_secs_f64() })
    }

    fn hand_on(&self, sink: &mut Sink, piece: &mut Vec<u8>, rows: u64) -> Result<u64, Refusal> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Refusal::new("interrupted", "run the command again"));
        }
        sink.write(piece)?;
        let bytes = piece.len() as u64;
        piece.clear();
        self.rows.fetch_add(rows, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(bytes)
    }

    fn progress(&self, begin: Instant) -> Value {
        let (rows, bytes) = (self.rows.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed));
        let share = (bytes as f64 / self.expected as f64).min(1.0);
        json!({"rows": rows, "bytes": bytes, "share": share, "seconds": begin.elapsed().as_secs_f64()})
    }
}

fn summary(spec: &GenerateSpec, done: &BTreeMap<&str, Made>, begin: Instant) -> Value {
    let sum = |of: fn(&Made) -> u64| done.values().map(of).sum::<u64>();
    json!({
        "scale": spec.scale,
        "seed": spec.seed,
        "files": done.values().map(Made::document).collect::<Vec<_>>(),
        "rows": sum(|made| made.rows),
        "bytes": sum(|made| made.bytes),
        "stored_bytes": sum(|made| made.stored_bytes),
        "seconds": begin.elapsed().as_secs_f64(),
    })
}

/// Whether a signal has come.
fn is_told(signalled: &OwnedFd) -> bool {
    let mut watched = [PollFd::new(signalled, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut watched, Some(&now)).is_ok() && !watched[0].revents().is_empty()
}
