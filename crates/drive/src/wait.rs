//! Waiting for sockets and for a time, to the nanosecond.
//!
//! `epoll_wait` takes milliseconds, which would be the schedule's resolution. `epoll_pwait2` takes nanoseconds, in one
//! call of the kernel for each wait; where it is not there (before Linux 5.11), `ppoll` on the epoll waits in its place.

use std::io;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

const SECOND_NS: u64 = 1_000_000_000;

/// An epoll, and what it told last.
pub(crate) struct Waiter {
    epoll: OwnedFd,
    events: Vec<libc::epoll_event>,
    exact: bool,
}

/// What happened to a watched descriptor: its id, and the `EPOLL…` bits.
pub(crate) type Event = (u64, u32);

impl Waiter {
    /// One that tells of at most so many at a time.
    pub(crate) fn new(events_max: usize) -> io::Result<Self> {
        let epoll = rustix::event::epoll::create(rustix::event::epoll::CreateFlags::CLOEXEC)?;
        Ok(Self { epoll, events: vec![libc::epoll_event { events: 0, u64: 0 }; events_max], exact: true })
    }

    /// Waits for anything that is watched, at most for so long. Returns how many things happened; a signal is none.
    pub(crate) fn wait(&mut self, timeout_ns: u64) -> io::Result<usize> {
        if self.exact {
            match self.wait_exactly(timeout_ns) {
                Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => self.exact = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(0),
                waited => return waited,
            }
        }
        match self.wait_by_two(timeout_ns) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            waited => waited,
        }
    }

    /// One of what the last wait told.
    pub(crate) fn event(&self, index: usize) -> Event {
        let event = self.events[index];
        (event.u64, event.events)
    }

    fn wait_exactly(&mut self, timeout_ns: u64) -> io::Result<usize> {
        let timeout = libc::timespec {
            tv_sec: (timeout_ns / SECOND_NS) as libc::time_t,
            tv_nsec: (timeout_ns % SECOND_NS) as libc::c_long,
        };
        // SAFETY: the kernel writes at most as many events as it is told that there is room for, reads this local
        // timeout, and takes no signal mask where the pointer to it is null.
        let told = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.epoll.as_raw_fd(),
                self.events.as_mut_ptr(),
                self.events.len() as libc::c_int,
                &raw const timeout,
                std::ptr::null::<libc::sigset_t>(),
                0_usize,
            )
        };
        usize::try_from(told).map_err(|_| io::Error::last_os_error())
    }

    fn wait_by_two(&mut self, timeout_ns: u64) -> io::Result<usize> {
        let timeout = Timespec { tv_sec: (timeout_ns / SECOND_NS) as i64, tv_nsec: (timeout_ns % SECOND_NS) as i64 };
        if poll(&mut [PollFd::new(&self.epoll, PollFlags::IN)], Some(&timeout))? == 0 {
            return Ok(0);
        }
        // SAFETY: as above; a timeout of zero does not wait.
        let told = unsafe {
            let room = self.events.len() as libc::c_int;
            libc::epoll_wait(self.epoll.as_raw_fd(), self.events.as_mut_ptr(), room, 0)
        };
        usize::try_from(told).map_err(|_| io::Error::last_os_error())
    }
}

impl AsFd for Waiter {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::time::{Duration, Instant};

    use rustix::event::epoll::{EventData, EventFlags, add};

    use super::*;

    fn each_way() -> [Waiter; 2] {
        let mut other = Waiter::new(4).unwrap();
        other.exact = false;
        [Waiter::new(4).unwrap(), other]
    }

    #[test]
    // The shortest of twenty: a busy machine makes some of them longer, and not all.
    fn a_wait_lasts_as_long_as_was_asked_and_not_whole_milliseconds() {
        for mut waiter in each_way() {
            let asked = Duration::from_micros(100);
            let shortest = (0..20).map(|_| {
                let begin = Instant::now();
                assert_eq!(waiter.wait(asked.as_nanos() as u64).unwrap(), 0);
                begin.elapsed()
            });
            let shortest = shortest.min().unwrap();
            assert!(shortest >= asked && shortest < Duration::from_millis(1), "{shortest:?}");
        }
    }

    #[test]
    fn what_happens_is_told_by_its_id() {
        for mut waiter in each_way() {
            let (mut here, there) = UnixStream::pair().unwrap();
            add(&waiter, &there, EventData::new_u64(7), EventFlags::IN).unwrap();
            here.write_all(b"x").unwrap();
            assert_eq!(waiter.wait(10 * SECOND_NS).unwrap(), 1);
            assert_eq!(waiter.event(0), (7, EventFlags::IN.bits()));
        }
    }
}
