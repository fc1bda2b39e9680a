//! Signals of a process and of its children: the order to stop as a descriptor, and children that start with no signal
//! blocked and end with their parent.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{FromRawFd, OwnedFd};

/// Blocks SIGTERM and SIGINT in this thread and those it starts, and returns a descriptor that is readable once one
/// has come. It stays readable until it is read, so that several threads can watch it.
///
/// # Errors
/// What the kernel says when there is no descriptor left.
pub fn block() -> io::Result<OwnedFd> {
    block_each(&[libc::SIGTERM, libc::SIGINT])
}

/// The same with other signals.
///
/// # Errors
/// What the kernel says when there is no descriptor left.
pub fn block_each(signals: &[libc::c_int]) -> io::Result<OwnedFd> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset initialises the set before anything reads it, every pointer is to this local, and the
    // descriptor has no other owner.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in signals {
            libc::sigaddset(set.as_mut_ptr(), *signal);
        }
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

/// What happens to an ignored SIGHUP in [`reset`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hangup {
    /// It stays ignored: `nohup` holds for children too.
    Kept,
    /// It gets its default action too.
    Reset,
}

/// Unblocks every signal, and ignores none but SIGPIPE, which the standard library sees to. A program that is executed
/// afterwards can be ended by SIGTERM, whatever this process or its parent blocks; caught signals are not ignored there. Makes
/// system calls only, so it may be called between fork and exec.
pub fn reset(hangup: Hangup) {
    // SAFETY: `old` is read only where sigaction wrote it.
    unsafe {
        for signal in 1..=libc::SIGRTMAX() {
            let mut old = MaybeUninit::<libc::sigaction>::uninit();
            let known = libc::sigaction(signal, std::ptr::null(), old.as_mut_ptr()) == 0;
            let ignored = known && old.assume_init_ref().sa_sigaction == libc::SIG_IGN;
            let kept = signal == libc::SIGPIPE || (signal == libc::SIGHUP && hangup == Hangup::Kept);
            if ignored && !kept {
                libc::signal(signal, libc::SIG_DFL);
            }
        }
    }
    unblock();
}

/// Unblocks every signal in this thread and those that it starts.
pub fn unblock() {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `set` is initialised by sigemptyset before it is read.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, set.as_ptr(), std::ptr::null_mut());
    }
}

/// Has the kernel send `signal` to this process when the thread that started it ends. `parent` is the process id of the
/// parent; if that has ended already, this is an error and the caller must not continue. Makes system calls only, so it may
/// be called between fork and exec.
///
/// # Errors
/// `ESRCH` when the parent is gone, or what the kernel says.
pub fn end_with_parent(signal: libc::c_int, parent: u32) -> io::Result<()> {
    // SAFETY: neither call touches our memory.
    let (refused, now) = unsafe { (libc::prctl(libc::PR_SET_PDEATHSIG, signal, 0, 0, 0), libc::getppid()) };
    if refused != 0 {
        return Err(io::Error::last_os_error());
    }
    if u32::try_from(now) == Ok(parent) { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::ESRCH)) }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    use super::{Hangup, block, end_with_parent, reset};

    /// Signals 32 and 33, which the C library keeps for itself and protects from changes (nptl(7)).
    const OF_THE_C_LIBRARY: u64 = 0b11 << 31;

    /// `SigBlk` and `SigIgn` of a child that was started from a thread that blocks and ignores signals.
    fn masks_of_a_child(hangup: Hangup) -> [u64; 2] {
        let mut child = Command::new("cat");
        child.arg("/proc/self/status").stdout(Stdio::piped());
        // SAFETY: system calls only.
        unsafe {
            child.pre_exec(move || {
                libc::signal(libc::SIGHUP, libc::SIG_IGN);
                libc::signal(libc::SIGINT, libc::SIG_IGN);
                reset(hangup);
                Ok(())
            });
        }
        let status = String::from_utf8(child.output().unwrap().stdout).unwrap();
        ["SigBlk:", "SigIgn:"].map(|key| {
            let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap();
            u64::from_str_radix(line.trim(), 16).unwrap() & !OF_THE_C_LIBRARY
        })
    }

    #[test]
    fn a_child_starts_with_no_signal_blocked_or_ignored() {
        let _blocked = block().unwrap();
        assert_eq!(masks_of_a_child(Hangup::Reset), [0, 0]);
        assert_eq!(masks_of_a_child(Hangup::Kept), [0, 1 << (libc::SIGHUP - 1)], "of nohup");
    }

    #[test]
    fn a_child_ends_with_the_thread_that_started_it_and_not_before() {
        let parent = std::process::id();
        let start = move || {
            let mut child = Command::new("cat");
            child.stdin(Stdio::piped()).stdout(Stdio::piped());
            // SAFETY: system calls only.
            unsafe { child.pre_exec(move || end_with_parent(libc::SIGKILL, parent)) };
            let mut child = child.spawn().unwrap();
            assert_eq!(child.try_wait().unwrap(), None, "its parent lives");
            child
        };
        let mut child = std::thread::spawn(start).join().unwrap();
        let mut rest = String::new();
        // The pipe that it holds ends when it does: its input is open, so nothing else ends it.
        child.stdout.take().unwrap().read_to_string(&mut rest).unwrap();
        assert!(!child.wait().unwrap().success());
        let stranger = end_with_parent(0, u32::MAX).unwrap_err();
        assert_eq!(stranger.raw_os_error(), Some(libc::ESRCH));
    }

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
