//! Who uses an image: locks of the kernel, which end with the process that holds them.
//!
//! A stack of layers holds the data of each of its layers for as long as it has them open, and the folder of the image that it
//! stands on directly. So what nobody reads can be moved and removed, and everybody else is left alone, whichever command or state
//! directory they belong to.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// Who takes over blocks holds an image for the length of one piece, and who removes it for less.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(2);

/// The image that a layer stands on, which nobody removes or empties meanwhile.
#[derive(Debug)]
pub(crate) struct Base {
    pub(crate) folder: PathBuf,
    _held: Option<File>,
}

impl Base {
    pub(crate) fn hold(folder: &Path) -> io::Result<Self> {
        let held = open_shared(folder, |folder| File::open(folder))?;
        Ok(Self { folder: folder.to_owned(), _held: Some(held) })
    }

    /// One that nobody can hold now: what stands on it must not forget it for that.
    pub(crate) fn not_held(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), _held: None }
    }
}

/// Opens what is at `path` and holds it with all others that use it, until the file is closed. Waits while somebody has it alone.
pub(crate) fn open_shared(path: &Path, open: impl Fn(&Path) -> io::Result<File>) -> io::Result<File> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let file = open(path)?;
        match flock(&file, FlockOperation::NonBlockingLockShared) {
            // What is at the path may be another one since it was opened.
            Ok(()) if is_at(&file.metadata()?, path)? => return Ok(file),
            Ok(()) | Err(Errno::WOULDBLOCK) if Instant::now() < deadline => sleep(PAUSE),
            Ok(()) | Err(Errno::WOULDBLOCK) => {
                let message = "another process has been merging it for 30 s";
                return Err(io::Error::new(io::ErrorKind::TimedOut, message));
            }
            // A file system without locks: nothing is merged or removed there, because nobody can have it alone.
            Err(_) => return Ok(file),
        }
    }
}

/// A file that nobody else holds, until this is dropped.
#[derive(Debug)]
pub(crate) struct Alone<'a>(&'a File);

impl<'a> Alone<'a> {
    /// `None` when somebody holds it.
    pub(crate) fn take(file: &'a File) -> Option<Self> {
        flock(file, FlockOperation::NonBlockingLockExclusive).is_ok().then_some(Self(file))
    }
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        let _ = flock(self.0, FlockOperation::Unlock);
    }
}

fn is_at(held: &Metadata, path: &Path) -> io::Result<bool> {
    let now = std::fs::metadata(path)?;
    Ok((now.dev(), now.ino()) == (held.dev(), held.ino()))
}
