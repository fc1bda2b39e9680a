//! The values of whole rows, as COPY finds them (PostgreSQL 18, `CopyReadAttributesCSV` and `CopyReadAttributesText`).

use crate::format::{Format, LineEnd};
use crate::spec::CopyFormat;

/// What decides where values begin and end.
#[derive(Clone, Debug)]
pub(crate) struct Syntax {
    delimiter: u8,
    /// Quote and escape; none in text.
    quoting: Option<(u8, u8)>,
    null: Vec<u8>,
}

/// A value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field<'a> {
    /// Its place in its row, from 0.
    pub column: usize,
    /// Where its row begins: bytes from the beginning of what is read.
    pub row: usize,
    /// None for NULL.
    pub value: Option<&'a [u8]>,
}

impl Syntax {
    /// Of a format with its options.
    pub(crate) fn of(format: &CopyFormat) -> Self {
        let (null, quoting) = match format {
            CopyFormat::Csv { null, quote, escape, .. } => {
                let quote = quote.unwrap_or('"');
                (null.as_deref().unwrap_or(""), Some((quote as u8, escape.unwrap_or(quote) as u8)))
            }
            CopyFormat::Text { null, .. } => (null.as_deref().unwrap_or("\\N"), None),
        };
        Self { delimiter: format.delimiter() as u8, quoting, null: null.as_bytes().to_vec() }
    }

    /// What decides where rows end, for any server: a mark that ends the data counts as a value.
    pub(crate) fn rows(format: &CopyFormat) -> Format {
        format.rows(u32::MAX)
    }

    /// Says each value of rows that are whole. `line_end`: how they end. Stops when it is told so (false).
    pub(crate) fn each(&self, rows: &[u8], line_end: Option<LineEnd>, mut say: impl FnMut(Field<'_>) -> bool) {
        let (mut at, mut row, mut column) = (0, 0, 0);
        let mut kept = Vec::new();
        let end_byte = LineEnd::last_byte(line_end);
        // A table of the bytes at which a value that is not quoted may end.
        let mut ends = [false; 256];
        for byte in [self.delimiter, end_byte, self.quoting.map_or(b'\\', |(quote, _)| quote)] {
            ends[usize::from(byte)] = true;
        }
        while at < rows.len() {
            let begin = at;
            let mut stop = begin + plain(&rows[begin..], &ends);
            let special = rows.get(stop).copied();
            let is_plain = special.is_none_or(|byte| byte == self.delimiter || byte == end_byte);
            let (value, is_quoted): (&[u8], bool) = if is_plain {
                (without_return(&rows[begin..stop], special, line_end), false)
            } else if let Some(quoting) = self.quoting {
                let is_quoted;
                (stop, is_quoted) = self.unquote(rows, begin, quoting, end_byte, &mut kept);
                (without_return(&kept, rows.get(stop).copied(), line_end), is_quoted)
            } else {
                stop = self.unescaped(rows, stop, end_byte);
                (without_return(&rows[begin..stop], rows.get(stop).copied(), line_end), false)
            };
            if self.quoting.is_none() && column == 0 && value == br"\." {
                return; // the mark that ends the data
            }
            let value = (is_quoted || value != self.null).then_some(value);
            if !say(Field { column, row, value }) {
                return;
            }
            column += 1;
            at = stop + 1;
            if rows.get(stop) != Some(&self.delimiter) {
                (row, column) = (at, 0);
            } else if at == rows.len() {
                // The file ends with a delimiter: one more value, which is nothing.
                let value = (!self.null.is_empty()).then_some(&b""[..]);
                say(Field { column, row, value });
            }
        }
    }

    /// Where a value in quotes ends that begins there; it is put into `kept`. Also whether there were quotes at all.
    fn unquote(
        &self,
        rows: &[u8],
        begin: usize,
        (quote, escape): (u8, u8),
        end_byte: u8,
        kept: &mut Vec<u8>,
    ) -> (usize, bool) {
        kept.clear();
        let (mut at, mut inside, mut is_quoted) = (begin, false, false);
        while let Some(byte) = rows.get(at).copied() {
            if inside {
                let next = rows.get(at + 1).copied();
                if byte == escape && next.is_some_and(|next| next == escape || next == quote) {
                    kept.extend(next);
                    at += 1;
                } else if byte == quote {
                    inside = false;
                } else {
                    kept.push(byte);
                }
            } else if byte == quote {
                (inside, is_quoted) = (true, true);
            } else if byte == self.delimiter || byte == end_byte {
                break;
            } else {
                kept.push(byte);
            }
            at += 1;
        }
        (at, is_quoted)
    }

    /// Where a value with a backslash at `at` ends in text. It is kept as it is: no type but text returns one.
    fn unescaped(&self, rows: &[u8], mut at: usize, end_byte: u8) -> usize {
        while let Some(byte) = rows.get(at).copied() {
            match byte {
                b'\\' => at += 2,
                byte if byte == self.delimiter || byte == end_byte => return at,
                _ => at += 1,
            }
        }
        rows.len()
    }
}

/// How many bytes come before one of those.
fn plain(text: &[u8], ends: &[bool; 256]) -> usize {
    text.iter().position(|byte| ends[usize::from(*byte)]).unwrap_or(text.len())
}

/// A value without the first half of the end of its line.
fn without_return(value: &[u8], next: Option<u8>, line_end: Option<LineEnd>) -> &[u8] {
    match value {
        [rest @ .., b'\r'] if line_end == Some(LineEnd::ReturnNewline) && next == Some(b'\n') => rest,
        value => value,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::values::kinds::Kinds;

    fn read(format: &str, rows: &str, line_end: LineEnd) -> Vec<Vec<Option<String>>> {
        let format: CopyFormat = serde_json::from_str(format).expect("the test's format is valid");
        let mut found: Vec<Vec<Option<String>>> = Vec::new();
        Syntax::of(&format).each(rows.as_bytes(), Some(line_end), |field| {
            if field.column == 0 {
                found.push(Vec::new());
            }
            let value = field.value.map(|value| String::from_utf8_lossy(value).into_owned());
            found.last_mut().expect("a row has begun").push(value);
            true
        });
        found
    }

    fn some(values: &[&str]) -> Vec<Option<String>> {
        values.iter().map(|value| (*value != "NULL").then(|| (*value).to_owned())).collect()
    }

    #[test]
    fn values_of_csv_are_those_of_copy() {
        let csv = |rows: &str| read(r#"{"csv": {}}"#, rows, LineEnd::Newline);
        assert_eq!(csv("1,,\"\"\n\"a\"\"b\",c\"d,e\n\"\n"), [some(&["1", "NULL", ""]), some(&["a\"b", "cd,e\n"])]);
        assert_eq!(csv("1,\"x\ny\"\n2,"), [some(&["1", "x\ny"]), some(&["2", "NULL"])]);
        let windows = read(r#"{"csv": {"delimiter": ";"}}"#, "1;\r\n2;\"3\"\r\n", LineEnd::ReturnNewline);
        assert_eq!(windows, [some(&["1", "NULL"]), some(&["2", "3"])]);
        let escaped =
            read(r#"{"csv": {"escape": "\\", "null": "NA"}}"#, "\"a \\\"b\\\" \\\\\",NA,\"NA\"\n", LineEnd::Newline);
        assert_eq!(escaped, [vec![Some("a \"b\" \\".to_owned()), None, Some("NA".to_owned())]]);
    }

    #[test]
    fn a_backslash_in_text_takes_the_next_byte_with_it() {
        let text = read(r#"{"text": {}}"#, "1\t\\N\ta\\\tb\n2\t\t\\\\\n", LineEnd::Newline);
        assert_eq!(text, [some(&["1", "NULL", "a\\\tb"]), some(&["2", "", "\\\\"])]);
        assert_eq!(read(r#"{"text": {}}"#, "1\n\\.\nrest\n", LineEnd::Newline), [some(&["1"])]);
    }

    #[test]
    fn a_row_begins_where_it_says() {
        let format: CopyFormat = serde_json::from_str(r#"{"csv": {}}"#).unwrap();
        let mut rows = Vec::new();
        Syntax::of(&format).each(b"a,b\nc,d\n", Some(LineEnd::Newline), |field| {
            rows.push(field.row);
            rows.len() < 3
        });
        assert_eq!(rows, [0, 0, 4]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_bytes_have_values_and_kinds(
            rows in "[-+.,;:TZe019a\"\\\\\t\r\n ]{0,60}", format in prop::sample::select(vec![
                r#"{"csv": {}}"#, r#"{"csv": {"escape": "\\"}}"#, r#"{"csv": {"delimiter": ";", "quote": "e"}}"#, r#"{"text": {}}"#,
            ]), end in prop::sample::select(vec![LineEnd::Newline, LineEnd::Return, LineEnd::ReturnNewline]),
        ) {
            let format: CopyFormat = serde_json::from_str(format).unwrap();
            let mut last = 0;
            Syntax::of(&format).each(rows.as_bytes(), Some(end), |field| {
                assert!(field.row >= last && field.row <= rows.len());
                last = field.row;
                let kinds = field.value.map_or(Kinds::ALL, Kinds::of);
                kinds.is_text() || kinds.has(kinds.narrowest())
            });
        }
    }
}
