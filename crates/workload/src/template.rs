//! A statement's text with places for its parameters, for both ways of sending them.

use std::fmt::Write as _;

/// How many parameters one statement may have: the limit of pgbench, far below the protocol's 65,535.
pub const PARAMETERS_MAX: usize = 255;

/// A statement's text. It is written once for each workload; what differs between executions is in [`Parameters`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template {
    pieces: Vec<String>,
    places: Vec<Place>,
    numbered: String,
    accesses: Vec<Access>,
}

/// Where a parameter stands.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    name: String,
    quoted: bool,
}

/// What a statement does to rows, so that a simulator needs no SQL parser. Statements of users' files have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The table.
    pub relation: &'static str,
    /// Which of several tables that differ by a number; 0 where there is one.
    pub number: u32,
    /// Which parameter, from 0, is the (first) key; `None` where rows are appended.
    pub parameter: Option<usize>,
    /// How many rows follow one another from that key.
    pub rows: u32,
    /// What is done to them.
    pub kind: AccessKind,
}

/// What is done to rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// Read.
    Read,
    /// Read and written as a new version.
    Update,
    /// Added.
    Insert,
    /// Removed.
    Delete,
}

/// The three sums of sysbench's statistics; queries are all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// A query.
    Read,
    /// A change.
    Write,
    /// BEGIN, COMMIT and the like.
    Other,
}

impl Template {
    /// A template without parameters; more is appended with the other methods.
    pub fn new(text: &str) -> Self {
        Self { pieces: vec![text.to_owned()], numbered: text.to_owned(), ..Self::default() }
    }

    /// Appends text.
    #[must_use]
    pub fn text(mut self, text: &str) -> Self {
        match self.pieces.last_mut() {
            Some(piece) => piece.push_str(text),
            None => self.pieces.push(text.to_owned()),
        }
        self.numbered.push_str(text);
        self
    }

    /// Appends a parameter which stands in the text as it is.
    #[must_use]
    pub fn parameter(self, name: &str) -> Self {
        self.place(name, false)
    }

    /// Appends a parameter which stands in the text between apostrophes.
    #[must_use]
    pub fn quoted(self, name: &str) -> Self {
        self.place(name, true)
    }

    /// Adds what the statement does to rows.
    #[must_use]
    pub fn access(mut self, access: Access) -> Self {
        self.accesses.push(access);
        self
    }

    fn place(mut self, name: &str, quoted: bool) -> Self {
        if self.pieces.is_empty() {
            self.pieces.push(String::new());
        }
        self.places.push(Place { name: name.to_owned(), quoted });
        self.pieces.push(String::new());
        let number = self.places.len();
        write!(self.numbered, "${number}").expect("a string takes all text");
        self
    }

    /// The text with `$1`, `$2`, … for the extended protocol, to be prepared once or parsed each time.
    pub fn numbered(&self) -> &str {
        &self.numbered
    }

    /// The names of the parameters in their order; a name that occurs twice is two parameters, as in pgbench.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.places.iter().map(|place| place.name.as_str())
    }

    /// What it does to rows.
    pub fn accesses(&self) -> &[Access] {
        &self.accesses
    }

    /// What it counts as in sysbench's statistics; a statement of a user's file, of which nothing is known, as other.
    pub fn class(&self) -> Class {
        match self.accesses.first() {
            None => Class::Other,
            Some(Access { kind: AccessKind::Read, .. }) => Class::Read,
            Some(_) => Class::Write,
        }
    }

    /// Appends the text with the values in their places, for the simple protocol. A variable that has no value stays
    /// as it was written, `:name`, as in pgbench.
    pub fn write_substituted(&self, parameters: Parameters<'_>, out: &mut Vec<u8>) {
        for (index, piece) in self.pieces.iter().enumerate() {
            out.extend_from_slice(piece.as_bytes());
            let Some(place) = self.places.get(index) else { continue };
            match parameters.get(index) {
                Parameter::Undefined => {
                    out.push(b':');
                    out.extend_from_slice(place.name.as_bytes());
                }
                Parameter::Null => out.extend_from_slice(b"NULL"),
                Parameter::Text(text) if place.quoted => write_quoted(text, out),
                Parameter::Text(text) => out.extend_from_slice(text),
            }
        }
    }
}

fn write_quoted(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'\'');
    for &byte in text {
        if byte == b'\'' {
            out.push(byte);
        }
        out.push(byte);
    }
    out.push(b'\'');
}

/// One parameter's value, in PostgreSQL's text form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter<'a> {
    /// A variable that was never set: NULL in the extended protocol.
    Undefined,
    /// NULL.
    Null,
    /// A value as text.
    Text(&'a [u8]),
}

/// The values of one execution; valid until the client is asked again.
#[derive(Clone, Copy, Debug, Default)]
pub struct Parameters<'a> {
    cells: &'a [Cell],
    bytes: &'a [u8],
}

#[derive(Clone, Copy, Debug)]
enum Cell {
    Undefined,
    Null,
    Text(usize, usize),
}

impl<'a> Parameters<'a> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// The value at an index from 0; undefined beyond the last.
    pub fn get(&self, index: usize) -> Parameter<'a> {
        match self.cells.get(index) {
            None | Some(Cell::Undefined) => Parameter::Undefined,
            Some(Cell::Null) => Parameter::Null,
            Some(&Cell::Text(begin, end)) => Parameter::Text(&self.bytes[begin..end]),
        }
    }

    /// The value at an index as a whole number, if it is one: the key of an [`Access`].
    pub fn integer(&self, index: usize) -> Option<i64> {
        match self.get(index) {
            Parameter::Text(text) => std::str::from_utf8(text).ok()?.parse().ok(),
            _ => None,
        }
    }
}

/// Where a client writes the values of its next statement; kept, so that nothing is allocated after the first rounds.
#[derive(Clone, Debug, Default)]
pub struct ParameterBuffer {
    cells: Vec<Cell>,
    bytes: Vec<u8>,
}

impl ParameterBuffer {
    /// Forgets all values.
    pub fn clear(&mut self) {
        self.cells.clear();
        self.bytes.clear();
    }

    /// A variable that was never set.
    pub fn undefined(&mut self) {
        self.cells.push(Cell::Undefined);
    }

    /// NULL.
    pub fn null(&mut self) {
        self.cells.push(Cell::Null);
    }

    /// A value that `write` appends.
    pub fn text(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let begin = self.bytes.len();
        write(&mut self.bytes);
        self.cells.push(Cell::Text(begin, self.bytes.len()));
    }

    /// A whole number.
    pub fn integer(&mut self, value: i64) {
        self.text(|out| write_integer(value, out));
    }

    /// The values, for a [`Statement`](crate::Statement).
    pub fn get(&self) -> Parameters<'_> {
        Parameters { cells: &self.cells, bytes: &self.bytes }
    }
}

/// Appends a whole number in decimal digits.
pub fn write_integer(value: i64, out: &mut Vec<u8>) {
    let mut digits = [0u8; 20];
    let mut begin = digits.len();
    let mut rest = value.unsigned_abs();
    loop {
        begin -= 1;
        digits[begin] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[begin..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_of_sending_say_the_same() {
        let template = Template::new("INSERT INTO t VALUES (").parameter("id").text(", ").quoted("c").text(")");
        assert_eq!(template.numbered(), "INSERT INTO t VALUES ($1, $2)");
        assert_eq!(template.names().collect::<Vec<_>>(), ["id", "c"]);
        let mut buffer = ParameterBuffer::default();
        buffer.integer(i64::MIN);
        buffer.text(|out| out.extend_from_slice(b"it's"));
        let mut out = Vec::new();
        template.write_substituted(buffer.get(), &mut out);
        assert_eq!(out, b"INSERT INTO t VALUES (-9223372036854775808, 'it''s')");
        assert_eq!(buffer.get().integer(0), Some(i64::MIN));
    }

    #[test]
    fn what_was_never_set_stays_as_it_was_written() {
        let template = Template::new("SELECT ").parameter("a").text(", ").parameter("b");
        let mut buffer = ParameterBuffer::default();
        buffer.undefined();
        buffer.null();
        let mut out = Vec::new();
        template.write_substituted(buffer.get(), &mut out);
        assert_eq!(out, b"SELECT :a, NULL");
    }
}
