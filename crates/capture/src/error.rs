//! What ends a command before its time.

use std::borrow::Cow;
use std::io;
use std::path::Path;

use pgdyno_host as host;
use rustix::io::Errno;
use serde_json::{Value, json};

/// An error with what the user can do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CaptureError {
    /// One sentence.
    pub message: String,
    /// What to do.
    pub remedy: String,
    /// A stable name of the error, from the largest part to the smallest (`capture.prefix.unknown`); empty where it has none.
    pub code: Cow<'static, str>,
    /// What a program may want to know of it: an object, or null.
    pub data: Value,
}

impl CaptureError {
    pub(crate) fn new(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        let (message, remedy) = (message.into(), remedy.into());
        Self { message, remedy, code: Cow::Borrowed(""), data: Value::Null }
    }

    /// The same error with a stable name, and what a program may want to know of it.
    #[must_use]
    pub(crate) fn coded(self, code: &'static str, data: Value) -> Self {
        Self { code: code.into(), data, ..self }
    }

    /// A file that cannot be read.
    pub(crate) fn unreadable(path: &Path, error: &io::Error) -> Self {
        if let Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM) = Errno::from_io_error(error) {
            return host::Fault::of_kernel(&format!("{} cannot be read", path.display()), error).into();
        }
        let remedy = match error.kind() {
            io::ErrorKind::NotFound => "name an existing file",
            io::ErrorKind::PermissionDenied => "run the command as a user who may read it",
            io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
                "copy the file again: it is damaged or not complete"
            }
            _ => "look at the file and its disk",
        };
        Self::new(format!("{} cannot be read: {error}", path.display()), remedy)
            .coded("capture.file.unreadable", json!({"path": path.to_string_lossy()}))
    }

    /// A file that cannot be written.
    pub fn unwritable(path: &Path, error: &io::Error) -> Self {
        let remedy = match error.kind() {
            io::ErrorKind::AlreadyExists => "remove it, or name another file",
            io::ErrorKind::StorageFull => "free some space, or name a file on another disk",
            _ => "name a file in a directory where you may write",
        };
        let what = if error.kind() == io::ErrorKind::AlreadyExists {
            format!("{} exists already", path.display())
        } else {
            format!("{} cannot be written: {error}", path.display())
        };
        Self::new(what, remedy).coded("capture.file.unwritable", json!({"path": path.to_string_lossy()}))
    }
}

impl From<host::Fault> for CaptureError {
    fn from(fault: host::Fault) -> Self {
        Self { message: fault.message, remedy: fault.remedy, code: fault.code, data: fault.data }
    }
}
