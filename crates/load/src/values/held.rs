//! Types that were chosen by the beginning of a stream: the rest is held to them before any of it is sent.

use std::sync::{Mutex, PoisonError};

use crate::format::LineEnd;
use crate::spec::{ColumnType, CopyFormat};
use crate::values::fields::Syntax;
use crate::values::kinds::Kinds;

/// A value that a column's type would not return as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LostValue {
    pub column: String,
    pub type_name: String,
    pub value: String,
    /// Where its row begins: bytes from the beginning of the chunk.
    pub row: usize,
}

/// The types of all columns, in their order.
pub(crate) struct Held {
    syntax: Syntax,
    types: Vec<ColumnType>,
    /// How the values of all chunks so far were written.
    kinds: Mutex<Vec<Kinds>>,
}

impl Held {
    /// Nothing was looked at but what the types were chosen by.
    pub(crate) fn new(types: &[ColumnType], format: &CopyFormat) -> Self {
        let kinds = types.iter().map(|column| Kinds::from_bits(column.kinds)).collect();
        Self { syntax: Syntax::of(format), types: types.to_vec(), kinds: Mutex::new(kinds) }
    }

    /// The first value of whole rows that would not be returned as it is.
    pub(crate) fn check(&self, rows: &[u8], line_end: Option<LineEnd>) -> Result<(), LostValue> {
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        let mut lost = Ok(());
        self.syntax.each(rows, line_end, |field| {
            let (Some(value), Some(chosen)) = (field.value, self.types.get(field.column)) else { return true };
            let now = kinds[field.column].and(Kinds::of(value));
            if now.has(&chosen.name) {
                kinds[field.column] = now;
                return true;
            }
            lost = Err(LostValue {
                column: chosen.column.clone(),
                type_name: chosen.name.clone(),
                value: String::from_utf8_lossy(&value[..value.len().min(super::column::SHOWN_BYTES)]).into_owned(),
                row: field.row,
            });
            false
        });
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_held_to_what_all_before_them_had_in_common() {
        let kinds = Kinds::of(b"2026-01-01T00:00:00").bits();
        let column = |name: &str, kinds| ColumnType { column: "c".to_owned(), name: name.to_owned(), kinds };
        let types = [column("timestamp", kinds), column("text", 0)];
        let held = Held::new(&types, &serde_json::from_str(r#"{"csv": {}}"#).unwrap());
        let check = |rows: &str| held.check(rows.as_bytes(), Some(LineEnd::Newline));
        assert_eq!(check("2026-01-01T00:00:00.12,x\n,NA\n"), Ok(()));
        let lost = check("2026-01-01T00:00:01,x\n2026-01-01T00:00:00.120,x\n").unwrap_err();
        assert_eq!((lost.value.as_str(), lost.row), ("2026-01-01T00:00:00.120", 22));
        assert_eq!(check("NA,x\n").unwrap_err().type_name, "timestamp");
    }
}
