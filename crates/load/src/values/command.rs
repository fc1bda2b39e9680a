//! Which types return every value of whole files: one JSON document on standard input, JSON lines out.
//!
//! One thread reads and cuts at the ends of rows, the others look at the values. The first part is looked at alone: what its values
//! have in common is what the rest is held to, so that the first value that is lost is the same one in each run.

use std::collections::VecDeque;
use std::mem;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use memchr::memchr_iter;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::LoadError;
use crate::format::LineEnd;
use crate::read::pool::{Block, Blocks, Content, Filled};
use crate::read::source::{Input, Source};
use crate::spec::{CopyFormat, SourceSpec};
use crate::split::plan::{Chunk, Planner};
use crate::values::column::{Column, Lost, look};
use crate::values::fields::Syntax;
use crate::values::kinds::Kinds;

/// Looked at by one thread at a time: a fraction of a second is lost at the end.
const PART_BYTES: u64 = 1 << 20;
/// A row that is longer has a quote that is never closed, or a value that is text.
const ROW_BYTES_MAX: u64 = 64 << 20;
/// Threads that look: reading and cutting keeps up with so many.
const THREADS_MAX: usize = 8;
/// Between two lines about the progress.
const INTERVAL: Duration = Duration::from_secs(1);

/// Files of one format.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TypesSpec {
    /// What to read.
    pub sources: Vec<SourceSpec>,
    /// The format of all of them.
    pub format: CopyFormat,
    /// Whether the first row of each is a header.
    #[serde(default)]
    pub header: bool,
    /// How many columns there are.
    pub columns: usize,
}

/// A part of a source: whole rows.
struct Part {
    source: usize,
    chunk: Chunk,
    bytes: Vec<u8>,
    line_end: Option<LineEnd>,
    /// The line of its first row, from 1.
    line: u64,
}

/// The first value of a column that is lost, and where it is.
struct Place {
    at: (usize, u64),
    line: u64,
    lost: Lost,
}

/// What was found so far.
struct Found {
    columns: Vec<Column>,
    lost: Vec<Option<Place>>,
    rows: u64,
    bytes: u64,
}

impl Found {
    /// Takes what was seen of a part; true while a column may be something else than text.
    fn add(&mut self, part: &Part, seen: Vec<Column>) -> bool {
        self.rows += part.chunk.rows;
        self.bytes += part.chunk.end - part.chunk.begin;
        for ((all, place), mut column) in self.columns.iter_mut().zip(&mut self.lost).zip(seen) {
            all.merge(&column);
            let Some(lost) = column.lost.take() else { continue };
            let at = (part.source, part.chunk.begin + lost.row as u64);
            if place.as_ref().is_none_or(|place| at < place.at) {
                let line = part.line + lines(&part.bytes[..lost.row], part.line_end);
                *place = Some(Place { at, line, lost });
            }
        }
        self.columns.iter().any(|column| !column.kinds.is_text())
    }
}

fn lines(bytes: &[u8], line_end: Option<LineEnd>) -> u64 {
    memchr_iter(LineEnd::last_byte(line_end), bytes).count() as u64
}

/// Reads all sources, and says which type returns each column's values. `say` gets lines: `progress`, and at last `types`.
///
/// # Errors
/// A source that cannot be read, is damaged, or was changed since it was described.
pub fn types(spec: &TypesSpec, mut say: impl FnMut(&Value)) -> Result<(), LoadError> {
    Syntax::rows(&spec.format).check()?;
    let began = Instant::now();
    let sources = spec.sources.iter().map(Source::inspect).collect::<Result<Vec<_>, _>>()?;
    let columns = vec![Column::new(Kinds::ALL); spec.columns];
    let lost = std::iter::repeat_with(|| None).take(spec.columns).collect();
    let found = Mutex::new(Found { columns, lost, rows: 0, bytes: 0 });
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    let (to, from) = sync_channel::<Part>(threads);
    let from = Mutex::new(from);
    let syntax = Syntax::of(&spec.format);
    let is_whole = std::thread::scope(|scope| {
        let mut reader = Reader {
            spec,
            syntax: &syntax,
            found: &found,
            to: Some(to),
            first: true,
            due: began + INTERVAL,
            say: &mut say,
        };
        let mut waiting: VecDeque<_> = (0..threads).collect();
        while waiting.pop_front().is_some() {
            scope.spawn(|| look_at_parts(&from, &found, &syntax));
        }
        for (number, source) in sources.iter().enumerate() {
            if !reader.read(number, source)? {
                return Ok(false);
            }
        }
        Ok::<_, LoadError>(true)
    })?;
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    say(&document(spec, &found, is_whole, began.elapsed()));
    Ok(())
}

/// A thread that looks, until there are no more parts.
fn look_at_parts(from: &Mutex<Receiver<Part>>, found: &Mutex<Found>, syntax: &Syntax) {
    let mut first: Option<Vec<Kinds>> = None;
    loop {
        let part = locked(from).recv();
        let Ok(part) = part else { return };
        // The first part was looked at before any other was sent.
        let first = first.get_or_insert_with(|| locked(found).columns.iter().map(|column| column.kinds).collect());
        let mut columns: Vec<Column> = first.iter().map(|kinds| Column::new(*kinds)).collect();
        look(&mut columns, syntax, &part.bytes, part.line_end);
        locked(found).add(&part, columns);
    }
}

/// The thread that reads.
struct Reader<'a> {
    spec: &'a TypesSpec,
    syntax: &'a Syntax,
    found: &'a Mutex<Found>,
    to: Option<SyncSender<Part>>,
    /// Whether no part was looked at.
    first: bool,
    due: Instant,
    say: &'a mut dyn FnMut(&Value),
}

impl Reader<'_> {
    /// Reads a source to its end. False when the rest needs no look.
    fn read(&mut self, number: usize, source: &Source) -> Result<bool, LoadError> {
        let (stored, blocks) = (Arc::default(), Arc::<Blocks>::default());
        let mut content: Box<dyn Content> = match source.open(&stored, &blocks)? {
            Input::Stream(stream) => stream,
            Input::Plain(file) => Box::new(Filled::new(file, &blocks)),
        };
        let mut planner = Planner::new(Syntax::rows(&self.spec.format), PART_BYTES, self.spec.header);
        let mut cut = Cut { number, begin: 0, line: 1, bytes: Vec::new() };
        loop {
            let block: Option<Block> = content.next().map_err(|error| source.broken(&error, cut.begin))?;
            let Some(block) = block else { break };
            let mut whole = Vec::new();
            planner.take(block.bytes(), |chunk| whole.push(chunk));
            cut.bytes.extend_from_slice(block.bytes());
            for chunk in whole {
                let part = cut.part(chunk, planner.line_end());
                if !self.send(part) {
                    return Ok(false);
                }
            }
            if planner.ended() {
                break;
            }
            if planner.row_under_way().1 > ROW_BYTES_MAX {
                return Ok(false);
            }
            self.tell();
        }
        if let Some(last) = planner.finish() {
            let part = cut.part(last, planner.line_end());
            if !self.send(part) {
                return Ok(false);
            }
        }
        source.unchanged()?;
        source.whole()?;
        Ok(true)
    }

    /// Has a part looked at. False when no column can be anything but text.
    fn send(&mut self, part: Part) -> bool {
        if mem::take(&mut self.first) {
            let mut columns = vec![Column::new(Kinds::ALL); self.spec.columns];
            look(&mut columns, self.syntax, &part.bytes, part.line_end);
            return locked(self.found).add(&part, columns);
        }
        let is_open = locked(self.found).columns.iter().any(|column| !column.kinds.is_text());
        is_open && self.to.as_ref().is_some_and(|to| to.send(part).is_ok())
    }

    fn tell(&mut self) {
        if Instant::now() >= self.due {
            self.due = Instant::now() + INTERVAL;
            let bytes = locked(self.found).bytes;
            (self.say)(&json!({"event": "progress", "bytes": bytes}));
        }
    }
}

/// Bytes of a source that are in no part yet.
struct Cut {
    number: usize,
    /// Where they begin.
    begin: u64,
    /// The line that they begin with, from 1.
    line: u64,
    bytes: Vec<u8>,
}

impl Cut {
    fn part(&mut self, chunk: Chunk, line_end: Option<LineEnd>) -> Part {
        let length = |from: u64| usize::try_from(from - self.begin).unwrap_or(usize::MAX).min(self.bytes.len());
        let (header, end) = (length(chunk.begin), length(chunk.end));
        let rest = self.bytes.split_off(end);
        let mut bytes = mem::replace(&mut self.bytes, rest);
        self.line += lines(&bytes[..header], line_end);
        bytes.drain(..header);
        let part = Part { source: self.number, line: self.line, line_end, bytes, chunk };
        self.line += lines(&part.bytes, line_end);
        self.begin = part.chunk.end;
        part
    }
}

fn document(spec: &TypesSpec, found: &Found, is_whole: bool, elapsed: Duration) -> Value {
    let is_text = !is_whole && found.columns.iter().any(|column| !column.kinds.is_text());
    let columns: Vec<Value> = found
        .columns
        .iter()
        .zip(&found.lost)
        .map(|(column, place)| {
            let mut document = column.document();
            if is_text {
                // A row that is too long ended the look: nothing is known of the rest.
                document["type"] = "text".into();
            }
            document["lost"] = place.as_ref().map_or(Value::Null, |place| {
                json!({
                    "type": place.lost.before,
                    "value": String::from_utf8_lossy(&place.lost.value),
                    "source": spec.sources[place.at.0].name,
                    "line": place.line,
                    "byte": place.at.1,
                })
            });
            document
        })
        .collect();
    json!({"event": "types", "columns": columns, "rows": found.rows, "bytes": found.bytes, "whole": is_whole,
        "elapsed_ms": elapsed.as_secs_f64() * 1e3})
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// The document for a file of these bytes.
    fn of(bytes: &[u8], columns: usize, header: bool) -> Value {
        let mut file = tempfile(bytes);
        file.flush().unwrap();
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
        let spec = json!({"sources": [{"path": path, "name": "a.csv"}], "format": {"csv": {}}, "header": header, "columns": columns});
        let mut last = Value::Null;
        types(&serde_json::from_value(spec).unwrap(), |line| last = line.clone()).unwrap();
        last
    }

    fn tempfile(bytes: &[u8]) -> std::fs::File {
        let flags = rustix::fs::MemfdFlags::CLOEXEC;
        let mut file = std::fs::File::from(rustix::fs::memfd_create("types", flags).unwrap());
        file.write_all(bytes).unwrap();
        file
    }

    #[test]
    fn a_value_far_behind_the_beginning_decides_and_is_named_with_its_line() {
        let mut rows = String::from("id,zip\n");
        for number in 0..400_000 {
            rows += &format!("{number},{}\n", 10_000 + number % 90_000);
        }
        rows += "7,00013\n8,x\n";
        let found = of(rows.as_bytes(), 2, true);
        assert_eq!(found["rows"], 400_002);
        assert_eq!((&found["columns"][0]["type"], &found["columns"][1]["type"]), (&json!("bigint"), &json!("text")));
        let lost = &found["columns"][1]["lost"];
        assert_eq!(
            (&lost["value"], &lost["line"], &lost["type"]),
            (&json!("00013"), &json!(400_002), &json!("bigint"))
        );
    }

    #[test]
    fn files_of_text_are_not_read_to_their_end() {
        let rows = "a,b\n".repeat(3 << 20);
        let found = of(rows.as_bytes(), 2, false);
        assert_eq!((&found["whole"], &found["columns"][0]["type"]), (&json!(false), &json!("text")));
        assert!(found["bytes"].as_u64().unwrap() < 2 << 20);
    }

    #[test]
    fn a_quote_that_is_never_closed_makes_text_and_no_unbounded_memory() {
        let mut rows = b"1\n\"".to_vec();
        rows.resize(70 << 20, b'2');
        assert_eq!(of(&rows, 1, false)["columns"][0]["type"], "text");
    }
}
