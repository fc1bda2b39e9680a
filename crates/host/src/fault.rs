//! The error of a command: what happened and what to do.

use std::io;

/// A condition that the user can do something about.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// One sentence: what is wrong.
    pub message: String,
    /// One sentence: what to do.
    pub remedy: String,
    /// The machine lacks something or does not work as it should; else the request is at fault.
    pub of_host: bool,
}

/// The result of a command.
pub type Result<T> = std::result::Result<T, Fault>;

impl Fault {
    /// An error of the request.
    pub fn new(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { message: message.into(), remedy: remedy.into(), of_host: false }
    }

    /// An error of the machine.
    pub fn of_host(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { of_host: true, ..Self::new(message, remedy) }
    }
}

/// Adds to an error of the operating system what was tried, and a remedy.
pub trait Context<T> {
    /// The error becomes `tried: error`.
    ///
    /// # Errors
    /// The same as before, as a [`Fault`].
    fn context(self, tried: impl FnOnce() -> String, remedy: &str) -> Result<T>;
}

impl<T, E: Into<io::Error>> Context<T> for std::result::Result<T, E> {
    fn context(self, tried: impl FnOnce() -> String, remedy: &str) -> Result<T> {
        self.map_err(|error| Fault::new(format!("{}: {}", tried(), error.into()), remedy))
    }
}
