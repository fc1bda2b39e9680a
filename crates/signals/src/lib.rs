//! The order to stop, as a descriptor that any loop can watch: what is under way is finished in peace.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{FromRawFd, OwnedFd};

/// Blocks SIGTERM and SIGINT in this thread and those it starts, and returns a descriptor that is readable once one
/// has come. It stays readable until it is read, so that several threads can watch it.
///
/// # Errors
/// What the kernel says when there is no descriptor left.
pub fn block() -> io::Result<OwnedFd> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset initialises the set before anything reads it, every pointer is to this local, and the
    // descriptor is owned by nobody else.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGTERM);
        libc::sigaddset(set.as_mut_ptr(), libc::SIGINT);
        let refused = libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut());
        if refused != 0 {
            return Err(io::Error::from_raw_os_error(refused));
        }
        match libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC) {
            -1 => Err(io::Error::last_os_error()),
            descriptor => Ok(OwnedFd::from_raw_fd(descriptor)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;

    use super::block;

    #[test]
    fn an_order_to_stop_is_told_and_ends_nothing() {
        let told = block().unwrap();
        // SAFETY: raise has no argument but the signal, which this thread blocks.
        assert_eq!(unsafe { libc::raise(libc::SIGTERM) }, 0);
        let mut what = [0; size_of::<libc::signalfd_siginfo>()];
        File::from(told).read_exact(&mut what).unwrap();
        let number = what.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes));
        assert_eq!(number, Some(libc::SIGTERM as u32));
    }
}
