//! When a run begins: at once, or at an instant that is given once every client is connected, so that several drivers
//! begin together.

use std::io::{self, Write};
use std::time::Duration;

use pgdyno_clock::monotonic_ns;
use pgdyno_connection::Fault;
use rustix::fd::OwnedFd;

use crate::ears::{Asked, Ears, Heard, wait};

const NS_PER_MS: u64 = 1_000_000;
/// Threads are started so long before the beginning, and each waits for it by itself: starting one takes some tens of
/// microseconds, on a busy machine a few milliseconds.
const AHEAD_NS: u64 = 20 * NS_PER_MS;
/// After the summary the clock is asked for again; who has nothing more to ask closes standard input.
const AFTER_MS: u64 = 5_000;

/// Who gives the instant, and asks what this host's clock shows.
pub(crate) struct Teller {
    ears: Ears,
    within_ms: u64,
}

impl Teller {
    /// Listens to the lines that `line` reads.
    pub(crate) fn listen(
        line: impl FnMut() -> io::Result<String> + Send + 'static,
        within_ms: u64,
    ) -> Result<Self, Fault> {
        Ok(Self { ears: Ears::open(line)?, within_ms })
    }

    /// Waits for the instant, and then until shortly before it; questions about the clock are answered meanwhile. It is an
    /// error if none comes in time, if it is farther away than the time, and if a signal comes.
    pub(crate) fn instant(&self, signalled: &OwnedFd, out: &mut impl Write) -> Result<u64, Fault> {
        let (within_ms, limit_ns) = (self.within_ms, self.limit_ns(self.within_ms));
        let begin_ns = match self.ears.answer_until(limit_ns, signalled, out)? {
            Heard::Asked(Asked::BeginNs(begin_ns)) => begin_ns,
            Heard::Asked(Asked::Clock(_)) => unreachable!("it was answered"),
            Heard::Signal => return Err(ended()),
            Heard::End => {
                return Err(Fault::new(
                    "standard input ended before it gave the instant to begin at",
                    "keep it open, and write one line: {\"begin_ns\": N}",
                ));
            }
            Heard::Nothing => {
                return Err(Fault::new(
                    format!("no instant to begin at was given within {within_ms} ms"),
                    "write one line to standard input: {\"begin_ns\": N}",
                ));
            }
        };
        if begin_ns > self.limit_ns(within_ms) {
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

    /// Answers what the clock is asked after the run, until standard input ends.
    pub(crate) fn end(&self, signalled: &OwnedFd, out: &mut impl Write) {
        // The summary is said, so nothing that is heard now is an error of the run.
        let _ = self.ears.answer_until(self.limit_ns(AFTER_MS), signalled, out);
    }

    fn limit_ns(&self, after_ms: u64) -> u64 {
        monotonic_ns().saturating_add(after_ms.saturating_mul(NS_PER_MS))
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

fn ended() -> Fault {
    Fault::new("it was stopped before it began", "run it again")
}

#[cfg(test)]
mod tests {
    use rustix::event::{EventfdFlags, eventfd};
    use serde_json::Value;

    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    /// The instant by these lines, within a second, when no signal comes; and what was said.
    fn given(text: impl FnOnce() -> String) -> Result<(u64, Vec<u8>), String> {
        let (silent, mut out) = (eventfd(0, EventfdFlags::CLOEXEC).unwrap(), Vec::new());
        let text = text();
        let mut lines = text.lines().map(|line| format!("{line}\n")).collect::<Vec<_>>().into_iter();
        let teller = Teller::listen(move || Ok(lines.next().unwrap_or_default()), 1000).unwrap();
        let begin = teller.instant(&silent, &mut out);
        begin.map(|begin_ns| (begin_ns, out)).map_err(|fault| fault.message)
    }

    #[test]
    fn an_instant_is_waited_for_and_met() {
        for ahead_ns in [0, 100_000, 30 * NS_PER_MS] {
            let at = monotonic_ns() + ahead_ns;
            let (begin, said) = given(|| format!("{{\"begin_ns\": {at}}}")).unwrap();
            assert_eq!((begin, said.len()), (at, 0));
            let late_ns = sleep_until(begin);
            assert!(monotonic_ns() >= at + late_ns, "never too early");
        }
    }

    #[test]
    fn questions_about_the_clock_are_answered_until_the_instant_comes() {
        let before = monotonic_ns();
        let (_, said) = given(|| format!("{{\"clock\": 7}}\n{{\"clock\": 8}}\n{{\"begin_ns\": {before}}}")).unwrap();
        let answers: Vec<Value> =
            said.split(|byte| *byte == b'\n').filter_map(|a| serde_json::from_slice(a).ok()).collect();
        let clocks: Vec<_> = answers.iter().map(|answer| answer["clock"]["monotonic_ns"].as_u64().unwrap()).collect();
        assert_eq!(
            answers.iter().map(|answer| answer["clock"]["number"].as_u64()).collect::<Vec<_>>(),
            [Some(7), Some(8)]
        );
        assert!(before <= clocks[0] && clocks[0] <= clocks[1] && clocks[1] <= monotonic_ns(), "{clocks:?}");
    }

    #[test]
    fn what_is_no_instant_of_this_clock_is_refused() {
        let far = monotonic_ns() + 60 * SECOND_NS;
        for (text, message) in [
            (String::new(), "standard input ended"),
            ("{\"begin\": 1}".to_owned(), "cannot be read: unknown variant `begin`"),
            (format!("{{\"begin_ns\": {far}}}"), "more than 1000 ms away"),
        ] {
            let said = given(|| text).unwrap_err();
            assert!(said.contains(message), "{said}");
        }
    }

    #[test]
    fn silence_and_a_signal_end_the_wait() {
        let (silent, begin) = (eventfd(0, EventfdFlags::CLOEXEC).unwrap(), monotonic_ns());
        let never = || loop {
            std::thread::park();
        };
        let teller = Teller::listen(never, 50).unwrap();
        let fault = teller.instant(&silent, &mut Vec::new()).unwrap_err();
        assert_eq!(fault.message, "no instant to begin at was given within 50 ms");
        assert!(monotonic_ns() - begin >= 50 * NS_PER_MS);
        rustix::io::write(&silent, &1_u64.to_ne_bytes()).unwrap();
        let fault = Teller::listen(never, 60_000).unwrap().instant(&silent, &mut Vec::new()).unwrap_err();
        assert_eq!(fault.message, "it was stopped before it began");
    }
}
