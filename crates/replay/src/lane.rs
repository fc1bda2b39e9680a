//! A place of a pool: its sessions one after another, each with its statements at their times.

use std::cell::RefCell;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;

use pgdyno_capture::{Call, CaptureError, CaptureFile, Cursor, SessionFacts};
use pgdyno_clock::monotonic_ns;
use pgdyno_connection::{CancelKey, Fault, Server};

use crate::errands::Errands;
use crate::keys::{Exchange, Needed, Rows, ended_us};
use crate::lanes::Lane;
use crate::left_out::{Sent, is_setting};
use crate::link::{Answer, Link};
use crate::patience::Patience;
use crate::seconds::Answered;
use crate::shared::{Pace, Shared, fault};
use crate::tally::Tally;
use crate::turns::{Turns, WAKE_NS, give_way, pause};

/// Statements after which others have their turns: of those that are not sent a session may have millions, one behind the other.
const TURN_STATEMENTS: u32 = 64;
/// Within a transaction a statement may be sent so much before its time. The application sent it right behind the answer to the one before, which comes
/// some tens of microseconds earlier here than through a relay, and to wait for so little costs as much CPU as the statement. Logs have
/// whole milliseconds.
const WITHIN_NS: u64 = 200_000;

/// Drives lanes on this thread, and reports what came of them. Sessions that are open then are ended behind that: a server that ends
/// thousands at a time does nothing else meanwhile.
pub(crate) fn drive(
    lanes: &[&Lane],
    file: CaptureFile,
    shared: &Shared,
    errands: &Errands,
    report: Sender<Tally>,
) -> Result<(), Fault> {
    let turns = Turns::new(errands)?;
    let open = RefCell::default();
    let tally = drive_on(&turns, lanes, file, shared, &open)?;
    // It is received as long as there are lanes.
    let _ = report.send(tally);
    drop(report);
    open.into_inner().into_iter().for_each(Link::close);
    Ok(())
}

/// The same with the sessions that are `open` at the end.
fn drive_on<'a>(
    turns: &'a Turns,
    lanes: &[&Lane],
    file: CaptureFile,
    shared: &'a Shared,
    open: &RefCell<Vec<Link<'a>>>,
) -> Result<Tally, Fault> {
    let (file, tally) = (RefCell::new(file), RefCell::new(Tally::new()));
    let crew = Crew { shared, turns, file, tally, sent: RefCell::default(), open };
    let failure = RefCell::new(None);
    let (of, failed) = (&crew, &failure);
    crew.turns.run(lanes.iter().map(move |lane| async move {
        if let Err(error) = of.drive(lane).await {
            failed.borrow_mut().get_or_insert(error);
            shared.stop.store(true, Ordering::Relaxed);
        }
    }))?;
    match failure.into_inner() {
        Some(error) => Err(fault(error)),
        None => Ok(crew.tally.into_inner()),
    }
}

/// What the lanes of a thread have in common.
struct Crew<'a, 'c> {
    shared: &'a Shared,
    turns: &'a Turns,
    file: RefCell<CaptureFile>,
    tally: RefCell<Tally>,
    sent: RefCell<Sent>,
    /// Sessions that the application had open behind the last statement of the part.
    open: &'c RefCell<Vec<Link<'a>>>,
}

impl<'a> Crew<'a, '_> {
    /// Drives the sessions of a lane.
    async fn drive(&self, lane: &Lane) -> Result<(), CaptureError> {
        let (shared, stops) = (self.shared, || self.shared.stops());
        for (place, &session) in lane.sessions.iter().enumerate() {
            let facts = &shared.sessions[session];
            let Some(server) = shared.server_of(facts) else { continue };
            let is_first = place == 0;
            let opens_early = is_first && shared.opens_before(facts);
            if !opens_early {
                if is_first {
                    self.begins().await;
                }
                self.turns.wait_until(shared.due_ns(facts.begin_us), stops).await;
            }
            let mut server = server.clone();
            facts.application.clone_into(&mut server.application_name);
            let link = Link::open(self.turns, &server, stops).await.ok();
            if opens_early {
                self.begins().await;
            }
            let link = link.map(|link| link.typed(&shared.types).copying(shared.copied.as_ref()));
            self.count(|tally| {
                tally.sessions += 1;
                tally.lost += u64::from(link.is_none() && !shared.stops());
            });
            let cancel_key = link.as_ref().map(|link| link.cancel_key.clone()).unwrap_or_default();
            let at = (session, 0);
            let mut driven =
                Session { facts, crew: self, server: &server, link, cancel_key, at, last: None, transaction: None };
            let (mut cursor, mut call) = (Cursor::new(session), Call::default());
            while let Some(text) = self.next_call(&mut cursor, &mut call)? {
                driven.call(&call, text).await;
                driven.over();
                if driven.at.1.is_multiple_of(TURN_STATEMENTS) {
                    give_way().await;
                }
            }
            driven.end().await;
            if let Some(keys) = &shared.keys {
                keys.over(session, None);
            }
        }
        Ok(())
    }

    /// The lane is ready: until it is known when the first statement is due.
    async fn begins(&self) {
        self.shared.logged_in();
        while self.shared.begin_ns() == 0 && !self.shared.stops() {
            pause().await;
        }
    }

    fn next_call(&self, cursor: &mut Cursor, call: &mut Call) -> Result<Option<Option<usize>>, CaptureError> {
        self.file.borrow_mut().next_call(cursor, call)
    }

    fn count<T>(&self, work: impl FnOnce(&mut Tally) -> T) -> T {
        work(&mut self.tally.borrow_mut())
    }
}

/// When the last statement was answered here, and when in production.
struct Last {
    answered_ns: u64,
    recorded_us: i64,
}

struct Session<'a, 's> {
    facts: &'s SessionFacts,
    crew: &'s Crew<'a, 's>,
    server: &'s Server,
    /// None once it was lost: what is left of the session cannot be what it was.
    link: Option<Link<'a>>,
    cancel_key: CancelKey,
    /// The session and the number of the call in it.
    at: (usize, u32),
    last: Option<Last>,
    /// The transaction of the last call, and whether it is sent.
    transaction: Option<(u32, bool)>,
}

impl Session<'_, '_> {
    /// Sends a call at its time. `text` is the number of its text.
    async fn call(&mut self, call: &Call, text: Option<usize>) {
        let begun = self.transaction.map(|(transaction, _)| transaction);
        if !self.is_asked(call) {
            return self.pass(call).await;
        }
        let early_ns = if begun == Some(call.transaction) { WITHIN_NS } else { WAKE_NS };
        let (shared, crew) = (self.crew.shared, self.crew);
        if shared.stops() {
            return crew.count(|tally| tally.not_begun += 1);
        }
        let made = shared.copies.rows(call);
        let why = crew.sent.borrow_mut().why(call, text);
        if let Some(why) = why.filter(|_| made.is_none()) {
            return crew.count(|tally| tally.left_out(call, why));
        }
        if let (Some(rows), Some(link)) = (made, &mut self.link) {
            crew.count(|tally| tally.copies_made += 1);
            link.made = Some(rows);
        }
        let due_ns = self.due_ns(call.due_us);
        let ready_ns = monotonic_ns();
        let is_early = due_ns.saturating_sub(ready_ns) >= early_ns;
        if is_early {
            crew.turns.wait_until(due_ns, || shared.stops()).await;
        }
        let needed = shared.keys.as_ref().map(|keys| (keys, keys.needed(call, self.at.0)));
        let waited = match &needed {
            Some((keys, needed)) => keys.wait(needed, self.at.0, crew.turns, || shared.stops()).await,
            None => false,
        };
        if shared.stops() {
            return crew.count(|tally| tally.not_begun += 1);
        }
        let sent_ns = if is_early || waited { monotonic_ns() } else { ready_ns };
        // It may be sent some microseconds before its time, and nothing is answered before it was sent.
        let (behind_ns, from_ns) = (sent_ns.saturating_sub(due_ns), sent_ns.min(due_ns));
        let answer = self.send(call, needed.as_ref(), sent_ns).await;
        let now_ns = monotonic_ns();
        let lost = answer == Answer::Lost && self.link.take().is_some();
        let (response_us, service_us) = ((now_ns - from_ns) / 1000, (now_ns - sent_ns) / 1000);
        let end = crew.count(|tally| {
            // Where the session was ready before, nothing but the driver is late.
            tally.sent(behind_ns / 1000, (ready_ns < due_ns && !waited).then_some(behind_ns / 1000));
            tally.lost += u64::from(lost);
            tally.answered((call, text), answer, (response_us, service_us))
        });
        let answered = Answered { end, behind_us: behind_ns / 1000, response_us, service_us };
        shared.seconds(|seconds| seconds.count(now_ns, answered));
        self.last = Some(Last { answered_ns: now_ns, recorded_us: ended_us(call) });
    }

    /// Sends a call with this run's keys, and learns those of its answer.
    async fn send(&mut self, call: &Call, needed: Option<&(&Exchange, Needed)>, sent_ns: u64) -> Answer {
        let Some(link) = &mut self.link else { return Answer::Lost };
        let shared = self.crew.shared;
        let limit = needed.and_then(|(keys, _)| keys.wait_max());
        let patience = Patience::new(&call.text, (&self.cancel_key, self.server), self.crew.turns, (sent_ns, limit));
        let stops = || {
            patience.look();
            shared.stops()
        };
        let Some((keys, needed)) = needed else { return link.call(call, None, &stops).await };
        let call = keys.exchanged(call, needed);
        let mut rows = keys.is_maker(self.at).then(Rows::default);
        let answer = link.call(&call, rows.as_mut(), &stops).await;
        patience.settle(|| shared.stops()).await;
        if let Some(rows) = rows.filter(|_| answer == Answer::Done) {
            keys.answered(self.at, &rows);
        }
        answer
    }

    /// A call is over, whatever became of it.
    fn over(&mut self) {
        self.at.1 += 1;
        if let Some(keys) = &self.crew.shared.keys {
            keys.over(self.at.0, Some(self.at.1));
        }
    }

    /// Whether a call is in the part that is sent: a transaction is sent whole or not at all.
    fn is_asked(&mut self, call: &Call) -> bool {
        match self.transaction {
            Some((transaction, asked)) if transaction == call.transaction => asked,
            _ => {
                let asked = self.crew.shared.part.has(call.due_us);
                self.transaction = Some((call.transaction, asked));
                asked
            }
        }
    }

    /// A call outside that part. What a session set for itself before it is sent at once, and not counted as a statement.
    async fn pass(&mut self, call: &Call) {
        let (shared, crew) = (self.crew.shared, self.crew);
        crew.count(|tally| tally.not_asked += 1);
        if call.due_us < shared.part.from_us
            && is_setting(call)
            && let Some(link) = &mut self.link
        {
            let lost = link.call(call, None, &|| shared.stops()).await == Answer::Lost;
            if lost {
                self.link = None;
            }
            crew.count(|tally| {
                tally.settings += 1;
                tally.lost += u64::from(lost);
            });
        }
    }

    /// When what the session did at a captured time is due.
    fn due_ns(&self, at_us: i64) -> u64 {
        let shared = self.crew.shared;
        match (&self.last, shared.pace) {
            (Some(last), Pace::Gaps) => {
                let waited_us = at_us.saturating_sub(last.recorded_us).max(0);
                last.answered_ns.saturating_add(shared.scaled_ns(waited_us))
            }
            _ => shared.due_ns(at_us),
        }
    }

    /// Ends the session when the application did; one that was open behind the last statement of the part stays open.
    async fn end(self) {
        let (shared, crew) = (self.crew.shared, self.crew);
        let end_ns = self.due_ns(self.facts.end_us);
        let Some(link) = self.link else { return };
        if self.facts.end_us >= shared.part.last_us {
            crew.open.borrow_mut().push(link);
            return;
        }
        crew.turns.wait_until(end_ns, || shared.stops()).await;
        link.close();
    }
}
