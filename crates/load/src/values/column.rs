//! What is known of the values of each column of a file.

use serde_json::{Value, json};

use crate::format::LineEnd;
use crate::values::fields::Syntax;
use crate::values::kinds::Kinds;

/// Words that stand for a missing value in many files, and that COPY loads as text unless `NULL` names them.
const WORDS: [&[u8]; 13] =
    [b"NULL", b"null", b"Null", b"\\N", b"NA", b"N/A", b"n/a", b"#N/A", b"None", b"nil", b"nan", b"(null)", b"-"];
/// Bytes of a value that are shown.
pub(crate) const SHOWN_BYTES: usize = 80;

/// A column.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    /// What returns all values but words for missing ones.
    pub kinds: Kinds,
    /// Values that are not NULL.
    pub values: u64,
    /// How often each of [`WORDS`] stands there, as long as nothing else says that it is text.
    words: [u64; WORDS.len()],
    /// The first value that left nothing but text.
    pub lost: Option<Lost>,
}

/// A value that a column's type would not return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lost {
    /// The type that returned all values before it.
    pub before: &'static str,
    pub value: Vec<u8>,
    /// Where its row begins: bytes from the beginning of what was read.
    pub row: usize,
}

impl Column {
    /// Without values; `kinds` are those that were found before.
    pub(crate) fn new(kinds: Kinds) -> Self {
        Self { kinds, values: 0, words: [0; WORDS.len()], lost: None }
    }

    fn take(&mut self, value: &[u8], row: usize) {
        self.values += 1;
        if self.kinds.is_text() {
            return;
        }
        let kinds = self.kinds.and(Kinds::of(value));
        if kinds.is_text() {
            if let Some(word) = WORDS.iter().position(|word| *word == value) {
                self.words[word] += 1;
                return;
            }
            let value = value[..value.len().min(SHOWN_BYTES)].to_vec();
            self.lost = Some(Lost { before: self.before(), value, row });
        }
        self.kinds = kinds;
    }

    /// The type as far as it goes; text where there was no value.
    fn before(&self) -> &'static str {
        if self.kinds == Kinds::ALL { "text" } else { self.kinds.narrowest() }
    }

    /// With what another part of the file has. The earlier of two values is kept by the caller, who knows the order.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.kinds = self.kinds.and(other.kinds);
        self.values += other.values;
        self.words.iter_mut().zip(other.words).for_each(|(count, more)| *count += more);
    }

    /// The words for missing values, and how often each is there.
    fn words(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let named = WORDS.iter().zip(self.words).filter(|(_, count)| *count > 0);
        named.map(|(word, count)| (str::from_utf8(word).unwrap_or_default(), count))
    }

    /// In JSON: the type that returns every value, and what would be it without the words.
    pub(crate) fn document(&self) -> Value {
        let without = self.before();
        let has_words = self.words().next().is_some();
        json!({
            "type": if has_words { "text" } else { without },
            "kinds": self.kinds.bits(),
            "values": self.values,
            "words": self.words().collect::<std::collections::BTreeMap<_, _>>(),
            "without_words": without,
        })
    }
}

/// Looks at whole rows. False once no column can be anything but text: the rest needs no look.
pub(crate) fn look(columns: &mut [Column], syntax: &Syntax, rows: &[u8], line_end: Option<LineEnd>) -> bool {
    syntax.each(rows, line_end, |field| {
        if let (Some(column), Some(value)) = (columns.get_mut(field.column), field.value) {
            column.take(value, field.row);
        }
        true
    });
    columns.iter().any(|column| !column.kinds.is_text())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looked(rows: &str, width: usize) -> Vec<Column> {
        let mut columns = vec![Column::new(Kinds::ALL); width];
        let format = serde_json::from_str(r#"{"csv": {}}"#).unwrap();
        look(&mut columns, &Syntax::of(&format), rows.as_bytes(), Some(LineEnd::Newline));
        columns
    }

    #[test]
    fn the_first_value_that_is_lost_is_kept_with_its_place() {
        let columns = looked("1,a\n2,b\n003,c\n4,d\n", 2);
        let lost = columns[0].lost.as_ref().unwrap();
        assert_eq!((lost.before, lost.value.as_slice(), lost.row), ("bigint", &b"003"[..], 8));
        assert_eq!(columns[1].lost.as_ref().unwrap().before, "text");
        assert_eq!(columns[0].document()["type"], "text");
    }

    #[test]
    fn words_for_missing_values_are_counted_in_a_column_of_another_type() {
        let found = looked("1,NA\nNULL,b\n3,c\n\\N,NA\n", 2).iter().map(Column::document).collect::<Vec<_>>();
        assert_eq!((&found[0]["type"], &found[0]["without_words"]), (&json!("text"), &json!("bigint")));
        assert_eq!(found[0]["words"], json!({"NULL": 1, "\\N": 1}));
        assert_eq!(found[1]["without_words"], "text");
    }

    #[test]
    fn a_column_without_values_is_text_and_an_empty_value_in_quotes_is_one() {
        let found = looked(",1\n,\"\"\n", 2).iter().map(Column::document).collect::<Vec<_>>();
        assert_eq!((&found[0]["type"], &found[0]["values"]), (&json!("text"), &json!(0)));
        assert_eq!(found[1]["type"], "text");
    }
}
