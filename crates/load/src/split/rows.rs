//! Where rows end, byte for byte as COPY decides it.
//!
//! COPY first cuts its input into lines and only then looks for values. What it knows while it cuts: in CSV, a quote
//! changes between inside and outside wherever it stands, unless it is escaped inside; in text, a backslash takes the next
//! byte with it. The first line that ends outside of quotes says how all lines end, and another kind of end afterwards is an
//! error. (PostgreSQL 18, `CopyReadLineText` in src/backend/commands/copyfromparse.c; the behaviour is tested against servers.)
//!
//! A row that breaks these rules is reported and its end is guessed, so that the rows after it can be told apart; whether
//! it is refused is the caller's business. It must not be sent alone, where it might break no rule.

use memchr::{memchr2, memchr3};
use serde::Serialize;

use crate::format::{Format, LineEnd};

/// Longest row that PostgreSQL takes: it collects a line in a buffer of less than 1 GiB (`MaxAllocSize` of memutils.h).
pub const ROW_BYTES_MAX: u64 = (1 << 30) - 1;

/// What COPY's cutting refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// A carriage return where lines end otherwise.
    StrayReturn,
    /// A newline where lines end otherwise.
    StrayNewline,
    /// The data end inside of quotes.
    OpenQuote,
}

/// A rule that a row breaks first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Broken {
    /// Which.
    pub rule: Rule,
    /// Where: bytes from the beginning of the data.
    pub at: u64,
}

/// A row that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Where the next one begins: bytes from the beginning of the data.
    pub end: u64,
    /// What is wrong with it.
    pub broken: Option<Broken>,
    /// Whether COPY makes a row of it: not of a mark that ends the data, nor of what follows one.
    pub is_data: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Outside of quotes.
    Plain,
    /// Inside of quotes; whether the last byte was an escape that counts.
    Quoted { escaped: bool },
    /// In text, behind a backslash.
    Backslash,
    /// Behind a carriage return of which the next byte decides what it is.
    Return,
    /// Behind the mark that ends the data, which may have had data before it on its line: COPY looks at nothing more.
    Ended { data_before: bool },
}

/// Finds the ends of rows in blocks of any size.
#[derive(Clone, Debug)]
pub struct Rows {
    format: Format,
    state: State,
    line_end: Option<LineEnd>,
    /// Bytes seen.
    position: u64,
    /// Where the row under way begins.
    begin: u64,
    /// The first two bytes of the row under way, to know a marker.
    head: [u8; 2],
    broken: Option<Broken>,
}

impl Rows {
    /// At the beginning of a file.
    pub fn new(format: Format) -> Self {
        Self { format, state: State::Plain, line_end: None, position: 0, begin: 0, head: [0; 2], broken: None }
    }

    /// In the middle of a file, where a row begins: after `position` bytes, with what its first line said of line ends.
    pub fn resume(format: Format, line_end: Option<LineEnd>, position: u64) -> Self {
        Self { line_end, position, begin: position, ..Self::new(format) }
    }

    /// How lines end, once one has.
    pub fn line_end(&self) -> Option<LineEnd> {
        self.line_end
    }

    /// Whether the data ended with a marker: everything behind belongs to the last row, and COPY ignores it.
    pub fn ended(&self) -> bool {
        matches!(self.state, State::Ended { .. })
    }

    /// The row that has not ended: where it begins, and how many bytes of it were seen. None of them are behind a mark, which COPY
    /// ignores.
    pub fn row_under_way(&self) -> (u64, u64) {
        (self.begin, if self.ended() { 0 } else { self.position - self.begin })
    }

    /// Bytes seen.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Whether in a block each newline ends a sound row, and nothing else does. Most blocks of most files are so, and can be
    /// looked at as a whole.
    pub(crate) fn is_plain(&self, block: &[u8]) -> bool {
        if self.state != State::Plain || self.line_end != Some(LineEnd::Newline) || self.broken.is_some() {
            return false;
        }
        match self.format {
            // The row under way may be a mark of which the first half was in the block before.
            Format::Csv { marker: true, .. } if self.head[0] == b'\\' => false,
            Format::Csv { quote, marker: true, .. } => memchr3(quote as u8, b'\\', b'\r', block).is_none(),
            Format::Csv { quote, .. } => memchr2(quote as u8, b'\r', block).is_none(),
            Format::Text => memchr2(b'\\', b'\r', block).is_none(),
        }
    }

    /// Passes over such a block, whose last newline, if it has any, is at `last`.
    pub(crate) fn pass(&mut self, block: &[u8], last: Option<usize>) {
        if let Some(last) = last {
            // What begins behind it begins without a backslash, and is not a mark.
            (self.begin, self.head) = (self.position + last as u64 + 1, [0; 2]);
        }
        self.position += block.len() as u64;
    }

    /// Takes the next block and says which rows end in it.
    pub fn scan(&mut self, block: &[u8], mut row: impl FnMut(Row)) {
        let mut i = 0;
        while i < block.len() {
            self.remember(block, i);
            i = match self.state {
                State::Plain => self.plain(block, i, &mut row),
                State::Quoted { escaped } => self.quoted(block, i, escaped),
                State::Backslash => self.backslash(block[i], i),
                State::Return => self.after_return(block[i], i, &mut row),
                State::Ended { .. } => block.len(),
            };
        }
        self.position += block.len() as u64;
    }

    /// The data are over: the last row, if it has no end of its own.
    pub fn finish(&mut self) -> Option<Row> {
        match self.state {
            State::Quoted { .. } => self.breaks(Rule::OpenQuote, 0),
            // Nothing follows that could make two bytes of it.
            State::Return if self.line_end == Some(LineEnd::ReturnNewline) => self.breaks(Rule::StrayReturn, 0),
            State::Return => {
                self.line_end = Some(LineEnd::Return);
                return Some(self.row(0, 1));
            }
            State::Plain | State::Backslash | State::Ended { .. } => {}
        }
        (self.position > self.begin).then(|| self.row(0, 0))
    }

    /// Keeps the first bytes of a row, if `i` is at them.
    fn remember(&mut self, block: &[u8], i: usize) {
        if !matches!(self.format, Format::Csv { marker: true, .. }) {
            return;
        }
        for (place, head) in self.head.iter_mut().enumerate() {
            let at = self.begin + place as u64;
            if let Some(offset) = at.checked_sub(self.position).and_then(|offset| usize::try_from(offset).ok())
                && offset >= i
                && let Some(byte) = block.get(offset)
            {
                *head = *byte;
            }
        }
    }

    fn plain(&mut self, block: &[u8], i: usize, row: &mut impl FnMut(Row)) -> usize {
        let special = match self.format {
            Format::Csv { quote, .. } => quote as u8,
            Format::Text => b'\\',
        };
        let Some(found) = memchr3(special, b'\n', b'\r', &block[i..]) else { return block.len() };
        let at = i + found;
        match block[at] {
            b'\n' => self.newline(at, row),
            b'\r' => self.carriage_return(at, row),
            _ if self.format == Format::Text => self.state = State::Backslash,
            _ => self.state = State::Quoted { escaped: false },
        }
        at + 1
    }

    fn quoted(&mut self, block: &[u8], i: usize, escaped: bool) -> usize {
        let Format::Csv { quote, escape, .. } = self.format else { return block.len() };
        let (quote, escape) = (quote as u8, escape as u8);
        if escaped {
            // Whatever it is, an escape that counts is over.
            self.state = State::Quoted { escaped: false };
            return i + 1;
        }
        let Some(found) = memchr2(quote, escape, &block[i..]) else { return block.len() };
        let at = i + found;
        // An escape that is the quote itself needs no rule: two quotes leave and enter again.
        self.state = if block[at] == quote { State::Plain } else { State::Quoted { escaped: true } };
        at + 1
    }

    fn backslash(&mut self, byte: u8, i: usize) -> usize {
        let backslash = self.position + i as u64 - 1;
        self.state = if byte == b'.' { State::Ended { data_before: backslash > self.begin } } else { State::Plain };
        i + 1
    }

    /// A newline outside of quotes.
    fn newline(&mut self, at: usize, row: &mut impl FnMut(Row)) {
        match self.line_end {
            None => self.line_end = Some(LineEnd::Newline),
            Some(LineEnd::Newline) => {}
            Some(_) => self.breaks(Rule::StrayNewline, at),
        }
        row(self.row(at + 1, 1));
    }

    /// A carriage return outside of quotes.
    fn carriage_return(&mut self, at: usize, row: &mut impl FnMut(Row)) {
        match self.line_end {
            None | Some(LineEnd::ReturnNewline) => self.state = State::Return,
            Some(LineEnd::Return) => row(self.row(at + 1, 1)),
            Some(LineEnd::Newline) => self.breaks(Rule::StrayReturn, at),
        }
    }

    /// What follows a carriage return that may be the first half of an end.
    fn after_return(&mut self, byte: u8, i: usize, row: &mut impl FnMut(Row)) -> usize {
        self.state = State::Plain;
        match (self.line_end, byte) {
            (_, b'\n') => {
                self.line_end = Some(LineEnd::ReturnNewline);
                row(self.row(i + 1, 2));
                i + 1
            }
            (None, _) => {
                self.line_end = Some(LineEnd::Return);
                row(self.row(i, 1));
                i
            }
            (Some(_), _) => {
                // The return was the byte before, which may be in the block before.
                let at = self.position + i as u64 - 1;
                self.broken = self.broken.or(Some(Broken { rule: Rule::StrayReturn, at }));
                i
            }
        }
    }

    fn breaks(&mut self, rule: Rule, at: usize) {
        let at = self.position + at as u64;
        self.broken = self.broken.or(Some(Broken { rule, at }));
    }

    /// The row that ends before the byte at `next` of the block, with a line end of `line_end_bytes`.
    fn row(&mut self, next: usize, line_end_bytes: u64) -> Row {
        let end = self.position + next as u64;
        let may_mark = matches!(self.format, Format::Csv { marker: true, .. }) && line_end_bytes > 0;
        if may_mark && self.head == *br"\." && end - self.begin == 2 + line_end_bytes {
            self.state = State::Ended { data_before: false };
        }
        let is_data = !matches!(self.state, State::Ended { data_before: false });
        self.begin = end;
        Row { end, broken: self.broken.take(), is_data }
    }
}
