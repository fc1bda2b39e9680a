//! Waiting for sockets and for a time, to the nanosecond.
//!
//! The time is a timer of its own among the watched descriptors, and not a limit of each wait: with many statements to a
//! transaction most waits have the same time to wait for, and setting the hardware's timer for each of them was a fifth of
//! the driver's CPU where the machine is a virtual one (2026-11). It is exact, too: `epoll_wait` counts
//! milliseconds.

use std::io;

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime};

use crate::SECOND_NS;

const ZERO: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
/// The id of the timer: that it went off is not told.
const TIMER: u64 = u64::MAX - 2;

/// What happened to a watched descriptor.
pub type Events = Vec<epoll::Event>;

/// Descriptors that are watched, and a time.
pub struct Waiter {
    epoll: OwnedFd,
    timer: OwnedFd,
    set_ns: u64,
}

impl Waiter {
    /// One that watches nothing yet.
    ///
    /// # Errors
    /// What the kernel says when there is no descriptor left.
    pub fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &timer, epoll::EventData::new_u64(TIMER), epoll::EventFlags::IN)?;
        Ok(Self { epoll, timer, set_ns: 0 })
    }

    /// Waits for anything that is watched, or until an instant of CLOCK_MONOTONIC; not at all if that is past. What
    /// happened is in `events`, as much as they have room for; a signal is nothing.
    ///
    /// # Errors
    /// What the kernel says of the descriptors, which are sound.
    pub fn wait(&mut self, events: &mut Events, until_ns: u64, now_ns: u64) -> io::Result<()> {
        let is_past = until_ns <= now_ns;
        if !is_past && until_ns != self.set_ns {
            let until = Timespec { tv_sec: (until_ns / SECOND_NS) as i64, tv_nsec: (until_ns % SECOND_NS) as i64 };
            let once = Itimerspec { it_interval: ZERO, it_value: until };
            // This also takes back that it has gone off.
            timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once)?;
            self.set_ns = until_ns;
        }
        events.clear();
        match epoll::wait(&self.epoll, spare_capacity(events), is_past.then_some(&ZERO)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// What happened to which descriptor, by the id that it was given; nothing for the timer.
    #[must_use]
    pub fn told(event: epoll::Event) -> Option<(u64, epoll::EventFlags)> {
        let id = event.data.u64();
        (id != TIMER).then_some((id, event.flags))
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

    use rustix::event::epoll::{EventData, EventFlags, add};

    use super::*;
    use crate::monotonic_ns;

    #[test]
    fn a_wait_lasts_until_its_instant_again_and_again() {
        let (mut waiter, mut events) = (Waiter::new().unwrap(), Events::with_capacity(4));
        for _ in 0..20 {
            let now = monotonic_ns();
            let until = now + 100_000;
            waiter.wait(&mut events, until, now).unwrap();
            assert!(monotonic_ns() >= until);
            assert!(events.iter().all(|event| Waiter::told(*event).is_none()));
        }
    }

    #[test]
    fn what_happens_is_told_by_its_id_before_the_time_and_after_it() {
        let (mut waiter, mut events) = (Waiter::new().unwrap(), Events::with_capacity(4));
        let (mut here, there) = UnixStream::pair().unwrap();
        add(&waiter, &there, EventData::new_u64(7), EventFlags::IN).unwrap();
        here.write_all(b"x").unwrap();
        let now = monotonic_ns();
        for until in [now + 60 * SECOND_NS, now + 60 * SECOND_NS, now] {
            waiter.wait(&mut events, until, now).unwrap();
            let told: Vec<_> = events.iter().filter_map(|event| Waiter::told(*event)).collect();
            assert_eq!(told, [(7, EventFlags::IN)]);
        }
    }

    #[test]
    fn an_instant_that_is_past_is_not_waited_for() {
        let (mut waiter, mut events) = (Waiter::new().unwrap(), Events::with_capacity(4));
        let now = monotonic_ns();
        waiter.wait(&mut events, now, now).unwrap();
        waiter.wait(&mut events, 0, now).unwrap();
        assert!(events.is_empty());
    }
}
