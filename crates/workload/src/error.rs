//! What is wrong with a script, and where.

use std::fmt;

/// Where something stands in a script: line and column, both from 1; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

/// A script that cannot be read: one sentence, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError {
    /// The script's name: a file, or a built-in one.
    pub script: String,
    /// Where.
    pub at: Position,
    /// What is wrong, and what to do about it.
    pub message: String,
}

/// A script that could not go on while it ran: a division by zero, a result that has no row.
pub type RunError = ScriptError;

impl fmt::Display for ScriptError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}:{}: {}", self.script, self.at.line, self.at.column, self.message)
    }
}

impl std::error::Error for ScriptError {}

/// Something that was asked for and cannot be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// One sentence.
    pub message: String,
    /// What to do.
    pub remedy: String,
}

impl Refusal {
    /// One sentence, and what to do.
    pub fn new(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { message: message.into(), remedy: remedy.into() }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}
