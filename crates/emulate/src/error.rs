//! Errors of the emulator: what happened and what to do.

use std::io;

/// A condition that the user can do something about.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct EmulateError {
    /// One sentence: what is wrong.
    pub message: String,
    /// One sentence: what to do.
    pub remedy: String,
}

/// Result of the emulator.
pub type Result<T> = std::result::Result<T, EmulateError>;

impl EmulateError {
    pub(crate) fn new(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { message: message.into(), remedy: remedy.into() }
    }
}

/// Attaches what was tried and a remedy to an error of the operating system.
pub(crate) trait Context<T> {
    fn context(self, tried: impl FnOnce() -> String, remedy: &str) -> Result<T>;
}

impl<T, E: Into<io::Error>> Context<T> for std::result::Result<T, E> {
    fn context(self, tried: impl FnOnce() -> String, remedy: &str) -> Result<T> {
        self.map_err(|error| EmulateError::new(format!("{}: {}", tried(), error.into()), remedy))
    }
}
