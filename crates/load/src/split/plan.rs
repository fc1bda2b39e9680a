//! Cuts a file into chunks of whole rows.
//!
//! The cuts depend on the file, its format and the lengths that were asked for alone, so that a second run finds the same
//! chunks.

use memchr::{memchr, memchr_iter, memrchr};
use serde::Serialize;

use crate::format::{Format, LineEnd};
use crate::split::rows::{Broken, Row, Rows};

/// Of what is left of a file a chunk has at most this part: at the end all sessions have something to do.
const PARTS: u64 = 8;

/// A part of a file that begins and ends with whole rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Chunk {
    /// Index of the chunk in its file, from 0.
    pub number: u64,
    /// Where it begins: bytes from the beginning of the file.
    pub begin: u64,
    /// Where the next one begins.
    pub end: u64,
    /// Rows before it, the header not counted.
    pub rows_before: u64,
    /// Rows that COPY makes of it.
    pub rows: u64,
    /// How many of them COPY refuses while it cuts its input into lines.
    pub rows_broken: u64,
    /// The first of those.
    pub first_broken: Option<Broken>,
}

/// Cuts a file that comes in blocks.
#[derive(Clone, Debug)]
pub struct Planner {
    rows: Rows,
    lengths: Lengths,
    /// Whether the next row is the header.
    header: bool,
    chunk: Chunk,
}

/// How long chunks are.
#[derive(Clone, Copy, Debug)]
struct Lengths {
    least: u64,
    most: u64,
    /// The length of the file; none where it is not known.
    file: Option<u64>,
}

impl Lengths {
    /// The length of a chunk that begins there, but for its last row.
    fn at(self, begin: u64) -> u64 {
        let left = self.file.map_or(0, |file| file.saturating_sub(begin));
        (left / PARTS).clamp(self.least, self.most)
    }
}

impl Planner {
    /// A chunk ends with the row that makes it `chunk_bytes` long or longer. `header`: the first row is in none.
    pub fn new(format: Format, chunk_bytes: u64, header: bool) -> Self {
        let lengths = Lengths { least: chunk_bytes, most: chunk_bytes, file: None };
        Self { rows: Rows::new(format), lengths, header, chunk: Chunk::default() }
    }

    /// Chunks of a file of this length are longer as long as there is much left of it, up to `bytes_max`, and shorter towards its
    /// end, down to `bytes_last`: who loads the last one keeps the others waiting.
    #[must_use]
    pub fn growing(mut self, bytes_max: u64, bytes_last: u64, file_bytes: Option<u64>) -> Self {
        if file_bytes.is_some() {
            let usual = self.lengths.least;
            self.lengths = Lengths { least: bytes_last.clamp(1, usual), most: bytes_max.max(usual), file: file_bytes };
        }
        self
    }

    /// Resumes where a chunk ended: the next one is `chunk`, of which only number, place and rows before count. `line_end` is
    /// what the first line of the file says.
    pub fn resume(format: Format, chunk_bytes: u64, line_end: Option<LineEnd>, chunk: &Chunk) -> Self {
        let Chunk { number, begin, rows_before, .. } = *chunk;
        Self {
            rows: Rows::resume(format, line_end, begin),
            lengths: Lengths { least: chunk_bytes, most: chunk_bytes, file: None },
            header: false,
            chunk: Chunk { number, begin, end: begin, rows_before, ..Chunk::default() },
        }
    }

    /// Takes the next block of the file and says which chunks are whole.
    pub fn take(&mut self, block: &[u8], mut done: impl FnMut(Chunk)) {
        let Self { rows, lengths, header, chunk } = self;
        if !*header && rows.is_plain(block) {
            let last = take_plain(chunk, *lengths, rows.position(), block, done);
            rows.pass(block, last);
            return;
        }
        rows.scan(block, |row| {
            if let Some(whole) = add(chunk, row, header, Some(*lengths)) {
                done(whole);
            }
        });
    }

    /// The file is over: the last chunk, if there is one.
    pub fn finish(&mut self) -> Option<Chunk> {
        if let Some(row) = self.rows.finish() {
            // However long it is, it is the last.
            add(&mut self.chunk, row, &mut self.header, None);
        }
        (self.chunk.end > self.chunk.begin).then(|| std::mem::take(&mut self.chunk))
    }

    /// The row that has not ended: where it begins, and how many bytes of it were seen.
    pub fn row_under_way(&self) -> (u64, u64) {
        self.rows.row_under_way()
    }

    /// How the file's lines end.
    pub fn line_end(&self) -> Option<LineEnd> {
        self.rows.line_end()
    }

    /// Whether a mark ended the data before the end of the file.
    pub fn ended(&self) -> bool {
        self.rows.ended()
    }
}

/// Adds a row to the chunk under way; the chunk, when it is whole with that. Without lengths it never is.
fn add(chunk: &mut Chunk, row: Row, header: &mut bool, lengths: Option<Lengths>) -> Option<Chunk> {
    chunk.end = row.end;
    if std::mem::take(header) && row.is_data {
        chunk.begin = row.end;
        return None;
    }
    chunk.rows += u64::from(row.is_data);
    chunk.rows_broken += u64::from(row.broken.is_some());
    chunk.first_broken = chunk.first_broken.or(row.broken);
    // What follows a mark is COPY's to ignore, which it does only where it has seen the mark.
    let is_whole = row.is_data && lengths.is_some_and(|lengths| row.end - chunk.begin >= lengths.at(chunk.begin));
    is_whole.then(|| whole(chunk))
}

/// Adds the rows of a block that begins at `base` and in which each newline ends one. They are counted; only the newline that
/// makes a chunk whole is looked for. Returns where the last one is.
fn take_plain(
    chunk: &mut Chunk,
    lengths: Lengths,
    base: u64,
    block: &[u8],
    mut done: impl FnMut(Chunk),
) -> Option<usize> {
    let (mut at, mut last) = (0, None);
    loop {
        // The end of a row is behind its newline.
        let enough = chunk.begin.saturating_add(lengths.at(chunk.begin)).saturating_sub(base + 1);
        let from = usize::try_from(enough).unwrap_or(usize::MAX).max(at);
        let Some(found) = block.get(from..).and_then(|rest| memchr(b'\n', rest)) else { break };
        last = Some(from + found);
        let next = from + found + 1;
        chunk.rows += newlines(&block[at..next]);
        chunk.end = base + next as u64;
        done(whole(chunk));
        at = next;
    }
    if let Some(found) = memrchr(b'\n', &block[at..]) {
        last = Some(at + found);
        chunk.rows += newlines(&block[at..]);
        chunk.end = base + (at + found) as u64 + 1;
    }
    last
}

fn newlines(bytes: &[u8]) -> u64 {
    memchr_iter(b'\n', bytes).count() as u64
}

/// Takes the chunk, which is whole, and begins the next one.
fn whole(chunk: &mut Chunk) -> Chunk {
    let next = Chunk {
        number: chunk.number + 1,
        begin: chunk.end,
        end: chunk.end,
        rows_before: chunk.rows_before + chunk.rows,
        ..Chunk::default()
    };
    std::mem::replace(chunk, next)
}
