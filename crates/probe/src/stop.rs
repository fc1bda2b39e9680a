//! Waiting for a deadline, or for the order to stop: SIGTERM, SIGINT, or the end of standard input.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use pgdyno_host::{Fault, Result, stdin_ended, timespec};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime};

/// Why a wait ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// This many deadlines have passed since the last wait; 1 when nothing was missed.
    Due(u64),
    /// Stop.
    Stop,
}

/// Deadlines on a grid of absolute instants of CLOCK_MONOTONIC, so that a late sample does not shift the next ones.
pub(crate) struct Waiter {
    timer: OwnedFd,
    signals: OwnedFd,
    stdin_open: bool,
}

impl Waiter {
    /// Deadlines at `first_ns` and every `interval_ns` after it. Signals that stop are blocked from here on.
    pub(crate) fn new(first_ns: u64, interval_ns: u64, watch_stdin: bool) -> Result<Self> {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)
            .map_err(|error| refused(&error.into()))?;
        let grid = Itimerspec { it_interval: timespec(interval_ns), it_value: timespec(first_ns) };
        timerfd_settime(&timer, TimerfdTimerFlags::ABSTIME, &grid).map_err(|error| refused(&error.into()))?;
        let signals = pgdyno_signals::block().map_err(|error| refused(&error))?;
        Ok(Self { timer, signals, stdin_open: watch_stdin })
    }

    /// Sleeps until the next deadline, or until it is time to stop.
    ///
    /// # Errors
    /// What the kernel says of the wait itself, as that it has no memory for it.
    pub(crate) fn wait(&mut self) -> Result<Turn> {
        loop {
            let stdin = io::stdin();
            let mut watched = vec![
                PollFd::new(&self.timer, PollFlags::IN),
                PollFd::new(&self.signals, PollFlags::IN),
                PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN),
            ];
            if !self.stdin_open {
                watched.pop();
            }
            match poll(&mut watched, None) {
                Err(Errno::INTR) => continue,
                Err(error) => return Err(refused(&error.into())),
                Ok(_) => (),
            }
            let happened: Vec<bool> = watched.iter().map(|fd| !fd.revents().is_empty()).collect();
            if happened[1] || (happened.get(2) == Some(&true) && stdin_ended()) {
                return Ok(Turn::Stop);
            }
            let mut passed = [0_u8; 8];
            if happened[0] && rustix::io::read(&self.timer, &mut passed) == Ok(8) {
                return Ok(Turn::Due(u64::from_ne_bytes(passed)));
            }
        }
    }
}

fn refused(error: &io::Error) -> Fault {
    Fault::of_kernel("deadlines and signals cannot be watched", error)
}
