//! A place of a pool: its sessions one after another, each with its statements at their times.

use std::num::NonZeroU64;

use pgdyno_capture::{Call, CaptureError, CaptureFile, Ending, SessionFacts};
use pgdyno_clock::monotonic_ns;
use pgdyno_connection::{CancelKey, Server};

use crate::keys::{Exchange, Needed, Rows};
use crate::lanes::Lane;
use crate::left_out;
use crate::link::{Answer, Link};
use crate::patience::Patience;
use crate::seconds::Answered;
use crate::shared::{Pace, Shared};
use crate::tally::Tally;

/// Drives the sessions of a lane. Returns what came of them.
pub(crate) fn drive(lane: &Lane, mut file: CaptureFile, shared: &Shared) -> Result<Tally, CaptureError> {
    let mut tally = Tally::new();
    // Timers are late by 50 µs unless a thread asks for less; where it may not, they are.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    for &session in &lane.sessions {
        let facts = &shared.sessions[session];
        let Some(server) = shared.server_of(facts) else { continue };
        shared.wait_until(shared.opens_ns(facts));
        let mut server = server.clone();
        facts.application.clone_into(&mut server.application_name);
        let link = Link::open(&server).ok().map(|link| link.typed(&shared.types).copying(shared.copied.as_ref()));
        let at = (session, 0);
        let cancel_key = link.as_ref().map(|link| link.cancel_key.clone()).unwrap_or_default();
        let mut driven = Session {
            facts,
            shared,
            server: &server,
            link,
            cancel_key,
            at,
            last: None,
            transaction: None,
            tally: &mut tally,
        };
        driven.tally.sessions += 1;
        driven.tally.lost += u64::from(driven.link.is_none());
        file.calls(session, |call| {
            driven.call(&call);
            driven.over();
        })?;
        driven.end();
        if let Some(keys) = &shared.keys {
            keys.over(session, None);
        }
    }
    Ok(tally)
}

/// When the last statement was answered here, and when in production.
struct Last {
    answered_ns: u64,
    recorded_us: i64,
}

struct Session<'a> {
    facts: &'a SessionFacts,
    shared: &'a Shared,
    server: &'a Server,
    /// None once it was lost: what is left of the session cannot be what it was.
    link: Option<Link>,
    cancel_key: CancelKey,
    /// The session and the number of the call in it.
    at: (usize, u32),
    last: Option<Last>,
    /// The transaction of the last call, and whether it is sent.
    transaction: Option<(u32, bool)>,
    tally: &'a mut Tally,
}

impl Session<'_> {
    fn call(&mut self, call: &Call) {
        if !self.is_asked(call) {
            return self.pass(call);
        }
        if self.shared.stops() {
            self.tally.not_begun += 1;
            return;
        }
        let made = self.shared.copies.rows(call);
        if let Some(why) = left_out::why(call).filter(|_| made.is_none()) {
            self.tally.left_out(call, why);
            return;
        }
        if let (Some(rows), Some(link)) = (made, &mut self.link) {
            self.tally.copies_made += 1;
            link.made = Some(rows);
        }
        let due_ns = self.due_ns(call);
        let ready_ns = monotonic_ns();
        self.shared.wait_until(due_ns);
        let stops = || self.shared.stops();
        let needed = self.shared.keys.as_ref().map(|keys| (keys, keys.needed(call)));
        let waited = needed.as_ref().is_some_and(|(keys, needed)| keys.wait(needed, self.at.0, stops));
        if self.shared.stops() {
            self.tally.not_begun += 1;
            return;
        }
        let sent_ns = monotonic_ns();
        // It may be sent some microseconds before its time, and nothing is answered before it was sent.
        let (behind_ns, from_ns) = (sent_ns.saturating_sub(due_ns), sent_ns.min(due_ns));
        // Where the session was ready before, nothing but the driver is late.
        self.tally.sent(behind_ns / 1000, (ready_ns < due_ns && !waited).then_some(behind_ns / 1000));
        let answer = self.send(call, needed.as_ref());
        let now_ns = monotonic_ns();
        if answer == Answer::Lost {
            self.tally.lost += u64::from(self.link.take().is_some());
        }
        let (response_us, service_us) = ((now_ns - from_ns) / 1000, (now_ns - sent_ns) / 1000);
        let end = self.tally.answered(call, answer, response_us, service_us);
        let answered = Answered { end, behind_us: behind_ns / 1000, response_us, service_us };
        self.shared.seconds(|seconds| seconds.count(now_ns, answered));
        let took_us = if let Ending::Done(us) = call.ending { i64::try_from(us).unwrap_or(0) } else { 0 };
        self.last = Some(Last { answered_ns: now_ns, recorded_us: call.due_us + took_us });
    }

    /// Sends a call with this run's keys, and learns those of its answer.
    fn send(&mut self, call: &Call, needed: Option<&(&Exchange, Needed)>) -> Answer {
        let Some(link) = &mut self.link else { return Answer::Lost };
        let limit = needed.and_then(|(keys, _)| keys.wait_max());
        let patience = Patience::new(&call.text, (&self.cancel_key, self.server), limit);
        let stops = || {
            patience.look();
            self.shared.stops()
        };
        let Some((keys, needed)) = needed else { return link.call(call, None, &stops) };
        let call = keys.exchanged(call, needed);
        if !keys.is_maker(self.at) {
            return link.call(&call, None, &stops);
        }
        let mut rows = Rows::default();
        let answer = link.call(&call, Some(&mut rows), &stops);
        if answer == Answer::Done {
            keys.answered(self.at, &rows);
        }
        answer
    }

    /// A call is over, whatever became of it.
    fn over(&mut self) {
        self.at.1 += 1;
        if let Some(keys) = &self.shared.keys {
            keys.over(self.at.0, Some(self.at.1));
        }
    }

    /// Whether a call is in the part that is sent: a transaction is sent whole or not at all.
    fn is_asked(&mut self, call: &Call) -> bool {
        match self.transaction {
            Some((transaction, asked)) if transaction == call.transaction => asked,
            _ => {
                let asked = self.shared.part.has(call.due_us);
                self.transaction = Some((call.transaction, asked));
                asked
            }
        }
    }

    /// A call outside that part. What a session set for itself before it is sent at once, and not counted as a statement.
    fn pass(&mut self, call: &Call) {
        self.tally.not_asked += 1;
        if call.due_us < self.shared.part.from_us
            && left_out::is_setting(call)
            && let Some(link) = &mut self.link
        {
            self.tally.settings += 1;
            if link.call(call, None, &|| self.shared.stops()) == Answer::Lost {
                self.link = None;
                self.tally.lost += 1;
            }
        }
    }

    /// When a statement is to be sent.
    fn due_ns(&self, call: &Call) -> u64 {
        match (&self.last, self.shared.pace) {
            (Some(last), Pace::Gaps) => {
                last.answered_ns + self.shared.scaled_ns((call.due_us - last.recorded_us).max(0))
            }
            _ => self.shared.due_ns(call.due_us),
        }
    }

    /// Ends the session when the application did.
    fn end(self) {
        if let Some(link) = self.link {
            self.shared.wait_until(self.shared.due_ns(self.facts.end_us).min(monotonic_ns() + 50_000_000));
            link.close();
        }
    }
}
