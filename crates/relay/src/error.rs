//! What ends the relay before its time.

/// An error that ends the relay, with what the user can do about it.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct RelayError {
    /// One sentence.
    pub message: String,
    /// What to do.
    pub remedy: String,
}

impl RelayError {
    pub(crate) fn new(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { message: message.into(), remedy: remedy.into() }
    }

    /// The kernel did not give `what`.
    pub(crate) fn kernel(what: &str, error: &std::io::Error) -> Self {
        Self::new(
            format!("the kernel refused {what}: {error}"),
            "raise the limit of open files (ulimit -n), or take fewer clients",
        )
    }
}
