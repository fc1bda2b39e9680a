//! What a captured session is made of.

use serde::{Deserialize, Serialize};

use crate::shape::shape_of;

/// SQLSTATE of a text that is no statement, as one whose literal has no end.
const SYNTAX_ERROR: [u8; 5] = *b"42601";

/// How a statement was sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// As a text of the simple protocol; it may hold several statements.
    #[default]
    Text,
    /// By the extended protocol, prepared for this time.
    Unnamed,
    /// By the extended protocol, prepared under a name.
    Named,
}

/// How a statement ended, as far as the log says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Ending {
    /// The log has neither a duration nor an error.
    #[default]
    Unknown,
    /// It was done, in so many microseconds.
    Done(u64),
    /// It failed with this SQLSTATE.
    Failed([u8; 5]),
}

/// An execution of a statement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Call {
    /// When it arrived, in microseconds since 1970 by the log's clock.
    pub due_us: i64,
    /// How it was sent.
    pub protocol: Protocol,
    /// The name it was prepared under; empty but for [`Protocol::Named`].
    pub name: String,
    /// Its text.
    pub text: String,
    /// Its values as text; NULL is none.
    pub values: Vec<Option<String>>,
    /// Number of its transaction in the session, from 1.
    pub transaction: u32,
    /// How it ended.
    pub ending: Ending,
    /// The text has parameters and the log has no values for them, so that it cannot be sent again.
    pub without_values: bool,
    /// Text or values are not whole, or end as values do that the server has cut.
    pub cut: bool,
    /// Of COPY FROM STDIN the parts of its rows by where they are in the capture, in order; none if the capture does not have them.
    pub rows: Option<Vec<u64>>,
    /// Keys that the answer gave, by the names of its columns: whole numbers and uuids of an answer of one row. A log has none.
    pub answer: Vec<(String, String)>,
}

impl Call {
    /// The [shape](crate::shape()) of its text.
    pub fn shape(&self) -> String {
        shape_of(&self.text, self.ending == Ending::Failed(SYNTAX_ERROR))
    }
}

/// A session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionFacts {
    /// The role; empty if the log does not say.
    pub user: String,
    /// The database; empty if the log does not say.
    pub database: String,
    /// The client's host; empty if the log does not say.
    pub host: String,
    /// `application_name`; empty if there was none.
    pub application: String,
    /// When it began, in microseconds since 1970; when its first line was written if the log does not say.
    pub begin_us: i64,
    /// When it ended; when its last line was written if the log does not say.
    pub end_us: i64,
    /// Whether the log has its end.
    pub ended: bool,
    /// Its statements.
    pub calls: u64,
    /// Why it was not recorded to its end, which is then that of what was recorded; empty if it was.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub incomplete: String,
}
