//! What went wrong with a volume's content: the store is full, or its disk is broken.
//!
//! It is noted on the way of a request, so nothing here asks for memory or waits, except for the one line in the log.

use std::io;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use pgdyno_clock::realtime_ns;
use serde::Serialize;

/// The failures of one volume's store since it was attached.
#[derive(Debug, Default)]
pub(crate) struct StoreFailures {
    /// The error number of the first one; 0 while there was none.
    errno: AtomicI32,
    since_ns: AtomicU64,
    last_ns: AtomicU64,
}

/// What is said of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct StoreFailure {
    /// What the system said first: `No space left on device (os error 28)`.
    error: String,
    /// Whether the store was full.
    full: bool,
    /// When that was, and when it failed last, in nanoseconds since 1970.
    since_unix_ns: u64,
    last_unix_ns: u64,
}

impl StoreFailures {
    /// Notes a failure; the first one is written to the daemon's log, with the store's place.
    pub(crate) fn note(&self, error: &io::Error, store: &std::path::Path) {
        let now_ns = realtime_ns();
        self.last_ns.store(now_ns, Ordering::Relaxed);
        let errno = error.raw_os_error().unwrap_or(libc::EIO);
        if self.errno.compare_exchange(0, errno, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            self.since_ns.store(now_ns, Ordering::Release);
            eprintln!("the store {} failed: {error}; requests that need it get I/O errors", store.display());
        }
    }

    /// `None` while the store has not failed.
    pub(crate) fn report(&self) -> Option<StoreFailure> {
        let since_unix_ns = self.since_ns.load(Ordering::Acquire);
        let errno = self.errno.load(Ordering::Relaxed);
        (since_unix_ns > 0).then(|| StoreFailure {
            error: io::Error::from_raw_os_error(errno).to_string(),
            full: [libc::ENOSPC, libc::EDQUOT].contains(&errno),
            since_unix_ns,
            last_unix_ns: self.last_ns.load(Ordering::Relaxed),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_first_failure_stays_and_the_last_is_dated() {
        let failures = StoreFailures::default();
        assert_eq!(failures.report(), None);
        failures.note(&io::Error::from_raw_os_error(libc::ENOSPC), Path::new("/store"));
        let first = failures.report().expect("it failed");
        assert!(first.full && first.error.contains("No space left"));
        failures.note(&io::Error::from_raw_os_error(libc::EIO), Path::new("/store"));
        let later = failures.report().expect("it failed");
        assert_eq!((&later.error, later.since_unix_ns), (&first.error, first.since_unix_ns));
        assert!(later.last_unix_ns >= first.last_unix_ns);
    }
}
