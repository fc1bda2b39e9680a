//! Room on the disk that is taken before it is needed, so that what was kept can be finished when the disk is full.

use std::fs::File;
use std::io;

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

/// It is taken in steps, so that most statements ask the kernel for nothing.
const STEP_BYTES: u64 = 256 << 10;

/// How much a file has taken.
#[derive(Default)]
pub(super) struct Room {
    bytes: u64,
}

impl Room {
    /// Takes room for a file of so many bytes; its size stays. A file system that cannot promise room promises nothing.
    pub(super) fn reach(&mut self, file: &File, bytes: u64) -> io::Result<()> {
        if bytes <= self.bytes {
            return Ok(());
        }
        let wanted = bytes - self.bytes;
        // Near the end there is room for what is needed, and none for a step.
        for more in [wanted.max(STEP_BYTES), wanted] {
            match fallocate(file, FallocateFlags::KEEP_SIZE, self.bytes, more) {
                Ok(()) => {
                    self.bytes += more;
                    return Ok(());
                }
                Err(Errno::NOSPC | Errno::DQUOT | Errno::FBIG) => (),
                Err(Errno::INTR) => return self.reach(file, bytes),
                Err(_) => {
                    self.bytes = u64::MAX;
                    return Ok(());
                }
            }
        }
        Err(io::ErrorKind::StorageFull.into())
    }
}
