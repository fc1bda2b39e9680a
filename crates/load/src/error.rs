//! What ends a command before its time.

/// An error with what the user can do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct LoadError {
    /// One sentence.
    pub message: String,
    /// What to do.
    pub remedy: String,
}

impl LoadError {
    pub(crate) fn new(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { message: message.into(), remedy: remedy.into() }
    }
}
