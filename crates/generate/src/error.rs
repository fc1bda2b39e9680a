//! What ends a command before its time.

use std::path::Path;

/// An error with what the user can do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct GenerateError {
    /// One sentence.
    pub message: String,
    /// What to do.
    pub remedy: String,
}

impl GenerateError {
    pub(crate) fn new(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { message: message.into(), remedy: remedy.into() }
    }

    /// What the kernel refused of a file or a folder.
    pub(crate) fn io(path: &Path, error: &std::io::Error) -> Self {
        Self::new(format!("{} cannot be written: {error}", path.display()), "name another folder, or free some space")
    }
}
