//! Power cuts from a write log: one process holds the log and its index, and answers a JSON line each.
//!
//! `open` reads a log; `cut` names one content of its volumes and writes it to files; `audit` counts how the server's pages reached
//! the device.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use pgdyno_crash::{Audit, BLOCK_BYTES, Fate, History, Reading, State, Strata, Stratum, View};
use pgdyno_emulate::read_write_log;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::failure::Failure;

/// Bytes written at once.
const RUN_BYTES: usize = 1 << 20;
/// What a block holds that was never written.
const ZEROS: [u8; BLOCK_BYTES as usize] = [0; BLOCK_BYTES as usize];

/// What is asked.
#[derive(Debug, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
enum Request {
    /// The content of a cut.
    Cut(Wanted),
    /// How pages reached the device.
    Audit,
}

/// A cut, by its name, and where its content goes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    reading: String,
    seed: u64,
    number: u64,
    /// A file for each volume, which must not exist.
    files: Vec<PathBuf>,
    /// Write it though its content was written before.
    #[serde(default)]
    again: bool,
    /// Requests that stay whole, whatever is drawn.
    #[serde(default)]
    whole: Vec<u32>,
}

/// What is opened.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Open {
    log: PathBuf,
    /// Intervals of instants on the log's clock, by stratum.
    strata: BTreeMap<String, Vec<(u64, u64)>>,
    /// States that are read at each instant.
    states: u64,
}

/// Answers each line with one until the input ends. The first line opens a log.
pub(crate) fn serve(input: impl BufRead, mut output: impl Write) {
    let mut say = |answer: Result<Value, Failure>| {
        let line = answer.map_or_else(|failure| failure.document(), |answer| json!({"answer": answer}));
        writeln!(output, "{line}").and_then(|()| output.flush())
    };
    let mut lines = input.lines().map_while(Result::ok);
    let Some(first) = lines.next() else { return };
    let (history, open) = match open(&first) {
        Ok(found) => found,
        Err(failure) => return say(Err(failure)).unwrap_or(()),
    };
    let mut book = match Book::new(&history, open) {
        Ok(book) => book,
        Err(failure) => return say(Err(failure)).unwrap_or(()),
    };
    let mut heard = say(Ok(book.opened()));
    for line in lines {
        if heard.is_err() {
            return;
        }
        heard = say(parsed(&line).and_then(|request| match request {
            Request::Cut(wanted) => book.cut(&wanted),
            Request::Audit => Ok(json!(Audit::of(&history))),
        }));
    }
}

fn open(line: &str) -> Result<(History, Open), Failure> {
    let open: Open = parsed(line)?;
    Ok((History::new(read_write_log(&open.log)?), open))
}

fn parsed<T: DeserializeOwned>(line: &str) -> Result<T, Failure> {
    serde_json::from_str(line).map_err(|error| {
        Failure::new(format!("{line:?} is no request: {error}"), "give one JSON document on each line".to_owned())
    })
}

/// A log that is open, and what was written from it.
struct Book<'a> {
    history: &'a History,
    strata: Strata,
    states: u64,
    views: BTreeMap<(Reading, u64), View<'a>>,
    seen: BTreeSet<u128>,
}

impl<'a> Book<'a> {
    fn new(history: &'a History, open: Open) -> Result<Self, Failure> {
        let asked: Vec<Stratum> =
            open.strata.into_iter().map(|(name, intervals)| Stratum { name, intervals }).collect();
        let strata = Strata::of(history.log(), &asked);
        if strata.is_empty() {
            return Err(Failure::new(
                "the write log has no event at the instants that were asked for".to_owned(),
                "record it again".to_owned(),
            ));
        }
        let states = open.states.max(1);
        Ok(Self { history, strata, states, views: BTreeMap::new(), seen: BTreeSet::new() })
    }

    fn opened(&self) -> Value {
        let log = self.history.log();
        let marks: Vec<Value> = log.marks().map(|(event, text)| json!({"event": event, "text": text})).collect();
        let answered = self.history.requests().iter().filter(|request| request.answered.is_some()).count();
        json!({"header": log.header(), "requests": self.history.requests().len(), "answered": answered, "marks": marks})
    }

    fn cut(&mut self, wanted: &Wanted) -> Result<Value, Failure> {
        let remedy = "write it as whole, prefix-4096 or pieces-4096, with +strict or +units";
        let reading: Reading = wanted.reading.parse().map_err(|error| Failure::new(error, remedy.to_owned()))?;
        let log = self.history.log();
        if wanted.files.len() != log.header().volumes.len() {
            let message = format!("the log is of {} volumes", log.header().volumes.len());
            return Err(Failure::new(message, "give a file for each".to_owned()));
        }
        let (instant, number) = (wanted.number / self.states, wanted.number % self.states);
        let (stratum, position) = self.strata.draw(wanted.seed, instant);
        let history = self.history;
        let view = self.views.entry((reading, wanted.seed)).or_insert_with(|| View::new(history, reading, wanted.seed));
        // The cut is after the event before the position and before the one at it.
        let before_ns = log.events().get(position.saturating_sub(1) as usize).map_or(0, |event| event.at_ns);
        let after_ns = log.events().get(position as usize).map_or(before_ns, |event| event.at_ns);
        let mut answer =
            json!({"stratum": stratum, "position": position, "before_ns": before_ns, "after_ns": after_ns});
        let Some(state) = view.state(position, instant, number, &wanted.whole) else {
            // All of the instant's states were read.
            answer["state"] = Value::Null;
            return Ok(answer);
        };
        let new = self.seen.insert(state.hash());
        if new || wanted.again {
            for (volume, file) in wanted.files.iter().enumerate() {
                put(&state, volume, log.header().volumes[volume].size_bytes, file).map_err(|error| {
                    Failure::new(format!("cannot write {}: {error}", file.display()), "free some memory".to_owned())
                })?;
            }
        }
        answer["state"] = json!({"hash": format!("{:032x}", state.hash()), "new": new, "spoilt": state.spoilt.map(|one| self.request(one)),
            "undecided": state.undecided.iter().map(|one| {
                let mut told = self.request(one.request);
                told["kept"] = match &one.fate {
                    Fate::Lost => json!([]),
                    Fate::Whole => json!("whole"),
                    Fate::Torn(ranges) => json!(ranges),
                };
                told
            }).collect::<Vec<_>>()});
        Ok(answer)
    }

    fn request(&self, number: u32) -> Value {
        let request = &self.history.requests()[number as usize];
        json!({"request": number, "volume": request.volume, "offset": request.offset, "len": request.len,
            "discard": request.data.is_none()})
    }
}

/// Writes a volume's content to a new sparse file: blocks of zeros are holes, which are a large part of what mkfs and discards write.
fn put(state: &State<'_>, volume: usize, size_bytes: u64, path: &Path) -> io::Result<()> {
    let file = File::create_new(path)?;
    file.set_len(size_bytes)?;
    let mut run: Vec<u8> = Vec::with_capacity(RUN_BYTES);
    let mut begin = 0;
    state.write(volume, |offset, block| -> io::Result<()> {
        if block == ZEROS {
            return Ok(());
        }
        if run.len() + BLOCK_BYTES as usize > RUN_BYTES || begin + run.len() as u64 != offset {
            file.write_all_at(&run, begin)?;
            run.clear();
            begin = offset;
        }
        run.extend_from_slice(block);
        Ok(())
    })?;
    file.write_all_at(&run, begin)
}
