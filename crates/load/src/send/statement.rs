//! The statements that send a chunk.

use std::fmt::Write;

use crate::ledger::statement::literal;
use crate::spec::{CopyFormat, LoadSpec};

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::order;

    #[test]
    fn only_options_that_were_given_are_said() {
        let csv = order(r#""table": "\"T\"", "format": {"csv": {}}, "sources": []"#);
        assert_eq!(copy(&csv), r#"COPY "T" FROM STDIN WITH (FORMAT csv, ENCODING 'UTF8')"#);
        let text = order(
            r#""table": "s.t", "columns": ["a", "\"b c\""], "format": {"text": {"delimiter": "|", "null": "\\N'"}},
                "encoding": "LATIN1", "sources": []"#,
        );
        assert_eq!(
            copy(&text),
            r#"COPY s.t (a, "b c") FROM STDIN WITH (FORMAT text, DELIMITER '|', NULL E'\\N''', ENCODING 'LATIN1')"#
        );
    }

    #[test]
    fn settings_are_quoted_and_local() {
        let set = order(
            r#""table": "t", "format": {"text": {}}, "sources": [], "settings": {"synchronous_commit": "off", "a.b": "'"}"#,
        );
        assert_eq!(begin(&set), "BEGIN; SET LOCAL a.b = ''''; SET LOCAL synchronous_commit = 'off'");
    }
}
