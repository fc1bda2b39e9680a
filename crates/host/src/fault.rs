//! The error of a command: what happened and what to do.

use std::borrow::Cow;
use std::io;

use serde_json::Value;

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
    /// A stable name of the error, from the largest part to the smallest (`capture.prefix.unknown`); empty where it has none.
    pub code: Cow<'static, str>,
    /// What a program may want to know of it: an object, or null.
    pub data: Value,
}

/// The result of a command.
pub type Result<T> = std::result::Result<T, Fault>;

impl Fault {
    /// An error of the request.
    pub fn new(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        let (message, remedy) = (message.into(), remedy.into());
        Self { message, remedy, of_host: false, code: Cow::Borrowed(""), data: Value::Null }
    }

    /// The same error with a stable name, and what a program may want to know of it.
    #[must_use]
    pub fn coded(self, code: &'static str, data: Value) -> Self {
        Self { code: code.into(), data, ..self }
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
