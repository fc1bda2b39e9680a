//! What is told while logs are read, and the signals that end it.

use std::cell::{Cell, RefCell};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::json;

use crate::input::Position;

/// How often it is said how far it is.
const TELL: Duration = Duration::from_secs(1);

/// What a signal makes of a reading; it passes through readers as an error of the file.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub(crate) struct Interrupted;

/// Says how far a reading is, and notices when it is to end.
pub(crate) struct Watch<'a, W: Write> {
    signalled: &'a OwnedFd,
    /// Stored bytes of all logs; 0 while they are not known.
    pub expected: Cell<u64>,
    /// Stored bytes of the logs that were read.
    pub read: Cell<u64>,
    /// How far the one is that is being read.
    pub position: RefCell<Option<Position>>,
    told: Cell<Instant>,
    pub entries: Cell<u64>,
    pub calls: Cell<u64>,
    out: RefCell<&'a mut W>,
}

impl<'a, W: Write> Watch<'a, W> {
    pub(crate) fn new(signalled: &'a OwnedFd, out: &'a mut W) -> Self {
        Self {
            signalled,
            expected: Cell::new(0),
            read: Cell::new(0),
            position: RefCell::new(None),
            told: Cell::new(Instant::now()),
            entries: Cell::new(0),
            calls: Cell::new(0),
            out: RefCell::new(out),
        }
    }

    /// Is called after each part that was read.
    pub(crate) fn look(&self) -> io::Result<()> {
        let mut watched = [PollFd::new(self.signalled, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        if poll(&mut watched, Some(&now)).is_ok() && !watched[0].revents().is_empty() {
            return Err(io::Error::other(Interrupted));
        }
        if self.told.get().elapsed() >= TELL {
            self.told.set(Instant::now());
            let here = self.position.borrow_mut().as_mut().map_or(0, Position::stored_bytes);
            let share = (self.read.get() + here) as f64 / self.expected.get().max(1) as f64;
            let share = if self.expected.get() == 0 { 0.0 } else { share.min(1.0) };
            let counts = json!({"share": share, "entries": self.entries.get(), "calls": self.calls.get()});
            self.say(&json!({"progress": counts}));
        }
        Ok(())
    }

    /// Writes a line, and sees that it leaves. A reader that is gone is no error.
    pub(crate) fn say(&self, line: &serde_json::Value) {
        let mut out = self.out.borrow_mut();
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    }
}
