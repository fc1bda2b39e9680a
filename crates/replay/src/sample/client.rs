//! A client: it draws transactions, and sends each with the keys that this run was given.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pgdyno_capture::{Call, Ending};
use pgdyno_clock::monotonic_ns;
use pgdyno_connection::Session;
use pgdyno_workload::{Arrivals, Claim, Failure, Purpose, Random, Skip, SqlState, Transaction, Verdict};

use super::course::Part;
use super::given::{Entry, Given};
use super::pool::{Drawn, Ends, Pool, Source, Step};
use crate::keys::{Key, Rows};
use crate::link::{Answer, Link};
use crate::shared::Shared;
use crate::turns::Turns;

/// How often a transaction is drawn whose keys have not been given yet; then they are sent as captured.
const DRAWS_MAX: usize = 1_000;
/// Until a lost connection is tried again.
const AGAIN_NS: u64 = 100_000_000;
const ROLLBACK: &str = "ROLLBACK";

/// What is counted beside the account.
#[derive(Default)]
pub(crate) struct Beside {
    /// Draws of transactions whose keys had not been given yet.
    pub drawn_again: AtomicU64,
    /// Transactions that were sent with captured keys, since none had been given.
    pub keys_not_given: AtomicU64,
    /// Statements that failed in production and not here.
    pub no_longer_failed: AtomicU64,
}

/// What all clients share; those of a thread also what they count in.
#[derive(Clone, Copy)]
pub(crate) struct Common<'a> {
    pub shared: &'a Shared,
    pub pool: &'a Pool,
    pub given: &'a Given,
    pub course: Part<'a>,
    pub arrivals: &'a Mutex<Arrivals>,
    pub beside: &'a Beside,
    pub seed: u64,
    /// When transactions that have begun are given up.
    pub drain_ns: &'a AtomicU64,
}

impl Common<'_> {
    fn gives_up(&self) -> bool {
        self.course.now() > self.drain_ns.load(Ordering::Relaxed)
    }
}

/// In the place of settings where a session has those that it began with.
const NO_SETTINGS: u32 = u32::MAX;

/// See the module.
pub(crate) struct Client<'a> {
    common: &'a Common<'a>,
    turns: &'a Turns,
    number: u32,
    /// Connections by endpoint, each with the settings that it has.
    links: HashMap<usize, (Link<'a>, u32)>,
}

impl<'a> Client<'a> {
    /// One of this number.
    pub(crate) fn new(common: &'a Common<'a>, turns: &'a Turns, number: u32) -> Self {
        Self { common, turns, number, links: HashMap::new() }
    }

    /// Takes over a session with an endpoint. One that cannot be used is opened again.
    pub(crate) fn connected(mut self, place: usize, session: Session) -> Self {
        if let Ok(link) = Link::new(self.turns, session) {
            self.links.insert(place, (link.typed(&self.common.shared.types), NO_SETTINGS));
        }
        self
    }

    /// Sends transactions until nothing is begun any more.
    pub(crate) async fn run(mut self) {
        let Common { course, arrivals, seed, .. } = self.common;
        let mut think = Random::derived(*seed, Purpose::Think, self.number, 0);
        let lock = || arrivals.lock().unwrap_or_else(PoisonError::into_inner);
        let mut ordinal = 0;
        while !self.common.shared.stops() {
            let now = course.now();
            let claim = lock().claim(now);
            let skipped = |scheduled, why| Transaction {
                script: 0,
                ordinal: 0,
                scheduled,
                started: scheduled.max(course.now()),
                tries: 0,
                verdict: Verdict::Skipped(why),
            };
            match claim {
                Claim::None => break,
                Claim::Skip(at, why) => course.transaction(course.now(), &skipped(at, why)),
                Claim::Begin(at) => {
                    self.wait_until(at).await;
                    if at > now && lock().give_back(at) {
                        continue;
                    }
                    let started = course.now();
                    if self.common.shared.stops() {
                        course.transaction(started, &skipped(at, Skip::Ended));
                        break;
                    }
                    if lock().is_too_late(at, started) {
                        course.transaction(started, &skipped(at, Skip::Late));
                        continue;
                    }
                    let verdict = self.transaction(ordinal).await;
                    // It may begin some microseconds before its time.
                    let scheduled = at.min(started);
                    let done = Transaction { script: 0, ordinal, scheduled, started, tries: 1, verdict };
                    course.transaction(course.now(), &done);
                    ordinal += 1;
                    let think_ns = lock().think_ns(&mut think);
                    self.wait_until(course.now().saturating_add(think_ns)).await;
                }
            }
        }
        self.links.into_values().for_each(|(link, _)| link.close());
    }

    /// Waits for a time of the run, if it is to come.
    async fn wait_until(&self, at: u64) {
        let Common { course, shared, .. } = self.common;
        if at > course.now() {
            self.turns.wait_until(course.monotonic_ns(at), || shared.stops()).await;
            let now = course.now();
            course.wake(now, now.saturating_sub(at));
        }
    }

    async fn transaction(&mut self, ordinal: u64) -> Verdict {
        let mut random = Random::derived(self.common.seed, Purpose::Parameters, self.number, ordinal);
        let (one, given) = self.draw(&mut random);
        let common = self.common;
        let stops = || common.gives_up();
        let Some(link) = self.link(one).await else { return Verdict::Failed(Failure::Lost) };
        let sent = send(common, link, one, &given, &stops).await;
        let is_lost = match sent {
            Verdict::Failed(Failure::Lost) => true,
            Verdict::Failed(_) if one.steps.len() > 1 => link.text(ROLLBACK, &stops).await == Answer::Lost,
            _ if one.ends == Ends::Open => link.text(ROLLBACK, &stops).await == Answer::Lost,
            _ => false,
        };
        if is_lost {
            self.links.remove(&one.place);
            common.course.lost(common.course.now(), 0);
        }
        sent
    }

    /// A transaction with an entry for each of the makers that it needs.
    fn draw(&self, random: &mut Random) -> (&'a Drawn, Vec<Option<Arc<Entry>>>) {
        let Common { pool, given, beside, .. } = self.common;
        let most = pool.transactions.len() as u64 - 1;
        let mut one = &pool.transactions[random.up_to(most) as usize];
        for _ in 0..DRAWS_MAX {
            if let Some(found) = given.take(one) {
                return (one, found);
            }
            beside.drawn_again.fetch_add(1, Ordering::Relaxed);
            one = &pool.transactions[random.up_to(most) as usize];
        }
        beside.keys_not_given.fetch_add(1, Ordering::Relaxed);
        (one, vec![None; one.makers.len()])
    }

    /// The connection for a transaction, with the settings of its session. One that was lost is opened again; none when the time is over.
    async fn link(&mut self, one: &Drawn) -> Option<&mut Link<'a>> {
        let Common { shared, pool, course, .. } = self.common;
        let (begin, stops) = (course.now(), || self.common.gives_up());
        while !self.links.contains_key(&one.place) {
            match Link::open(self.turns, shared.server_at(one.place), stops).await {
                Ok(link) => {
                    self.links.insert(one.place, (link.typed(&shared.types), NO_SETTINGS));
                }
                Err(_) if shared.stops() || stops() => {
                    course.lost(course.now(), course.now() - begin);
                    return None;
                }
                Err(_) => self.turns.wait_until(monotonic_ns() + AGAIN_NS, || shared.stops()).await,
            }
        }
        let (link, settings) = self.links.get_mut(&one.place)?;
        if *settings != one.settings {
            let texts = &pool.settings[one.settings as usize];
            if *settings != NO_SETTINGS {
                link.text("RESET SESSION AUTHORIZATION", &stops).await;
                link.text("RESET ALL", &stops).await;
            }
            for text in texts {
                link.text(text, &stops).await;
            }
            *settings = one.settings;
        }
        Some(link)
    }
}

/// Sends the statements of a transaction, each held against what was recorded of it.
async fn send(
    common: &Common<'_>,
    link: &mut Link<'_>,
    one: &Drawn,
    given: &[Option<Arc<Entry>>],
    stops: &impl Fn() -> bool,
) -> Verdict {
    let mut own = HashMap::new();
    let mut made: Entry = vec![None; one.makes.map_or(0, |(_, keys)| keys)];
    let mut verdict = if one.ends == Ends::Committed { Verdict::Succeeded } else { Verdict::RolledBack };
    for step in &one.steps {
        let call = exchanged(step, &own, given);
        let mut rows = (!step.makes.is_empty()).then(Rows::default);
        let begin_ns = monotonic_ns();
        let answer = link.call(&call, rows.as_mut(), stops).await;
        common.course.statement(common.course.now(), step.group, monotonic_ns() - begin_ns);
        match (answer, call.ending) {
            (Answer::Lost, _) => return Verdict::Failed(Failure::Lost),
            (Answer::Failed(now), Ending::Failed(was)) if now == was || &was == b"?????" => {
                verdict = Verdict::RolledBack;
            }
            (Answer::Failed(now), _) => return Verdict::Failed(Failure::Sql(SqlState(now))),
            (Answer::Done, Ending::Failed(_)) => {
                common.beside.no_longer_failed.fetch_add(1, Ordering::Relaxed);
            }
            (Answer::Done, _) => (),
        }
        for (place, key, wanted) in &step.makes {
            if let Some(value) = rows.as_ref().and_then(|rows| rows.value(wanted)) {
                own.insert(*key, value.clone());
                made[*place] = Some(value.clone());
            }
        }
    }
    if let Some((kind, _)) = one.makes
        && one.ends == Ends::Committed
        && made.iter().any(Option::is_some)
    {
        common.given.put(kind, made);
    }
    verdict
}

/// The call with this run's keys.
fn exchanged<'a>(step: &'a Step, own: &HashMap<Key, String>, given: &[Option<Arc<Entry>>]) -> Cow<'a, Call> {
    if step.keys.is_empty() {
        return Cow::Borrowed(&step.call);
    }
    let mut call = step.call.clone();
    // From behind, so that places of a text stay where they are.
    for (place, source) in step.keys.iter().rev() {
        let value = match source {
            Source::Own(key) => own.get(key),
            Source::Given { maker, position } => given[*maker].as_ref().and_then(|entry| entry[*position].as_ref()),
        };
        if let Some(value) = value {
            place.fill(&mut call, value);
        }
    }
    Cow::Owned(call)
}

#[cfg(test)]
mod tests {
    use pgdyno_capture::Protocol;

    use super::*;
    use crate::keys::Place;

    #[test]
    fn keys_of_the_transaction_and_of_others_are_sent_in_the_places_of_the_captured_ones() {
        let call = Call {
            due_us: 0,
            protocol: Protocol::Text,
            name: String::new(),
            text: "UPDATE t SET a = 17 WHERE b = 9".to_owned(),
            values: vec![Some("17".to_owned())],
            transaction: 1,
            ending: Ending::Done(1),
            without_values: false,
            cut: false,
            rows: None,
            answer: Vec::new(),
        };
        let keys = vec![
            (Place::Parameter(0), Source::Own(Key::Uuid(17))),
            (Place::Text(17..19), Source::Own(Key::Uuid(17))),
            (Place::Text(30..31), Source::Given { maker: 0, position: 1 }),
        ];
        let step = Step { call, group: 0, keys, makes: Vec::new() };
        let own = HashMap::from([(Key::Uuid(17), "50017".to_owned())]);
        let given = [Some(Arc::new(vec![None, Some("90".to_owned())]))];
        let sent = exchanged(&step, &own, &given);
        assert_eq!(sent.text, "UPDATE t SET a = 50017 WHERE b = 90");
        assert_eq!(sent.values, [Some("50017".to_owned())]);
        // What was not given is sent as captured.
        assert_eq!(exchanged(&step, &HashMap::new(), &[None]).text, "UPDATE t SET a = 17 WHERE b = 9");
    }
}
