//! Cuts a file into chunks of whole rows.
//!
//! The cuts depend on the file, its format and the size alone, so that a second run finds the same chunks.

use serde::Serialize;

use crate::format::{Format, LineEnd};
use crate::rows::{Broken, Row, Rows};

/// A part of a file that begins and ends with whole rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Chunk {
    /// Of the file's chunks, the how-manieth, from 0.
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
    chunk_bytes: u64,
    /// Whether the next row is the header.
    header: bool,
    chunk: Chunk,
}

impl Planner {
    /// A chunk ends with the row that makes it `chunk_bytes` long or longer. `header`: the first row is in none.
    pub fn new(format: Format, chunk_bytes: u64, header: bool) -> Self {
        Self { rows: Rows::new(format), chunk_bytes, header, chunk: Chunk::default() }
    }

    /// Goes on where a chunk ended: the next one is `chunk`, of which only number, place and rows before count. `line_end` is
    /// what the first line of the file says.
    pub fn resume(format: Format, chunk_bytes: u64, line_end: Option<LineEnd>, chunk: &Chunk) -> Self {
        let Chunk { number, begin, rows_before, .. } = *chunk;
        Self {
            rows: Rows::resume(format, line_end, begin),
            chunk_bytes,
            header: false,
            chunk: Chunk { number, begin, end: begin, rows_before, ..Chunk::default() },
        }
    }

    /// Takes the next block of the file and says which chunks are whole.
    pub fn take(&mut self, block: &[u8], mut done: impl FnMut(Chunk)) {
        let Self { rows, chunk_bytes, header, chunk } = self;
        rows.scan(block, |row| {
            if let Some(whole) = add(chunk, row, header, *chunk_bytes) {
                done(whole);
            }
        });
    }

    /// The file is over: the last chunk, if there is one.
    pub fn finish(&mut self) -> Option<Chunk> {
        if let Some(row) = self.rows.finish() {
            // However long it is, it is the last.
            add(&mut self.chunk, row, &mut self.header, u64::MAX);
        }
        (self.chunk.end > self.chunk.begin).then(|| std::mem::take(&mut self.chunk))
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

/// Adds a row to the chunk under way; the chunk, when it is whole with that.
fn add(chunk: &mut Chunk, row: Row, header: &mut bool, chunk_bytes: u64) -> Option<Chunk> {
    chunk.end = row.end;
    if std::mem::take(header) && row.is_data {
        chunk.begin = row.end;
        return None;
    }
    chunk.rows += u64::from(row.is_data);
    chunk.rows_broken += u64::from(row.broken.is_some());
    chunk.first_broken = chunk.first_broken.or(row.broken);
    // What follows a mark is COPY's to ignore, which it does only where it has seen the mark.
    if !row.is_data || row.end - chunk.begin < chunk_bytes {
        return None;
    }
    let next = Chunk {
        number: chunk.number + 1,
        begin: row.end,
        end: row.end,
        rows_before: chunk.rows_before + chunk.rows,
        ..Chunk::default()
    };
    Some(std::mem::replace(chunk, next))
}
