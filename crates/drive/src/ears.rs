//! Lines of standard input while something else may come first: a signal, or a deadline.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, TryRecvError, channel};

use pgdyno_clock::monotonic_ns;
use pgdyno_connection::Fault;
use pgdyno_host as host;
use pgdyno_measure::{ClockShown, Line, say};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::OwnedFd;
use serde::Deserialize;

const SECOND_NS: u64 = 1_000_000_000;

/// What a line says.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Asked {
    /// Begin at this instant of CLOCK_MONOTONIC; one that is past is begun at once, and the run says how late that was.
    BeginNs(u64),
    /// Say what CLOCK_MONOTONIC shows; the answer repeats the number.
    Clock(u64),
}

/// What came first.
#[derive(Debug)]
pub(crate) enum Heard {
    /// A line.
    Asked(Asked),
    /// The end of standard input.
    End,
    /// A signal, which stays to be seen by others.
    Signal,
    /// The deadline.
    Nothing,
}

/// Reads lines in a thread of its own: what standard input has buffered could not be waited for.
pub(crate) struct Ears {
    bell: OwnedFd,
    lines: Receiver<(io::Result<String>, u64)>,
}

impl Ears {
    /// Begins to read, until `line` gives an empty text or an error.
    pub(crate) fn open(mut line: impl FnMut() -> io::Result<String> + Send + 'static) -> Result<Self, Fault> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(|error| kernel(&error.into()))?;
        let ringing = bell.try_clone().map_err(|error| kernel(&error))?;
        let (tell, lines) = channel();
        let reader = move || {
            loop {
                let text = line();
                // As near to the line's arrival as can be: what comes after it counts as part of the way back.
                let at_ns = monotonic_ns();
                let is_last = !matches!(&text, Ok(text) if !text.is_empty());
                let heard = tell.send((text, at_ns)).is_ok();
                let _ = rustix::io::write(&ringing, &1_u64.to_ne_bytes());
                if is_last || !heard {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("listen".to_owned()).spawn(reader).map_err(|error| kernel(&error))?;
        Ok(Self { bell, lines })
    }

    /// Answers questions about the clock until something else is heard.
    pub(crate) fn answer_until(
        &self,
        limit_ns: u64,
        signalled: &OwnedFd,
        out: &mut impl Write,
    ) -> Result<Heard, Fault> {
        loop {
            match self.lines.try_recv() {
                Ok((text, monotonic_ns)) => match self.heard(text)? {
                    Heard::Asked(Asked::Clock(number)) => say(out, &Line::Clock(ClockShown { number, monotonic_ns })),
                    other => return Ok(other),
                },
                Err(TryRecvError::Disconnected) => return Ok(Heard::End),
                Err(TryRecvError::Empty) => match wait(&[signalled, &self.bell], limit_ns)? {
                    Some(0) => return Ok(Heard::Signal),
                    // Quiet until the next line; the lines are looked at after that.
                    Some(_) => {
                        let _ = rustix::io::read(&self.bell, &mut [0_u8; 8]);
                    }
                    None => return Ok(Heard::Nothing),
                },
            }
        }
    }

    fn heard(&self, text: io::Result<String>) -> Result<Heard, Fault> {
        let text = text.map_err(|error| Fault::new(format!("standard input cannot be read: {error}"), "use a pipe"))?;
        if text.is_empty() {
            return Ok(Heard::End);
        }
        serde_json::from_str(&text).map(Heard::Asked).map_err(|error| {
            Fault::new(
                format!("the line with the instant to begin at cannot be read: {error}"),
                "write {\"begin_ns\": N}, an instant of CLOCK_MONOTONIC in nanoseconds, or {\"clock\": N}",
            )
        })
    }
}

/// Waits until one of the descriptors is readable, and returns which; none at `until_ns`.
pub(crate) fn wait(watched: &[&OwnedFd], until_ns: u64) -> Result<Option<usize>, Fault> {
    loop {
        let left_ns = until_ns.saturating_sub(monotonic_ns());
        let left = Timespec { tv_sec: (left_ns / SECOND_NS) as i64, tv_nsec: (left_ns % SECOND_NS) as i64 };
        let mut watching: Vec<_> = watched.iter().map(|one| PollFd::new(*one, PollFlags::IN)).collect();
        match poll(&mut watching, Some(&left)) {
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(kernel(&error.into())),
            Ok(_) => (),
        }
        if let Some(ready) = watching.iter().position(|one| !one.revents().is_empty()) {
            return Ok(Some(ready));
        }
        if left_ns == 0 {
            return Ok(None);
        }
    }
}

fn kernel(error: &io::Error) -> Fault {
    host::Fault::of_kernel("standard input cannot be watched", error).into()
}
