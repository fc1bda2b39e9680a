//! Small questions to the kernel.

use std::io;

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::Timespec;

/// Raises the limit on open files to what the process may have; the usual 1,024 is for programs that use select(2).
pub fn raise_open_files() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// Whether standard input, which is readable, has ended; what it says before is of no interest.
#[must_use]
pub fn stdin_ended() -> bool {
    match rustix::io::read(io::stdin(), &mut [0_u8; 256]) {
        Ok(bytes) => bytes == 0,
        Err(error) => error != Errno::INTR,
    }
}

/// Nanoseconds as the kernel takes them; more than fit are the latest instant.
#[must_use]
pub fn timespec(ns: u64) -> Timespec {
    let ns = i64::try_from(ns).unwrap_or(i64::MAX);
    Timespec { tv_sec: ns / 1_000_000_000, tv_nsec: ns % 1_000_000_000 }
}
