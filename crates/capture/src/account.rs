//! What was read of logs, and what of them cannot be used.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Counts of a reading. It says of each statement and each line that is not in the capture why it is not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Account {
    /// Files by name, with their format.
    pub files: Vec<(String, String)>,
    /// Bytes, uncompressed.
    pub bytes: u64,
    /// Entries of the log.
    pub entries: u64,
    /// Whether times have fractions of seconds. Those within a second are spread in order otherwise.
    pub fractions: bool,
    /// The recording was killed: what came in its last seconds is not in the capture.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unfinished: bool,
    /// Sessions of a recording that were not followed to their end, by the reason. What came before is in the capture.
    pub not_followed_sessions: BTreeMap<String, u64>,
    /// When the first statement arrived, and the last, in microseconds since 1970 by the log's clock.
    pub first_us: i64,
    /// See `first_us`.
    pub last_us: i64,
    /// Statements in the capture.
    pub calls: u64,
    /// Of these, those that have no duration and no error.
    pub without_ending: u64,
    /// Of these, those whose values are not in the log.
    pub without_values: u64,
    /// Of these, those whose text or values are cut, or end as a cut value does.
    pub cut: u64,
    /// Later rows of an execution that a client took in parts; the execution is in the capture.
    pub fetches: u64,
    /// Statements with values in binary of types whose form is not known here. They are without values.
    pub binary: u64,
    /// Bytes of rows of COPY FROM STDIN in the capture.
    pub copied_bytes: u64,
    /// Executions that a relay cannot follow: of the fast path, and of what SQL's PREPARE made. They are not in the capture.
    pub not_followed: u64,
    /// Statements that set or name a password. They are not in the capture.
    pub passwords: u64,
    /// Errors without the statement that they are about. They are not in the capture.
    pub errors_without_statement: u64,
    /// Records that are not whole. They are not in the capture.
    pub torn: u64,
    /// Records that are longer than 64 MiB. They are not in the capture.
    pub too_long: u64,
    /// Numbers that cannot be: of a line, a duration, a time. What else their records say is in the capture.
    pub implausible: u64,
    /// Where the first of them is: file, line, and what it is a number of.
    pub first_implausible: Option<(String, u64, String)>,
    /// Records that are not text in UTF-8. They are not in the capture.
    pub not_text: u64,
    /// Lines of other programs.
    pub foreign: u64,
    /// Lines that are missing by their numbers.
    pub missing: u64,
    /// Lines whose numbers were read before. They are not in the capture.
    pub repeated: u64,
    /// Sessions that began before the log.
    pub begun_before: u64,
    /// Sessions whose end is not in the log.
    pub not_ended: u64,
    /// Sessions without a statement. They are not in the capture.
    pub idle: u64,
    /// How often the time went back by more than a second, as when daylight saving ends.
    pub time_went_back: u64,
    /// Durations without a statement: of `log_duration`, where statements are not logged.
    pub lone_durations: u64,
    /// Statements that only change rows or definitions, as `log_statement = mod` logs them.
    pub changing: u64,
    /// The shortest duration of a statement that was logged by its duration.
    pub least_us: Option<u64>,
    /// Entries by severity, where it is none of English.
    pub unknown_severities: BTreeMap<String, u64>,
    /// Where the first record is that cannot be read: file and line.
    pub first_unreadable: Option<(String, u64)>,
}
