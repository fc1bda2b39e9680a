//! How the kernel schedules the calling thread.

use std::io;

/// Priority among real-time threads: any is ahead of ordinary ones; the lowest leaves room for the host's own.
const REALTIME_PRIORITY: libc::c_int = 1;

/// A scheduling policy of a thread and its priority under that; its nice value is another thing and stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    policy: libc::c_int,
    priority: libc::c_int,
}

impl Policy {
    /// That of every thread that asks for no other.
    pub const ORDINARY: Self = Self { policy: libc::SCHED_OTHER, priority: 0 };
    /// Ahead of every ordinary thread, for a thread whose work has an instant. It needs CAP_SYS_NICE, or RLIMIT_RTPRIO.
    pub const REALTIME: Self = Self { policy: libc::SCHED_FIFO, priority: REALTIME_PRIORITY };

    /// The calling thread's.
    pub fn current() -> io::Result<Self> {
        // SAFETY: no memory is passed; on Linux 0 is the calling thread.
        let policy = unsafe { libc::sched_getscheduler(0) };
        let mut parameters = libc::sched_param { sched_priority: 0 };
        // SAFETY: `parameters` outlives the call.
        if policy < 0 || unsafe { libc::sched_getparam(0, &raw mut parameters) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { policy, priority: parameters.sched_priority })
    }

    /// Makes it that of the calling thread alone; threads that it starts later inherit it.
    pub fn set(self) -> io::Result<()> {
        let parameters = libc::sched_param { sched_priority: self.priority };
        // SAFETY: `parameters` outlives the call; on Linux 0 is the calling thread.
        match unsafe { libc::sched_setscheduler(0, self.policy, &raw const parameters) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_that_is_permitted_is_the_threads_own_until_another_is_set() {
        std::thread::spawn(|| {
            Policy::ORDINARY.set().unwrap();
            let found = if Policy::REALTIME.set().is_ok() { Policy::REALTIME } else { Policy::ORDINARY };
            assert_eq!(Policy::current().unwrap(), found);
            Policy::ORDINARY.set().unwrap();
            assert_eq!(Policy::current().unwrap(), Policy::ORDINARY);
        })
        .join()
        .unwrap();
    }
}
