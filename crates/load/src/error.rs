//! What ends a command before its time.

use pgdyno_drive::DriveError;

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
}

impl LoadError {
    pub(crate) fn new(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { message: message.into(), remedy: remedy.into(), absent: false }
    }

    /// An order to stop came.
    pub(crate) fn stopped() -> Self {
        Self::new("told to stop", "run it again: with a ledger it goes on where it was")
    }
}

impl From<DriveError> for LoadError {
    /// The same error; what users of a loader meet first has a remedy of its own.
    fn from(error: DriveError) -> Self {
        let remedy = match error.said.as_deref().map(|said| said.sqlstate.as_str()) {
            Some("42P01") => "create the table first, or name another one",
            Some("42703") => "name the table's columns as the table has them",
            Some("42501") => "grant INSERT on the table (and on the ledger's) to this user, or take another user",
            Some("53100") => "free some space on the server's disk, and run it again: it goes on where it was",
            Some("53300") => "take fewer connections, or raise the server's max_connections",
            Some("57014") => "look who cancelled it: statement_timeout of the role or the database may have",
            _ => &error.remedy,
        };
        Self { message: error.message.clone(), remedy: remedy.to_owned(), absent: error.absent }
    }
}
