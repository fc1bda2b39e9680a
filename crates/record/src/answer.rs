//! The beginnings of answers: keys that the server gave, which a log does not have.
//!
//! Kept are whole numbers and uuids of an answer of one row, of statements that may have made them. Nothing else of an answer is.

use crate::binary::{self, Room};
use crate::messages::Fields;

/// Types of columns by their numbers in `pg_type`: int8, int2, int4, uuid.
const KEYS: [u32; 4] = [20, 21, 23, 2950];
const BINARY: i16 = 1;
/// A row has no more columns (`MaxTupleAttributeNumber`), and names and keys no more bytes.
const COLUMNS_MAX: usize = 1664;
const NAME_BYTES_MAX: usize = 63;
const KEY_BYTES_MAX: usize = 64;

/// A column that may have keys: its place, name, type, and the form that the description says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    place: usize,
    name: String,
    oid: u32,
    format: i16,
}

/// Columns of a RowDescription that may have keys. Of a statement that is described before it is bound the form is not known yet.
pub(crate) fn columns_of(body: &[u8]) -> Vec<Column> {
    let mut fields = Fields::of(body);
    let count = fields.i16().unwrap_or(0).cast_unsigned();
    let mut found = Vec::new();
    for place in 0..usize::from(count).min(COLUMNS_MAX) {
        let Some(name) = fields.text().map(|name| &name[..name.len().min(NAME_BYTES_MAX)]) else { break };
        // Table, number of the column; type; its length and its modifier; form.
        let (Some(_), Some(oid), Some(_), Some(format)) =
            (fields.bytes(6), fields.u32(), fields.bytes(6), fields.i16())
        else {
            break;
        };
        if KEYS.contains(&oid) {
            found.push(Column { place, name: String::from_utf8_lossy(name).into_owned(), oid, format });
        }
    }
    found
}

/// What was seen of the answer that is coming.
#[derive(Default)]
pub(crate) struct Answer {
    rows: u32,
    values: Vec<(String, String)>,
}

/// What columns take of memory, at most.
pub(crate) fn columns_bytes(columns: &[Column]) -> usize {
    columns.len() * (size_of::<Column>() + NAME_BYTES_MAX)
}

impl Answer {
    /// Whether a further row says anything: of several nobody knows which one it is.
    pub(crate) fn wants_more(&self) -> bool {
        self.rows < 2
    }

    /// A DataRow. `formats` are those that Bind asked for, where there was one.
    pub(crate) fn row(&mut self, body: &[u8], columns: &[Column], formats: Option<&[i16]>) {
        self.rows += 1;
        if self.rows > 1 {
            self.values.clear();
            return;
        }
        let mut fields = Fields::of(body);
        let count = fields.i16().unwrap_or(0).cast_unsigned();
        // Columns are in order, as the places are.
        let mut columns = columns.iter().peekable();
        for place in 0..usize::from(count) {
            let column = columns.next_if(|column| column.place == place);
            let Some(length) = fields.i32() else { return };
            let Ok(length) = usize::try_from(length) else { continue };
            let Some(bytes) = fields.bytes(length) else { return };
            let Some(column) = column.filter(|_| length <= KEY_BYTES_MAX) else { continue };
            let format = match formats {
                Some([one]) => *one,
                Some(each) => each.get(place).copied().unwrap_or(0),
                None => column.format,
            };
            let text = if format == BINARY {
                binary::text_of(column.oid, bytes, &mut Room::of(bytes.len()))
            } else {
                String::from_utf8(bytes.to_vec()).ok()
            };
            self.values.extend(text.map(|text| (column.name.clone(), text)));
        }
    }

    /// What is kept of it; nothing of an answer of several rows.
    pub(crate) fn taken(&mut self) -> Vec<(String, String)> {
        std::mem::take(self).values
    }
}

/// Whether a text may have made a key that its answer tells: by RETURNING, by functions of sequences, by a function alone.
pub(crate) fn may_make(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let calls = || lower.trim_start().starts_with("select") && lower.contains('(') && !lower.contains(" from ");
    ["returning", "nextval", "currval", "lastval"].iter().any(|word| lower.contains(word)) || calls()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn description(columns: &[(&str, u32, i16)]) -> Vec<u8> {
        let mut body = i16::try_from(columns.len()).unwrap().to_be_bytes().to_vec();
        for (name, oid, format) in columns {
            body.extend(name.as_bytes());
            body.push(0);
            body.extend([0; 6]);
            body.extend(oid.to_be_bytes());
            body.extend([0; 6]);
            body.extend(format.to_be_bytes());
        }
        body
    }

    fn row(values: &[Option<&[u8]>]) -> Vec<u8> {
        let mut body = i16::try_from(values.len()).unwrap().to_be_bytes().to_vec();
        for value in values {
            let length = value.map_or(-1, |value| i32::try_from(value.len()).unwrap());
            body.extend(length.to_be_bytes());
            body.extend(value.unwrap_or_default());
        }
        body
    }

    #[test]
    fn keys_of_one_row_are_kept_and_nothing_else() {
        let columns = columns_of(&description(&[("id", 20, 0), ("name", 25, 0), ("n", 23, 1), ("ref", 2950, 0)]));
        let one = row(&[Some(b"17"), Some(b"Ann"), Some(&[0, 0, 1, 0]), None]);
        let mut answer = Answer::default();
        answer.row(&one, &columns, None);
        let kept = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(answer.taken(), [kept("id", "17"), kept("n", "256")]);
        // Bind's forms go first: one is that of all.
        answer.row(&row(&[Some(&[0, 0, 0, 0, 0, 0, 0, 5]), None, None, None]), &columns, Some(&[1]));
        assert_eq!(answer.taken(), [kept("id", "5")]);
        answer.row(&one, &columns, None);
        assert!(answer.wants_more());
        answer.row(&one, &columns, None);
        assert!(!answer.wants_more() && answer.taken().is_empty(), "of several rows");
    }

    #[test]
    fn statements_that_may_make_keys_are_known() {
        for text in [
            "INSERT INTO t (a) VALUES ($1) RETURNING id",
            "SELECT currval('s')",
            "select place($1, $2)",
            "WITH new AS (INSERT INTO t DEFAULT VALUES RETURNING id) SELECT id FROM new",
        ] {
            assert!(may_make(text), "{text}");
        }
        for text in ["SELECT id FROM orders WHERE ref = $1", "UPDATE t SET a = 1", "SELECT 1", "SELECT max(id) FROM t"]
        {
            assert!(!may_make(text), "{text}");
        }
    }
}
