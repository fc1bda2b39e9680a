//! When a run begins: at once, or at an instant that is given once every client is connected, so that several drivers
//! begin together.

use std::io;
use std::sync::mpsc::{TryRecvError, channel};
use std::time::Duration;

use pgdyno_clock::monotonic_ns;
use pgdyno_connection::Fault;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::OwnedFd;
use serde::Deserialize;

const SECOND_NS: u64 = 1_000_000_000;
const NS_PER_MS: u64 = 1_000_000;
/// Threads are started so long before the beginning, and each waits for it by itself: starting one takes some tens of
/// microseconds, on a busy machine a few milliseconds.
const AHEAD_NS: u64 = 20 * NS_PER_MS;

/// The line that gives it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Told {
    /// An instant of CLOCK_MONOTONIC; one that is past is begun at once, and the run says how late that was.
    begin_ns: u64,
}

/// Waits for the instant that `line` gives, and then until shortly before it. It is an error if none comes within `within_ms`, if it
/// is farther away than that, and if a signal comes.
pub(crate) fn told(
    line: impl FnOnce() -> io::Result<String> + Send + 'static,
    within_ms: u64,
    signalled: &OwnedFd,
) -> Result<u64, Fault> {
    let limit_ns = || monotonic_ns().saturating_add(within_ms.saturating_mul(NS_PER_MS));
    let begin_ns = instant(&heard(line, limit_ns(), within_ms, signalled)?)?;
    if begin_ns > limit_ns() {
        return Err(Fault::new(
            format!("the given instant is more than {within_ms} ms away"),
            "give one of this host's CLOCK_MONOTONIC, or raise within_ms",
        ));
    }
    match wait(&[signalled], begin_ns.saturating_sub(AHEAD_NS))? {
        Some(_) => Err(ended()),
        None => Ok(begin_ns),
    }
}

/// Sleeps until an instant of CLOCK_MONOTONIC, and says how late it is then, in nanoseconds.
pub(crate) fn sleep_until(begin_ns: u64) -> u64 {
    loop {
        let now = monotonic_ns();
        match begin_ns.checked_sub(now) {
            None | Some(0) => return now - begin_ns,
            Some(left) => std::thread::sleep(Duration::from_nanos(left)),
        }
    }
}

/// The line. It is read by a thread of its own, since a signal or the deadline may come first; what standard input has
/// buffered could not be waited for.
fn heard(
    line: impl FnOnce() -> io::Result<String> + Send + 'static,
    limit_ns: u64,
    within_ms: u64,
    signalled: &OwnedFd,
) -> Result<String, Fault> {
    let bell = eventfd(0, EventfdFlags::CLOEXEC).map_err(|error| kernel(&error.into()))?;
    let ringing = bell.try_clone().map_err(|error| kernel(&error))?;
    let (say, said) = channel();
    let reader = move || {
        let _ = say.send(line());
        let _ = rustix::io::write(&ringing, &1_u64.to_ne_bytes());
    };
    std::thread::Builder::new().name("begin".to_owned()).spawn(reader).map_err(|error| kernel(&error))?;
    match wait(&[signalled, &bell], limit_ns)? {
        Some(0) => Err(ended()),
        Some(_) => match said.try_recv() {
            Ok(Ok(text)) if !text.trim().is_empty() => Ok(text),
            Ok(Ok(_)) => Err(Fault::new(
                "standard input ended before it gave the instant to begin at",
                "keep it open, and write one line: {\"begin_ns\": N}",
            )),
            Ok(Err(error)) => Err(Fault::new(format!("standard input cannot be read: {error}"), "use a pipe")),
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => unreachable!("the bell rings after the line"),
        },
        None => Err(Fault::new(
            format!("no instant to begin at was given within {within_ms} ms"),
            "write one line to standard input: {\"begin_ns\": N}",
        )),
    }
}

fn instant(text: &str) -> Result<u64, Fault> {
    let told: Result<Told, _> = serde_json::from_str(text);
    told.map(|told| told.begin_ns).map_err(|error| {
        Fault::new(
            format!("the line with the instant to begin at cannot be read: {error}"),
            "write {\"begin_ns\": N}, an instant of CLOCK_MONOTONIC in nanoseconds",
        )
    })
}

fn ended() -> Fault {
    Fault::new("it was stopped before it began", "run it again")
}

/// Waits until one of the descriptors is readable, and returns which; none at `until_ns`.
fn wait(watched: &[&OwnedFd], until_ns: u64) -> Result<Option<usize>, Fault> {
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
    Fault::new(format!("the kernel refused a descriptor or a thread: {error}"), "look at the limits of both")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a run is told by this line, within a second, when no signal comes.
    fn told_by(text: impl FnOnce() -> String + Send + 'static) -> Result<u64, String> {
        let silent = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        told(move || Ok(text()), 1000, &silent).map_err(|fault| fault.message)
    }

    #[test]
    fn an_instant_is_waited_for_and_met() {
        for ahead_ns in [0, 100_000, 30 * NS_PER_MS] {
            let at = monotonic_ns() + ahead_ns;
            let begin = told_by(move || format!("{{\"begin_ns\": {at}}}\n")).unwrap();
            assert_eq!(begin, at);
            let late_ns = sleep_until(begin);
            assert!(monotonic_ns() >= at + late_ns, "never too early");
        }
    }

    #[test]
    fn what_tells_no_instant_of_this_clock_is_refused() {
        let far = monotonic_ns() + 60 * SECOND_NS;
        for (text, message) in [
            (String::new(), "standard input ended"),
            ("{\"begin\": 1}".to_owned(), "cannot be read: unknown field `begin`"),
            (format!("{{\"begin_ns\": {far}}}"), "more than 1000 ms away"),
        ] {
            let said = told_by(move || text).unwrap_err();
            assert!(said.contains(message), "{said}");
        }
    }

    #[test]
    fn a_silent_teller_and_a_signal_end_the_wait() {
        let (silent, begin) = (eventfd(0, EventfdFlags::CLOEXEC).unwrap(), monotonic_ns());
        let never = || {
            std::thread::park();
            Ok(String::new())
        };
        let fault = told(never, 50, &silent).unwrap_err();
        assert_eq!(fault.message, "no instant to begin at was given within 50 ms");
        assert!(monotonic_ns() - begin >= 50 * NS_PER_MS);
        rustix::io::write(&silent, &1_u64.to_ne_bytes()).unwrap();
        assert_eq!(told(never, 60_000, &silent).unwrap_err().message, "it was stopped before it began");
    }
}
