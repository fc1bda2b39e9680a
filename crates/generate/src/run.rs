//! Several files at a time, and what is said meanwhile.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};

use crate::GenerateError;
use crate::imdb::{File, Imdb};
use crate::sink::Sink;

/// Rows are handed on in pieces of this size.
const PIECE_BYTES: usize = 256 << 10;
/// How often the order to stop is looked for, and how often it is said how far the files are.
const LOOK: Duration = Duration::from_millis(100);
const TELL: Duration = Duration::from_secs(1);
/// Ten times the public data set is about 90 GB; more would be a mistake.
const SCALE_MAX: f64 = 10.0;

/// What to make.
#[derive(Debug, Clone)]
pub struct GenerateSpec {
    /// How much of the public data set; at 1 as many rows.
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
    data: Imdb,
    /// Those that take longest come first.
    files: Vec<File>,
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
pub fn run(spec: &GenerateSpec, out: &mut impl Write) -> Result<(), GenerateError> {
    let files = chosen(spec)?;
    let signalled = pgdyno_signals::block().map_err(|error| {
        GenerateError::new(format!("signals cannot be watched: {error}"), "raise the limit of files")
    })?;
    std::fs::create_dir_all(&spec.out).map_err(|error| GenerateError::io(&spec.out, &error))?;
    let data = Imdb::new(spec.scale, spec.seed);
    let expected = files.iter().map(|file| expected_bytes(*file, spec.scale)).sum::<u64>().max(1);
    let shared = Shared {
        spec,
        data,
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
                    done.insert(made.file, made);
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
                failure.get_or_insert_with(|| GenerateError::new("told to stop", "begin again"));
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

fn chosen(spec: &GenerateSpec) -> Result<Vec<File>, GenerateError> {
    if !(spec.scale > 0.0 && spec.scale <= SCALE_MAX) {
        let what = format!("the scale is {}", spec.scale);
        return Err(GenerateError::new(what, "give one above 0 and up to 10, as 0.01"));
    }
    let mut files: Vec<File> = if spec.files.is_empty() { File::ALL.to_vec() } else { Vec::new() };
    for name in &spec.files {
        let Some(file) = File::named(name.trim_end_matches(".gz").trim_end_matches(".tsv")) else {
            let names: Vec<&str> = File::ALL.iter().map(|file| file.name()).collect();
            return Err(GenerateError::new(format!("there is no file {name}"), format!("take {}", names.join(", "))));
        };
        files.push(file);
    }
    files.sort_unstable();
    files.dedup();
    files.sort_by_key(|file| std::cmp::Reverse(expected_bytes(*file, spec.scale)));
    Ok(files)
}

/// By the public file's; it only places a bar and puts the files in order.
fn expected_bytes(file: File, scale: f64) -> u64 {
    (file.public_rows() as f64 * file.public_bytes_per_row() as f64 * scale) as u64
}

/// A file that is whole.
struct Made {
    file: File,
    path: PathBuf,
    rows: u64,
    bytes: u64,
    stored_bytes: u64,
    seconds: f64,
}

impl Made {
    fn document(&self) -> Value {
        json!({"name": self.file.name(), "path": self.path.display().to_string(), "rows": self.rows, "bytes": self.bytes,
            "stored_bytes": self.stored_bytes, "seconds": self.seconds})
    }
}

impl Shared<'_> {
    /// One thread: takes files until there are none.
    fn work(&self, report: &Sender<Result<Made, GenerateError>>) {
        while let Some(file) = self.files.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            let made = self.make(*file);
            if made.is_err() {
                self.stop.store(true, Ordering::Relaxed);
            }
            // Whoever takes it lives as long as this thread.
            let _ = report.send(made);
        }
    }

    fn make(&self, file: File) -> Result<Made, GenerateError> {
        let begin = Instant::now();
        let suffix = if self.spec.gzip { "tsv.gz" } else { "tsv" };
        let path = self.spec.out.join(format!("{}.{suffix}", file.name()));
        let mut sink = Sink::create(&path)?;
        let mut piece = Vec::with_capacity(PIECE_BYTES + PIECE_BYTES / 4);
        piece.extend_from_slice(file.columns().join("\t").as_bytes());
        piece.push(b'\n');
        let (mut rows, mut bytes, mut told) = (0, 0, 0);
        for unit in 0..self.data.units(file) {
            rows += self.data.write(file, unit, &mut piece);
            if piece.len() >= PIECE_BYTES {
                bytes += self.hand_on(&mut sink, &mut piece, rows - told)?;
                told = rows;
            }
        }
        bytes += self.hand_on(&mut sink, &mut piece, rows - told)?;
        let stored_bytes = sink.finish()?;
        Ok(Made { file, path, rows, bytes, stored_bytes, seconds: begin.elapsed().as_secs_f64() })
    }

    fn hand_on(&self, sink: &mut Sink, piece: &mut Vec<u8>, rows: u64) -> Result<u64, GenerateError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(GenerateError::new("told to stop", "begin again"));
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

fn summary(spec: &GenerateSpec, done: &BTreeMap<File, Made>, begin: Instant) -> Value {
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

fn say(out: &mut impl Write, line: &Value) {
    // Whoever listened may be gone; there is nobody left to tell.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
