//! Descriptors in reserve: whatever has used up the limit on open files, a volume can be detached.
//!
//! Nothing takes the last descriptors for a connection; a detach gives the reserve back for as long as it takes.

use std::fs::File;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A helper process needs eight (three pipes, /dev/null, one that says whether it began); files that are read beside it the rest.
const RESERVED: usize = 12;

static RESERVE: Mutex<Reserve> = Mutex::new(Reserve { files: Vec::new(), is_spent: false });

struct Reserve {
    files: Vec<File>,
    /// Somebody uses it now.
    is_spent: bool,
}

fn reserve() -> MutexGuard<'static, Reserve> {
    RESERVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Fills the reserve. `false`: the process has not so many, or a detach uses them.
pub(crate) fn fill() -> bool {
    reserve().fill()
}

impl Reserve {
    fn fill(&mut self) -> bool {
        while !self.is_spent && self.files.len() < RESERVED {
            let Ok(file) = File::open("/dev/null") else { return false };
            self.files.push(file);
        }
        !self.is_spent
    }
}

/// Gives one descriptor back for `use_it`, which must need no more than one.
pub(crate) fn lend<T>(use_it: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    drop(reserve().files.pop());
    use_it()
}

/// Gives all of them back for as long as `work` takes.
pub(crate) fn spend<T>(work: impl FnOnce() -> T) -> T {
    {
        let mut reserve = reserve();
        reserve.is_spent = true;
        reserve.files.clear();
    }
    let done = work();
    let mut reserve = reserve();
    reserve.is_spent = false;
    reserve.fill();
    done
}

/// Whether an error says that there are no more descriptors.
pub(crate) fn are_used_up(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}
