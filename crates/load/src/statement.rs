//! The statements of a load.

use std::fmt::Write;

use crate::order::{CopyFormat, LedgerSpec, LoadSpec};
use crate::plan::Chunk;

/// Begins a chunk's transaction, with settings that end with it.
pub(crate) fn begin(spec: &LoadSpec) -> String {
    let mut sql = "BEGIN".to_owned();
    for (name, value) in &spec.settings {
        // A name of letters, digits, `_` and `.`; SET wants each of its parts as an identifier.
        let _ = write!(sql, "; SET LOCAL {name} = {}", literal(value));
    }
    sql
}

/// Takes rows of the sources.
pub(crate) fn copy(spec: &LoadSpec) -> String {
    let columns = if spec.columns.is_empty() { String::new() } else { format!(" ({})", spec.columns.join(", ")) };
    let mut options = Vec::new();
    let mut option = |name: &str, value: Option<String>| {
        options.extend(value.map(|value| format!("{name} {}", literal(&value))));
    };
    let kind = match &spec.format {
        CopyFormat::Csv { delimiter, quote, escape, null } => {
            option("DELIMITER", delimiter.map(String::from));
            option("QUOTE", quote.map(String::from));
            option("ESCAPE", escape.map(String::from));
            option("NULL", null.clone());
            "csv"
        }
        CopyFormat::Text { delimiter, null } => {
            option("DELIMITER", delimiter.map(String::from));
            option("NULL", null.clone());
            "text"
        }
    };
    option("ENCODING", Some(spec.encoding.clone()));
    format!("COPY {}{columns} FROM STDIN WITH (FORMAT {kind}, {})", spec.table, options.join(", "))
}

/// Writes into the ledger that a chunk is in the table.
pub(crate) fn record(ledger: &LedgerSpec, source: usize, chunk: &Chunk, loaded: u64, rejected: u64) -> String {
    let (LedgerSpec { table, job }, Chunk { number, begin, end, .. }) = (ledger, chunk);
    format!(
        "INSERT INTO {table} (job, source, chunk, first_byte, end_byte, rows_loaded, rows_rejected) \
         VALUES ({job}, {source}, {number}, {begin}, {end}, {loaded}, {rejected})"
    )
}

/// Reads the chunks of a job that are in the table, or one of them.
pub(crate) fn recorded(ledger: &LedgerSpec, only: Option<(usize, u64)>) -> String {
    let LedgerSpec { table, job } = ledger;
    let only = only.map(|(source, chunk)| format!(" AND source = {source} AND chunk = {chunk}")).unwrap_or_default();
    format!(
        "SELECT source, chunk, first_byte, end_byte, rows_loaded, rows_rejected FROM {table} WHERE job = {job}{only}"
    )
}

/// Takes a job for this session alone; true when nobody else has it.
pub(crate) fn lock(job: i64) -> String {
    format!("SELECT pg_try_advisory_lock(hashtextextended('pgdyno load {job}', 0))")
}

/// Puts everything that was committed before on disk: a commit that waits takes all earlier ones with it, and the message
/// makes it one that has something to wait for. It is of no meaning to anybody.
pub(crate) const DURABLE: &str =
    "BEGIN; SET LOCAL synchronous_commit = on; SELECT pg_logical_emit_message(true, 'pgdyno load', ''); COMMIT";

/// A string as SQL has it, whatever standard_conforming_strings says.
fn literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    if quoted.contains('\\') { format!("E'{}'", quoted.replace('\\', "\\\\")) } else { format!("'{quoted}'") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(document: &str) -> LoadSpec {
        serde_json::from_str(document).expect("it can be read")
    }

    #[test]
    fn only_options_that_were_given_are_said() {
        let csv = spec(r#"{"table": "\"T\"", "format": {"csv": {}}, "sources": []}"#);
        assert_eq!(copy(&csv), r#"COPY "T" FROM STDIN WITH (FORMAT csv, ENCODING 'UTF8')"#);
        let text = spec(
            r#"{"table": "s.t", "columns": ["a", "\"b c\""], "format": {"text": {"delimiter": "|", "null": "\\N'"}},
                "encoding": "LATIN1", "sources": []}"#,
        );
        assert_eq!(
            copy(&text),
            r#"COPY s.t (a, "b c") FROM STDIN WITH (FORMAT text, DELIMITER '|', NULL E'\\N''', ENCODING 'LATIN1')"#
        );
    }

    #[test]
    fn settings_are_quoted_and_local() {
        let set = spec(
            r#"{"table": "t", "format": {"text": {}}, "sources": [], "settings": {"synchronous_commit": "off", "a.b": "'"}}"#,
        );
        assert_eq!(begin(&set), "BEGIN; SET LOCAL a.b = ''''; SET LOCAL synchronous_commit = 'off'");
    }
}
