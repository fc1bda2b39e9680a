//! The logs of a reading, and what ends it.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::json;

use crate::error::CaptureError;
use crate::format::Format;
use crate::input::Packed;
use crate::watch::Interrupted;

/// Logs that follow each other may overlap by this: entries of several processes are not in the order of their times.
pub(crate) const OVERLAP_US_MAX: i64 = 1_000_000;

/// What to read.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct ReadSpec {
    /// The logs, in any order.
    pub logs: Vec<PathBuf>,
    /// The capture.
    pub output: PathBuf,
    /// `log_line_prefix` of logs in stderr's format; found if omitted.
    pub prefix: Option<String>,
    /// What names of zones mean, in seconds ahead of UTC, where they may mean several things.
    #[serde(default)]
    pub zones: BTreeMap<String, i64>,
}

/// A log with what its beginning says.
pub(crate) struct Log {
    pub path: PathBuf,
    pub format: Format,
    /// The earliest instant of its beginning.
    pub first_us: i64,
    pub stored_bytes: u64,
    /// The latest entries come first.
    pub is_descending: bool,
}

/// What ends a reading.
pub(crate) enum Stop {
    /// An error of the log.
    Unread(io::Error),
    /// An error of the capture, or of the files that are sorted beside it.
    Unwritten(io::Error),
    /// The entries are not in the order of their times.
    Disordered,
    /// Enough was seen.
    Enough,
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Unread(error)
    }
}

/// The error of a log: of its file, or the signal that came meanwhile.
pub(crate) fn failed(path: &Path, error: &io::Error) -> CaptureError {
    let inner = error.get_ref();
    if inner.is_some_and(|inner| inner.is::<Interrupted>()) {
        return CaptureError::new("interrupted", "run the command again").coded("capture.read.interrupted", json!({}));
    }
    if let Some(Packed { name, command }) = inner.and_then(|inner| inner.downcast_ref()) {
        return CaptureError::new(
            format!("{} is packed by {name}, which is not read", path.display()),
            format!("unpack it first: {command} {}", path.display()),
        )
        .coded("capture.file.packed", json!({"path": path.to_string_lossy(), "packed": name}));
    }
    CaptureError::unreadable(path, error)
}
