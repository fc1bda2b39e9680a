//! Sources are read and cut into chunks, on threads of their own.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use memchr::{memchr, memchr_iter};
use serde_json::json;

use crate::counters::Wait;
use crate::error::{LoadError, OTHER_ENCODING};
use crate::format::{Format, LineEnd};
use crate::ledger;
use crate::read::pool::{BLOCK_BYTES, Block, Content, Filled};
use crate::read::source::{Input, Source, Stored};
use crate::shared::{Piece, Shared};
use crate::spec::ChunkBytes;
use crate::split::chunk_data::ChunkData;
use crate::split::plan::{Chunk, Planner};
use crate::split::rows::{ROW_BYTES_MAX, Rows};

/// Longest header that is kept: what is longer is not a header.
const HEADER_BYTES_MAX: u64 = 1 << 20;

/// Longest line end.
const LINE_END_BYTES_MAX: usize = 2;

/// A thread that cuts: takes sources until there are none.
pub(crate) fn run(shared: &Shared) {
    let _leave = Leave(shared);
    while !shared.stopping() {
        let source = shared.next_source.fetch_add(1, Ordering::Relaxed);
        if source >= shared.sources.len() {
            break;
        }
        match Splitter::new(shared, source).run() {
            Ok(true) => {
                shared.sources_cut.fetch_add(1, Ordering::Relaxed);
            }
            Ok(false) => break,
            Err(error) => shared.fail(shared.sources[source].cause(error)),
        }
    }
}

/// Sessions must not wait for a planner that has ended, however it did.
struct Leave<'a>(&'a Shared);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.0.queue.leave();
    }
}

/// One source.
struct Splitter<'a> {
    shared: &'a Shared,
    number: usize,
    source: &'a Source,
    planner: Planner,
    /// The source, where its bytes are those of its rows: then none are kept.
    file: Option<Arc<File>>,
    /// Bytes of the source that were looked at.
    position: u64,
    /// Where the chunk under way begins, or the header before the first one.
    begin: u64,
    body: Option<ChunkData>,
    counted_from: u64,
    /// Line ends from there to where the chunk under way begins.
    lines_before: u64,
    /// Line ends in it.
    lines: u64,
    /// Bytes that are kept of what follows the block in which a mark ended the data.
    after_mark: usize,
}

impl<'a> Splitter<'a> {
    fn new(shared: &'a Shared, number: usize) -> Self {
        let (spec, source) = (&shared.spec, &shared.sources[number]);
        Self {
            shared,
            number,
            source,
            planner: sized(Planner::new(shared.format, spec.chunk_bytes.usual, spec.header), shared, source),
            file: None,
            position: 0,
            begin: 0,
            body: None,
            counted_from: 0,
            lines_before: 0,
            lines: 0,
            after_mark: LINE_END_BYTES_MAX,
        }
    }

    /// Reads to the end. False when the load is to stop.
    fn run(mut self) -> Result<bool, LoadError> {
        let counters = &self.shared.counters;
        let mut is_plain = false;
        let mut content: Box<dyn Content> = match self.source.open(&counters.stored, &self.shared.blocks)? {
            Input::Stream(stream) => stream,
            Input::Plain(mut file) => {
                is_plain = true;
                self.file = file.shared().map_err(|error| self.source.broken(&error, 0))?;
                self.pass_over(&mut file)?;
                Box::new(Filled::new(file, &self.shared.blocks))
            }
        };
        loop {
            if self.shared.stopping() {
                return Ok(false);
            }
            let block = match counters.waiting(Wait::Source, || content.next()) {
                Ok(Some(block)) => Arc::new(block),
                Ok(None) => break,
                Err(error) => return Err(self.source.broken(&error, self.position)),
            };
            if is_plain {
                counters.stored.fetch_add(block.bytes().len() as u64, Ordering::Relaxed);
            }
            if !self.feed(&block)? {
                return Ok(false);
            }
        }
        self.source.unchanged()?;
        self.source.whole()?;
        match self.planner.finish() {
            Some(last) => self.emit(last),
            None => {
                // A header alone is not a chunk, and COPY looks at it nevertheless.
                if let Some(body) = self.body.take().filter(|_| self.shared.spec.header && self.begin == 0) {
                    self.header(&body, 0, body.end())?;
                }
                Ok(true)
            }
        }
    }

    /// Goes to the end of the chunks that are in the table, where there is no gap between them.
    fn pass_over(&mut self, file: &mut Stored) -> Result<(), LoadError> {
        let Some(next) = ledger::prefix(&self.shared.done, self.number) else { return Ok(()) };
        let failed = |error: io::Error| self.source.broken(&error, 0);
        let head = Head::of(file, self.shared.format, self.shared.spec.header).map_err(failed)?;
        let first = self.shared.done.get(&(self.number, 0)).map_or(0, |done| done.begin);
        let bytes = file.length().map_err(failed)?;
        if first != head.header_bytes || next.begin > bytes {
            let message = format!(
                "the plan changed: the first chunk of {} begins at byte {} now, and at byte {first} in the ledger",
                self.source.name, head.header_bytes
            );
            return Err(LoadError::new(message, "load the file as it was, or begin a new load into an empty table"));
        }
        file.go_to(next.begin).map_err(failed)?;
        self.shared.counters.stored.fetch_add(next.begin, Ordering::Relaxed);
        self.shared.keep_header(self.number, head.header);
        let planner = Planner::resume(self.shared.format, self.shared.spec.chunk_bytes.usual, head.line_end, &next);
        self.planner = sized(planner, self.shared, self.source);
        (self.position, self.begin, self.counted_from) = (next.begin, next.begin, next.begin);
        Ok(())
    }

    /// Takes a block. False when the load is to stop.
    fn feed(&mut self, block: &Arc<Block>) -> Result<bool, LoadError> {
        let had_ended = self.planner.ended();
        let mut whole = Vec::new();
        self.planner.take(block.bytes(), |chunk| whole.push(chunk));
        let base = self.position;
        let mut at = 0;
        for chunk in whole {
            let next = usize::try_from(chunk.end - base).unwrap_or(usize::MAX);
            if !self.keep(block, at..next)? || !self.emit(chunk)? {
                return Ok(false);
            }
            at = next;
        }
        let length = block.bytes().len();
        self.position = base + length as u64;
        // COPY looks at the line end of the mark that ends the data, which may be in the next block, and at nothing behind it.
        let end = if had_ended { length.min(self.after_mark) } else { length };
        if had_ended {
            self.after_mark -= end;
        }
        self.require_short_row()?;
        self.keep(block, at..end)
    }

    /// Refuses a row that PostgreSQL could not take, however it ends: mostly all that follows a quote that is never closed.
    fn require_short_row(&self) -> Result<(), LoadError> {
        let (begin, bytes) = self.planner.row_under_way();
        if bytes <= ROW_BYTES_MAX {
            return Ok(());
        }
        let name = &self.source.name;
        let message = format!(
            "{name}: the row that begins at byte {begin} is longer than {ROW_BYTES_MAX} bytes, the most that PostgreSQL takes"
        );
        Err(LoadError::new(
            message,
            "look for a quote there that is never closed, and check the format's quote and escape",
        )
        .coded("load.row.too_long", json!({"source": name, "byte": begin, "bytes_max": ROW_BYTES_MAX})))
    }

    /// Adds a part of a block to the chunk under way. False when the load is to stop.
    fn keep(&mut self, block: &Arc<Block>, range: Range<usize>) -> Result<bool, LoadError> {
        if range.is_empty() {
            return Ok(true);
        }
        let bytes = &block.bytes()[range.clone()];
        self.lines += memchr_iter(LineEnd::last_byte(self.planner.line_end()), bytes).count() as u64;
        if self.body.is_none() {
            self.body = match &self.file {
                Some(file) => Some(ChunkData::of_file(file, self.begin)),
                None => {
                    let room = self.shared.counters.waiting(Wait::QueueFull, || self.shared.pool.take());
                    let Some(room) = room else { return Ok(false) };
                    Some(ChunkData::new(room, self.begin))
                }
            };
        }
        if let Some(body) = &mut self.body {
            body.append(block, range).map_err(|error| not_kept(&error))?;
        }
        Ok(true)
    }

    /// The chunk under way is whole. False when the load is to stop.
    fn emit(&mut self, chunk: Chunk) -> Result<bool, LoadError> {
        let begin = std::mem::replace(&mut self.begin, chunk.end);
        let lines = std::mem::take(&mut self.lines);
        let lines_to_here = self.lines_before;
        self.lines_before += lines;
        let body = self.body.take().expect("a chunk has bytes");
        let mut lines_before = lines_to_here;
        if chunk.begin > begin {
            lines_before += self.header(&body, begin, chunk.begin)?;
        }
        if let Some(done) = self.shared.done.get(&(self.number, chunk.number)) {
            ledger::compare(&self.source.name, &chunk, done)?;
            return Ok(true);
        }
        ledger::fits(&self.source.name, &self.shared.done, self.number, &chunk)?;
        let piece = Piece {
            source: self.number,
            chunk,
            body,
            line_end: self.planner.line_end(),
            counted_from: self.counted_from,
            lines_before,
        };
        self.shared.chunks_cut.fetch_add(1, Ordering::Relaxed);
        Ok(self.shared.counters.waiting(Wait::QueueFull, || self.shared.queue.push(piece)))
    }

    /// Keeps the header, which lies before the first chunk; returns how many line ends it has. It is not sent, so no other check would
    /// find that it is not text.
    fn header(&self, body: &ChunkData, begin: u64, end: u64) -> Result<u64, LoadError> {
        let (header, lines) = self.bytes_of_header(body, begin, end).map_err(|error| not_kept(&error))?;
        if let Some(at) = no_text(&header, &self.shared.spec.encoding_name()) {
            let message = format!("{} line 1: byte {at} of the header is not text", self.source.name);
            return Err(match header[at] {
                0 => LoadError::nul(message, &self.source.name, at as u64, self.source.is_packed()),
                _ => LoadError::new(message, OTHER_ENCODING),
            });
        }
        self.shared.keep_header(self.number, header);
        Ok(lines)
    }

    /// The header's bytes, and how many line ends they have.
    fn bytes_of_header(&self, body: &ChunkData, begin: u64, end: u64) -> io::Result<(Vec<u8>, u64)> {
        let (mut header, mut part, mut at, mut lines) = (Vec::new(), Vec::new(), begin, 0);
        while at < end {
            part.clear();
            let read = body.read(at, end, BLOCK_BYTES, &mut part)?;
            if read == 0 {
                break;
            }
            lines += memchr_iter(LineEnd::last_byte(self.planner.line_end()), &part).count() as u64;
            at += read;
            if at - begin <= HEADER_BYTES_MAX {
                header.extend_from_slice(&part);
            }
        }
        Ok((header, lines))
    }
}

/// Where bytes cannot be text: a zero in any encoding, and what UTF-8 does not have where that is the file's. The end may be cut off.
fn no_text(bytes: &[u8], encoding_name: &str) -> Option<usize> {
    let zero = memchr(0, bytes);
    let is_utf8 = ["utf8", "unicode"].contains(&encoding_name);
    let wrong = std::str::from_utf8(bytes).err().filter(|error| is_utf8 && error.error_len().is_some());
    zero.into_iter().chain(wrong.map(|error| error.valid_up_to())).min()
}

/// Chunks of a file that is not compressed need no memory, however long they are, and how many are left is known.
fn sized(planner: Planner, shared: &Shared, source: &Source) -> Planner {
    let ChunkBytes { most, last, .. } = shared.spec.chunk_bytes;
    planner.growing(most, last, source.plain_bytes())
}

/// What the beginning of a file says of the rest.
struct Head {
    /// The header's first bytes; empty without one.
    header: Vec<u8>,
    /// How long it is.
    header_bytes: u64,
    /// How lines end.
    line_end: Option<LineEnd>,
}

impl Head {
    /// Reads as far as the first row's end.
    fn of(file: &mut impl Read, format: Format, with_header: bool) -> io::Result<Self> {
        let mut rows = Rows::new(format);
        let (mut first, mut header, mut block) = (None, Vec::new(), vec![0; BLOCK_BYTES]);
        while rows.line_end().is_none() {
            let read = file.read(&mut block)?;
            if read == 0 {
                first = first.or(rows.finish());
                break;
            }
            if with_header && (header.len() as u64) < HEADER_BYTES_MAX {
                header.extend_from_slice(&block[..read]);
            }
            rows.scan(&block[..read], |row| first = first.or(Some(row)));
            if rows.row_under_way().1 > ROW_BYTES_MAX {
                break;
            }
        }
        let header_bytes = first.filter(|row| with_header && row.is_data).map_or(0, |row| row.end);
        header.truncate(usize::try_from(header_bytes).unwrap_or(usize::MAX));
        Ok(Self { header, header_bytes, line_end: rows.line_end() })
    }
}

fn not_kept(error: &io::Error) -> LoadError {
    LoadError::new(
        format!("a chunk that is too long for memory cannot be written to a temporary file: {error}"),
        "free some space in the folder that TMPDIR names, or ask for shorter chunks",
    )
}
