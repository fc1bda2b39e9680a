//! What ends a command before its time.

use std::borrow::Cow;
use std::io;

use pgdyno_connection::Fault;
use pgdyno_host as host;
use rustix::io::Errno;
use serde_json::{Value, json};

/// The remedy for bytes that are not text in the encoding that was named.
pub(crate) const OTHER_ENCODING: &str = "name the file's encoding if it is another one (LATIN1, WIN1252); otherwise correct the row, or name a file for rejected rows";
/// The remedy for a zero byte in a file of text.
const NO_NUL: &str = "PostgreSQL stores no NUL characters (0x00) in text: remove them from the file, for example with \
     `tr -d '\\000' < FILE`, or name a file for rejected rows";
/// The same where other bytes are stored than those of the text.
const NO_NUL_PACKED: &str = "PostgreSQL stores no NUL characters (0x00) in text: decompress the file, remove them, for example \
     with `tr -d '\\000'`, and compress it again, or name a file for rejected rows";

/// An error with what the user can do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct LoadError {
    /// One sentence.
    pub message: String,
    /// What to do.
    pub remedy: String,
    /// Whether the server is not there, or no longer: what was under way may be tried again when it is back.
    pub absent: bool,
    /// A stable name of the error, from the largest part to the smallest (`capture.prefix.unknown`); empty where it has none.
    pub code: Cow<'static, str>,
    /// What a program may want to know of it: an object, or null.
    pub data: Value,
}

impl LoadError {
    pub(crate) fn new(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        let (message, remedy) = (message.into(), remedy.into());
        Self { message, remedy, absent: false, code: Cow::Borrowed(""), data: Value::Null }
    }

    /// The same error with a stable name, and what a program may want to know of it.
    #[must_use]
    pub(crate) fn coded(self, code: &'static str, data: Value) -> Self {
        Self { code: code.into(), data, ..self }
    }

    /// A source that cannot be read.
    pub(crate) fn unreadable(name: &str, error: &io::Error) -> Self {
        let what = format!("cannot read {name}");
        if lacks(error) {
            return host::Fault::of_kernel(&what, error).into();
        }
        Self::new(format!("{what}: {error}"), "name a file that can be read")
    }

    /// A zero byte at a place of a source. `is_packed`: it is stored in another form.
    pub(crate) fn nul(message: String, source: &str, byte: u64, is_packed: bool) -> Self {
        Self::new(message, if is_packed { NO_NUL_PACKED } else { NO_NUL })
            .coded("load.text.nul", json!({"source": source, "byte": byte}))
    }

    /// An order to stop came.
    pub(crate) fn stopped() -> Self {
        Self::new("interrupted", "run the same command again: with a ledger it resumes where it stopped")
            .coded("load.interrupted", Value::Null)
    }
}

/// Whether the machine gave no descriptor, thread or memory: nothing is wrong with the file.
pub(crate) fn lacks(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::AGAIN))
}

impl From<host::Fault> for LoadError {
    fn from(fault: host::Fault) -> Self {
        Self { code: fault.code, data: fault.data, ..Self::new(fault.message, fault.remedy) }
    }
}

impl From<Fault> for LoadError {
    /// The same error; what users of a loader meet first has a remedy of its own.
    fn from(error: Fault) -> Self {
        let remedy = match error.server_error.as_deref().map(|error| error.sqlstate.as_str()) {
            Some("42P01") => "create the table first, or name another one",
            Some("42703") => "name the table's columns as the table has them",
            Some("42501") => "grant INSERT on the table (and on the ledger's) to this user, or connect as another user",
            Some("53100") => "free some space on the server's disk, and run it again: it resumes where it stopped",
            Some("53300") => "use fewer connections, or raise the server's max_connections",
            Some("57014") => "check what cancelled it, for example statement_timeout of the role or the database",
            _ => &error.remedy,
        };
        let remedy = remedy.to_owned();
        Self { message: error.message, remedy, absent: error.absent, code: error.code, data: error.data }
    }
}
