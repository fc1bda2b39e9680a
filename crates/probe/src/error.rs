//! What can go wrong with the probe itself.

use std::io;
use std::path::PathBuf;

/// An error that ends the probe.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The specification makes no sense.
    #[error("{0}")]
    Spec(String),
    /// The file of samples cannot be written.
    #[error("samples cannot be written to {path}: {error}")]
    Out {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The kernel refused a timer or a signal descriptor.
    #[error("the kernel refused {what}: {error}")]
    Kernel {
        /// What was asked for.
        what: &'static str,
        /// Why.
        error: io::Error,
    },
}

impl ProbeError {
    /// What the user can do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Spec(_) => "this is a bug in pgdyno, unless the probe was started by hand",
            Self::Out { .. } => "free some space, or name another file",
            Self::Kernel { .. } => "look at the limits of open files and of processes",
        }
    }
}
