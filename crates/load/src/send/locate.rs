//! Which row the server means.
//!
//! COPY names the line that it was at, counted from 1 in what it was sent. It counts a row as one line, and in CSV one more for
//! each line end in quotes: a CR, or an LF where it has seen that lines end in LF, so not yet in the first row. (PostgreSQL 18,
//! `CopyReadLineText`; the same since version 14.)

use std::io;

use pgdyno_connection::ServerError;

use crate::format::{Format, LineEnd};
use crate::split::chunk_data::{ChunkData, READ_BYTES};
use crate::split::rows::{Broken, Rows};

/// A row of a chunk: bytes of its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowRange {
    pub begin: u64,
    pub end: u64,
    pub broken: Option<Broken>,
    /// Whether COPY makes a row of it.
    pub is_data: bool,
}

/// Where the server was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ErrorPosition {
    /// The line of what it was sent, from 1.
    pub line: u64,
    /// The column.
    pub column: Option<String>,
}

impl ErrorPosition {
    /// Of what the server says; `table` is as the statement has it. The words are in the server's language, the order is not.
    pub(crate) fn of(said: &ServerError, table: &str) -> Option<Self> {
        let prefix = format!("COPY {}, ", bare(table));
        let rest = said.context.lines().find_map(|line| line.strip_prefix(prefix.as_str()))?;
        let digits = rest.find(|c: char| c.is_ascii_digit())?;
        let rest = &rest[digits..];
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let line = rest[..end].parse().ok()?;
        let named = rest[end..].strip_prefix(", ").and_then(|rest| rest.split_once(' '));
        let column = named.and_then(|(_, rest)| rest.split_once(": ")).map(|(column, _)| column.to_owned());
        Some(Self { line, column })
    }
}

/// The name of a table without its schema and quotes.
fn bare(table: &str) -> String {
    let (mut name, mut quoted, mut characters) = (String::new(), false, table.chars().peekable());
    while let Some(character) = characters.next() {
        match character {
            '"' if quoted && characters.peek() == Some(&'"') => name.extend(characters.next()),
            '"' => quoted = !quoted,
            '.' if !quoted => name.clear(),
            _ if quoted => name.push(character),
            _ => name.extend(character.to_lowercase()),
        }
    }
    name
}

/// The rows of a chunk, some at a time, so that a chunk of very many rows takes no more memory than another.
pub(crate) struct RowRanges<'a> {
    body: &'a ChunkData,
    rows: Rows,
    /// How far it was looked at.
    at: u64,
    /// Where the next row begins.
    begin: u64,
    /// Where the chunk ends, also where less of it is kept.
    end: u64,
    over: bool,
}

impl<'a> RowRanges<'a> {
    /// Those from `begin` to `end` of a source, which is a chunk.
    pub(crate) fn new(
        body: &'a ChunkData,
        format: Format,
        line_end: Option<LineEnd>,
        (begin, end): (u64, u64),
    ) -> Self {
        Self { body, rows: Rows::resume(format, line_end, begin), at: begin, begin, end, over: false }
    }

    /// Those that end in the next block; none when there are no more.
    pub(crate) fn next(&mut self) -> io::Result<Option<Vec<RowRange>>> {
        let (mut places, mut block) = (Vec::new(), Vec::new());
        while places.is_empty() {
            if self.over {
                return Ok(None);
            }
            block.clear();
            let read = self.body.read(self.at, self.end, READ_BYTES, &mut block)?;
            let begin = &mut self.begin;
            let mut add = |row: crate::split::rows::Row| {
                let begin = std::mem::replace(begin, row.end);
                places.push(RowRange { begin, end: row.end, broken: row.broken, is_data: row.is_data });
            };
            if read == 0 {
                self.over = true;
                // A chunk in the middle of its source ends with a whole row, and nothing is left.
                if let Some(row) = self.rows.finish() {
                    add(row);
                }
            } else {
                self.rows.scan(&block, add);
                self.at += read;
            }
        }
        Ok(Some(places))
    }
}

/// Counts lines as COPY does, row by row from the first that it is sent.
pub(crate) struct Lines<'a> {
    body: &'a ChunkData,
    format: Format,
    line_end: Option<LineEnd>,
    counted: u64,
}

impl<'a> Lines<'a> {
    /// Nothing is sent yet.
    pub(crate) fn new(body: &'a ChunkData, format: Format, line_end: Option<LineEnd>) -> Self {
        Self { body, format, line_end, counted: 0 }
    }

    /// The line that COPY is at when it has seen this row, the next one.
    pub(crate) fn add(&mut self, place: &RowRange) -> io::Result<u64> {
        if let Format::Csv { .. } = self.format {
            let byte = if self.counted == 0 { b'\r' } else { counted_byte(self.line_end) };
            let of_end = u64::from(place.ends_with(self.body, byte, self.line_end)?);
            self.counted += self.body.count((place.begin, place.end), byte)?.saturating_sub(of_end);
        }
        self.counted += 1;
        Ok(self.counted)
    }
}

/// The row of those sent that the server means, by the line that it says; none if it cannot be any.
pub(crate) fn row_at(lines: &mut Lines<'_>, sent: &[RowRange], line: u64) -> io::Result<Option<usize>> {
    for (number, place) in sent.iter().enumerate() {
        if line <= lines.add(place)? {
            return Ok(Some(number));
        }
    }
    Ok(None)
}

/// What COPY counts in quotes.
fn counted_byte(line_end: Option<LineEnd>) -> u8 {
    if line_end == Some(LineEnd::Newline) { b'\n' } else { b'\r' }
}

impl RowRange {
    /// Whether the row's own end has such a byte.
    fn ends_with(&self, body: &ChunkData, byte: u8, line_end: Option<LineEnd>) -> io::Result<bool> {
        let mut end = Vec::new();
        body.read(self.end.saturating_sub(2).max(self.begin), self.end, 2, &mut end)?;
        Ok(match line_end {
            Some(LineEnd::ReturnNewline) => byte == b'\r' && end == b"\r\n",
            Some(LineEnd::Newline | LineEnd::Return) => {
                byte == LineEnd::last_byte(line_end) && end.last() == Some(&byte)
            }
            None => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::split::chunk_data::chunk_data_of;

    const CSV: Format = Format::Csv { quote: '"', escape: '"', marker: false };

    fn said(context: &str) -> ServerError {
        ServerError { context: context.to_owned(), ..ServerError::default() }
    }

    fn found(bytes: &[u8], line_end: LineEnd, line: u64) -> Option<usize> {
        let body = chunk_data_of(bytes, 7);
        let mut places = RowRanges::new(&body, CSV, Some(line_end), (7, body.end()));
        let mut sent = Vec::new();
        while let Some(some) = places.next().unwrap() {
            sent.extend(some);
        }
        row_at(&mut Lines::new(&body, CSV, Some(line_end)), &sent, line).unwrap()
    }

    #[test]
    fn a_context_has_a_line_and_perhaps_a_column_in_any_language() {
        let at = |context: &str| ErrorPosition::of(&said(context), "\"s 1\".\"T\"\"2\"");
        let here = |line, column: Option<&str>| Some(ErrorPosition { line, column: column.map(str::to_owned) });
        assert_eq!(at("COPY T\"2, line 37, column a b: \"x: y\""), here(37, Some("a b")));
        assert_eq!(at("PL/pgSQL function f()\nCOPY T\"2, Zeile 3"), here(3, None));
        assert_eq!(at("COPY T\"2, line 3, column c: null input"), here(3, Some("c")));
        assert_eq!(at("COPY other, line 3"), None);
        assert_eq!(ErrorPosition::of(&said("COPY t, line 1: \"x\""), "S.T"), here(1, None));
    }

    #[test]
    fn line_ends_in_quotes_count_as_copy_counts_them() {
        let lines = |bytes: &[u8], end, lines: std::ops::RangeInclusive<u64>| {
            lines.map(|line| found(bytes, end, line)).collect::<Vec<_>>()
        };
        // The LF in the first row is not counted, that in the second is.
        let newline = lines(b"\"a\nb\"\n\"a\nb\"\nc\n", LineEnd::Newline, 1..=5);
        assert_eq!(newline, [Some(0), Some(1), Some(1), Some(2), None]);
        let both = lines(b"\"a\r\nb\"\r\n\"a\nb\"\r\nc", LineEnd::ReturnNewline, 1..=5);
        assert_eq!(both, [Some(0), Some(0), Some(1), Some(2), None]);
    }
}
