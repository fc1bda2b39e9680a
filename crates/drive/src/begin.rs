//! When a run begins: at once, or at an instant that is given once every client is connected, so that several drivers
//! begin together.

use std::io::{self, Write};
use std::time::Duration;

use pgdyno_clock::{Policy, monotonic_ns};
use pgdyno_connection::Fault;
use rustix::fd::OwnedFd;
use rustix::thread::sched_yield;

use crate::ears::{Asked, Ears, Heard, wait};

const NS_PER_MS: u64 = 1_000_000;
/// Threads are started so long before the beginning, and each waits for it by itself: starting one takes some tens of
/// microseconds, on a busy machine some milliseconds.
const AHEAD_NS: u64 = 50 * NS_PER_MS;
/// After the summary the clock is asked for again; who has nothing more to ask closes standard input.
const AFTER_MS: u64 = 5_000;
/// A thread with real-time priority is awake so long before the beginning, since an idle core of a virtual machine may take some
/// tenths of a millisecond to run again. It occupies a core for that time, before the load and never in it.
const AWAKE_NS: u64 = NS_PER_MS;

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

/// A thread that has met the instant to begin at, and is ahead of ordinary threads until this is dropped.
///
/// An ordinary thread whose time has come waits until the one on its core has had its turn: of 200 beginnings of four drivers
/// on two quiet cores two were a millisecond apart or more (2026-11), and with a load average of ten six of 60. So it has
/// real-time priority, from before the instant until the first client has begun; the load itself is an ordinary process's.
/// It is awake a little earlier, too, since the core, or the virtual machine, may have to be woken first.
///
/// Where that is not permitted (it needs CAP_SYS_NICE) it begins as an ordinary thread does, without a word: the lateness,
/// which is recorded, is what matters, and it is judged.
pub(crate) struct Begun {
    /// How long after the instant.
    pub(crate) late_ns: u64,
    /// How long after its timer it was awake: the timer is earlier than the instant for a thread that is ahead.
    pub(crate) woke_late_ns: u64,
    is_ahead: bool,
}

impl Begun {
    /// Waits for an instant of CLOCK_MONOTONIC, with no precautions if that is past.
    pub(crate) fn at(begin_ns: u64) -> Self {
        let is_ahead = begin_ns > monotonic_ns() && get_ahead();
        let woke_late_ns = sleep_until(if is_ahead { begin_ns.saturating_sub(AWAKE_NS) } else { begin_ns });
        let late_ns = loop {
            let now = monotonic_ns();
            if now >= begin_ns {
                break now - begin_ns;
            }
            // Others that have real-time priority get the core: another thread that is to begin, the emulator's release.
            sched_yield();
        };
        Self { late_ns, woke_late_ns, is_ahead }
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        if self.is_ahead {
            // Giving up priority needs no permission.
            let _ = Policy::ORDINARY.set();
        }
    }
}

/// Gives the calling thread real-time priority, unless it is not permitted, or somebody chose another policy for it.
fn get_ahead() -> bool {
    Policy::current().is_ok_and(|policy| policy == Policy::ORDINARY) && Policy::REALTIME.set().is_ok()
}

/// Sleeps until an instant of CLOCK_MONOTONIC, and says how late it is then, in nanoseconds.
fn sleep_until(until_ns: u64) -> u64 {
    loop {
        let now = monotonic_ns();
        match until_ns.checked_sub(now) {
            None | Some(0) => return now - until_ns,
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
            let begun = Begun::at(begin);
            assert!(monotonic_ns() >= at + begun.late_ns, "never too early");
        }
    }

    #[test]
    fn a_thread_is_ahead_of_others_from_before_the_instant_until_it_has_begun_and_only_where_that_is_permitted() {
        std::thread::spawn(|| {
            Policy::ORDINARY.set().unwrap();
            let is_permitted = Policy::REALTIME.set().is_ok();
            Policy::ORDINARY.set().unwrap();
            let begun = Begun::at(monotonic_ns() + 3 * NS_PER_MS);
            assert_eq!(begun.is_ahead, is_permitted);
            assert_eq!(Policy::current().unwrap() == Policy::REALTIME, is_permitted);
            assert!(begun.woke_late_ns <= begun.late_ns || is_permitted, "its timer is the instant itself");
            drop(begun);
            assert_eq!(Policy::current().unwrap(), Policy::ORDINARY);
            let begun = Begun::at(monotonic_ns() - NS_PER_MS);
            assert_eq!((begun.is_ahead, Policy::current().unwrap()), (false, Policy::ORDINARY), "it is past");
            assert!(begun.late_ns >= NS_PER_MS);
        })
        .join()
        .unwrap();
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
