//! A panic ends the daemon at once, and its reason stays.
//!
//! A thread that panics under the core's lock would leave the other threads, and with them every request of every volume, waiting
//! for ever. A process that has ended closes /dev/fuse, and the kernel ends all requests with EIO.

use std::io::Write;
use std::panic::PanicHookInfo;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, Ordering};

use serde::{Deserialize, Serialize};

/// The file in a volume's folder that has the reason for which its daemon ended.
pub(crate) const FILE_NAME: &str = "panic.txt";
/// Environment variable of the daemon: only with it does [`Request::Panic`](crate::control::Request) do anything.
const TEST_VARIABLE: &str = "PGDYNO_TEST_PANIC";

/// Where the reason is written: a file in the folder of each attached volume.
static FILES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
/// The thread that is to panic, as a test asks for it; 0: none.
static DOOMED: AtomicU8 = AtomicU8::new(0);

/// A kind of thread of the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub(crate) enum Thread {
    /// Takes requests in.
    EventLoop = 1,
    Release,
    /// Moves data of a store on a disk.
    Worker,
    /// Writes the submit log.
    LogDrain,
    /// Follows the path's cost.
    Follower,
    /// Answers on the control socket.
    Control,
    Main,
}

/// From here on a panic of any thread writes its reason and aborts the process.
pub(crate) fn abort_on_panic() {
    std::panic::set_hook(Box::new(|info| {
        write_reason(info);
        // A core dump keeps files open until it is written, and requests waiting as long.
        // SAFETY: no memory is passed.
        unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) };
        std::process::abort();
    }));
}

fn write_reason(info: &PanicHookInfo<'_>) {
    let thread = std::thread::current();
    let place = info.location().map(ToString::to_string).unwrap_or_default();
    let payload = info.payload();
    let text = payload.downcast_ref::<&str>().copied();
    let reason = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no reason");
    // As Rust says it, by which Python finds it in the log.
    let text = format!("thread '{}' panicked at {place}:\n{reason}\n", thread.name().unwrap_or("without a name"));
    let _ = std::io::stderr().write_all(text.as_bytes());
    // Another thread may hold the list; the log has the reason then.
    if let Ok(files) = FILES.try_lock() {
        for file in &*files {
            let _ = std::fs::write(file, &text);
        }
    }
}

/// The folder of a volume that is attached.
pub(crate) fn attached(folder: &Path) {
    files().push(folder.join(FILE_NAME));
}

/// The folder of a volume that is about to be removed.
pub(crate) fn detached(folder: &Path) {
    let file = folder.join(FILE_NAME);
    files().retain(|other| *other != file);
}

fn files() -> std::sync::MutexGuard<'static, Vec<PathBuf>> {
    FILES.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The next time that a thread of this kind comes by, it panics. `false`: the daemon was not started for tests.
pub(crate) fn doom(thread: Thread) -> bool {
    let is_test = std::env::var_os(TEST_VARIABLE).is_some();
    if is_test {
        DOOMED.store(thread as u8, Ordering::Relaxed);
    }
    is_test
}

/// Panics where a test asked for it.
#[inline]
pub(crate) fn pass(thread: Thread) {
    if DOOMED.load(Ordering::Relaxed) == thread as u8 {
        panic_on_purpose(thread);
    }
}

#[cold]
fn panic_on_purpose(thread: Thread) -> ! {
    panic!("a test asked the thread {thread:?} to panic");
}
