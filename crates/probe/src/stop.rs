//! Waiting for a deadline, or for the order to stop: SIGTERM, SIGINT, or the end of standard input.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use rustix::time::{timerfd_create, timerfd_settime};

use crate::error::ProbeError;

const SECOND_NS: u64 = 1_000_000_000;

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
    pub(crate) fn new(first_ns: u64, interval_ns: u64, watch_stdin: bool) -> Result<Self, ProbeError> {
        let refused = |what| move |error: rustix::io::Errno| ProbeError::Kernel { what, error: error.into() };
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)
            .map_err(refused("a timer"))?;
        let grid = Itimerspec { it_interval: timespec(interval_ns), it_value: timespec(first_ns) };
        timerfd_settime(&timer, TimerfdTimerFlags::ABSTIME, &grid).map_err(refused("a timer"))?;
        let signals =
            pgdyno_signals::block().map_err(|error| ProbeError::Kernel { what: "a signal descriptor", error })?;
        Ok(Self { timer, signals, stdin_open: watch_stdin })
    }

    /// Sleeps until the next deadline, or until it is time to stop.
    pub(crate) fn wait(&mut self) -> Turn {
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
            if poll(&mut watched, None).is_err() {
                continue; // interrupted
            }
            let happened: Vec<bool> = watched.iter().map(|fd| !fd.revents().is_empty()).collect();
            if happened[1] || (happened.get(2) == Some(&true) && ended(stdin.as_fd())) {
                return Turn::Stop;
            }
            let mut passed = [0_u8; 8];
            if happened[0] && rustix::io::read(&self.timer, &mut passed) == Ok(8) {
                return Turn::Due(u64::from_ne_bytes(passed));
            }
        }
    }
}

/// Whether standard input has ended; what it says before is of no interest.
fn ended(stdin: std::os::fd::BorrowedFd<'_>) -> bool {
    let mut ignored = [0_u8; 256];
    matches!(rustix::io::read(stdin, &mut ignored), Ok(0) | Err(_))
}

fn timespec(ns: u64) -> Timespec {
    Timespec { tv_sec: (ns / SECOND_NS) as i64, tv_nsec: (ns % SECOND_NS) as i64 }
}
