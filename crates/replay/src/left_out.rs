//! Statements that are not sent, and why.

use pgdyno_capture::{Call, Ending, Protocol};

/// Functions and commands that end a server or leave it: other sessions, files, other servers.
const REACHING_OUT: [&str; 20] = [
    "PG_TERMINATE_BACKEND",
    "PG_CANCEL_BACKEND",
    "PG_RELOAD_CONF",
    "PG_ROTATE_LOGFILE",
    "PG_PROMOTE",
    "PG_SWITCH_WAL",
    "PG_READ_FILE",
    "PG_READ_BINARY_FILE",
    "PG_LS_DIR",
    "DBLINK",
    "LO_IMPORT",
    "LO_EXPORT",
    "PG_NOTIFY",
    "SUBSCRIPTION",
    "PUBLICATION",
    "TABLESPACE",
    "FOREIGN",
    "PROGRAM",
    "PG_CREATE_PHYSICAL_REPLICATION_SLOT",
    "PG_CREATE_LOGICAL_REPLICATION_SLOT",
];
const CHANGING_THE_SERVER: [&str; 6] = ["DATABASE", "SYSTEM", "ROLE", "USER", "GROUP", "SERVER"];

/// Why a call is not sent; none if it is.
pub(crate) fn why(call: &Call) -> Option<&'static str> {
    if call.without_values {
        return Some("its values are not in the log");
    }
    if call.cut {
        return Some("its text or values are cut");
    }
    let words = words(&call.text);
    let first = words.first().map_or("", String::as_str);
    if first == "COPY" && call.protocol != Protocol::Named {
        let from = words.iter().any(|word| word == "FROM");
        if from && words.iter().any(|word| word == "STDIN") {
            return call.rows.is_none().then_some("rows of COPY are in no log");
        }
        if !words.iter().any(|word| word == "STDIN" || word == "STDOUT") {
            return Some("it reads or writes files of the server");
        }
    }
    if matches!(first, "NOTIFY" | "CHECKPOINT") {
        return Some("it concerns other sessions");
    }
    let changes = matches!(first, "CREATE" | "ALTER" | "DROP");
    if changes && words.get(1).is_some_and(|word| CHANGING_THE_SERVER.contains(&word.as_str())) {
        return Some("it changes the server and not its tables");
    }
    if words.iter().any(|word| REACHING_OUT.contains(&word.as_str()) || (word.starts_with("DBLINK_"))) {
        return Some("it leaves the server, or ends what others do");
    }
    None
}

/// Whether a call sets something for the rest of its session: what comes before the part that is sent must not be without it.
pub(crate) fn is_setting(call: &Call) -> bool {
    let mut words = call.text.split_ascii_whitespace();
    let is = |word: Option<&str>, any: &[&str]| {
        word.is_some_and(|word| any.iter().any(|one| word.eq_ignore_ascii_case(one)))
    };
    is(words.next(), &["SET"])
        && !is(words.next(), &["LOCAL", "TRANSACTION", "CONSTRAINTS"])
        && !matches!(call.ending, Ending::Failed(_))
        && why(call).is_none()
}

/// The words of a text in capitals. Those in literals and comments count too: a statement too many is left out, and said.
fn words(text: &str) -> Vec<String> {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    text.split(|letter| !is_word(letter)).filter(|word| !word.is_empty()).map(str::to_ascii_uppercase).collect()
}
