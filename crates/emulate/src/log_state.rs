//! Whether the logs of an instance have all that they should.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use pgdyno_host::{Fault, Result};
use serde_json::{Value, json};

/// What has become of the log while it is recorded, for those who ask.
#[derive(Debug)]
pub(crate) struct LogState {
    path: PathBuf,
    /// The error number of the first write that failed, with which the log ends; 0 while there was none.
    errno: AtomicI32,
    /// The writer could not keep up, and the log ends there.
    overflowed: AtomicBool,
}

impl LogState {
    pub(crate) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), errno: AtomicI32::new(0), overflowed: AtomicBool::new(false) }
    }

    /// Why the log is incomplete; `None` while it is not.
    fn fault(&self) -> Option<String> {
        let errno = self.errno.load(Ordering::Relaxed);
        if errno != 0 {
            return Some(io::Error::from_raw_os_error(errno).to_string());
        }
        self.overflowed.load(Ordering::Relaxed).then(|| "its file was too slow, and the buffer overflowed".to_owned())
    }

    /// A write of it has failed, and it ends.
    pub(crate) fn failed(&self, error: &io::Error) {
        self.errno.store(error.raw_os_error().unwrap_or(libc::EIO), Ordering::Relaxed);
        eprintln!("the submit log {} ends here: {error}", self.path.display());
    }

    /// Whether its buffer has overflowed.
    pub(crate) fn overflowed(&self, overflowed: bool) {
        self.overflowed.store(overflowed, Ordering::Relaxed);
    }

    /// An error where it is incomplete.
    pub(crate) fn require_complete(&self) -> Result<()> {
        self.fault().map_or(Ok(()), |why| Err(incomplete("submit", &self.path, &why)))
    }

    pub(crate) fn report(&self) -> Value {
        let fault = self.fault();
        json!({"path": self.path, "complete": fault.is_none(), "error": fault})
    }
}

/// The volume is detached and its log has not all of it.
pub(crate) fn incomplete(which: &'static str, path: &Path, why: &str) -> Fault {
    let message = format!("the volume is detached, but its {which} log {} is incomplete: {why}", path.display());
    Fault::of_host(message, "name a file on a disk with more space, and measure again")
        .coded("volume.log.incomplete", json!({"log": which, "path": path, "reason": why, "detached": true}))
}
