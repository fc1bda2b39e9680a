//! The alarm of the release thread: a kernel timer that any thread that takes a request in can set.
//!
//! A thread that waits on a condition variable must be woken to hear of an earlier instant, and again when the instant
//! has come. A timer is set from outside, so that each answer costs one wake-up and not two.

use std::io;
use std::os::fd::OwnedFd;

use pgdyno_host::timespec;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime};

/// A timer on CLOCK_MONOTONIC.
#[derive(Debug)]
pub(crate) struct Alarm(OwnedFd);

impl Alarm {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?))
    }

    /// Goes off at this instant of CLOCK_MONOTONIC, at once if it is past; what was set before is forgotten.
    pub(crate) fn set(&self, monotonic_ns: u64) {
        // An all-zero instant would disarm the timer.
        let (it_value, it_interval) = (timespec(monotonic_ns.max(1)), timespec(0));
        timerfd_settime(&self.0, TimerfdTimerFlags::ABSTIME, &Itimerspec { it_interval, it_value })
            .expect("a timer of our own takes any instant");
    }

    /// Waits until it goes off. May return early.
    pub(crate) fn wait(&self) {
        let mut expirations = [0; 8];
        // An interrupted wait is an early one.
        let _ = rustix::io::read(&self.0, &mut expirations);
    }
}

#[cfg(test)]
mod tests {
    use pgdyno_clock::monotonic_ns;

    use super::*;

    #[test]
    fn an_alarm_goes_off_at_its_instant_and_at_once_for_one_that_is_past() {
        let alarm = Alarm::new().expect("a timer");
        let at = monotonic_ns() + 2_000_000;
        alarm.set(at + 60_000_000_000);
        alarm.set(at);
        alarm.wait();
        assert!(monotonic_ns() >= at);
        alarm.set(at);
        alarm.wait();
        alarm.set(0);
        alarm.wait();
    }
}
