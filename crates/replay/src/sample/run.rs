//! The whole of a run: the transactions are read, clients send them, seconds are said.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pgdyno_capture::CaptureFile;
use pgdyno_clock::monotonic_ns;
use pgdyno_connection::{Fault, Session, log_in};
use pgdyno_host::crew;
use pgdyno_measure::{Line, Ready, say};
use pgdyno_workload::Arrivals;

use super::client::{Beside, Client, Common};
use super::course::{Course, Sum};
use super::given::Given;
use super::pool::{Pool, load};
use super::spec::{NS_PER_MS, SampleSpec};
use crate::asked::Part;
use crate::errands::Errands;
use crate::run::{is_told, unwatched};
use crate::shared::{Pace, Shared, fault};
use crate::turns::Turns;
use crate::types;

/// How often the seconds that are over are said.
const LOOK: Duration = Duration::from_millis(50);
/// After a signal what has begun has no longer than this: somebody waits for the end.
const STOPPED_DRAIN_NS: u64 = 5_000_000_000;

/// Drives the server with transactions of a capture until the time is over, or SIGTERM or SIGINT. Writes the JSON lines of the driver
/// to `out`: `ready` when every client is connected, `second` for each second, `summary` at the end.
///
/// # Errors
/// A capture that cannot be read or has no transaction to send, a server that cannot be reached, and a machine that gives no threads.
pub fn sample(mut spec: SampleSpec, out: &mut impl Write) -> Result<(), Fault> {
    spec.check()?;
    let signalled = pgdyno_signals::block().map_err(|error| unwatched(&error))?;
    let errands = Errands::start(spec.clients as usize)?;
    let (shared, pool) = read(&mut spec, &errands)?;
    let (end_ns, warmup_ns) = (spec.end_ns(), spec.warmup_ms.saturating_mul(NS_PER_MS));
    let (given, arrivals, beside) = (Given::new(pool.kinds), Mutex::new(schedule(&spec)), Beside::default());
    let place = most_frequent(&pool);
    let (server, connecting_ns) = (shared.server_at(place), monotonic_ns());
    let connect = |_| log_in(server).map_err(|error| error.into_fault(server));
    let sessions = (0..spec.clients).map(connect).collect::<Result<Vec<_>, Fault>>()?;
    let begin_ns = monotonic_ns();
    let connect_ns = begin_ns - connecting_ns;
    let course = Course::new(begin_ns, warmup_ns, pool.groups.texts.len(), spec.threads as usize);
    let drain_ns = AtomicU64::new(end_ns.saturating_add(spec.drain_ms.saturating_mul(NS_PER_MS)));
    let common = Common {
        shared: &shared,
        pool: &pool,
        given: &given,
        course: course.part(0),
        arrivals: &arrivals,
        beside: &beside,
        seed: spec.seed,
        drain_ns: &drain_ns,
    };
    say(
        out,
        &Line::Ready(Ready {
            clients: spec.clients,
            connect_ns,
            server_version: None,
            begin_ns: Some(begin_ns),
            seed: spec.seed,
        }),
    );
    let mut sum = Sum::new(&course, &pool.groups, warmup_ns);
    // What has begun ends by then at the latest.
    let stop = |within_ns: u64| {
        shared.stop.store(true, Ordering::Relaxed);
        drain_ns.fetch_min(course.now().saturating_add(within_ns), Ordering::Relaxed);
    };
    crew(
        "sample",
        seats(sessions, spec.threads as usize),
        &|| stop(0),
        |_, (thread, clients)| drive(&Common { course: course.part(thread), ..common }, place, clients, &errands),
        |crew| {
            let mut is_stopped = false;
            while !crew.ended_within(LOOK) {
                if let Some(fault) = errands.panic() {
                    return Err(fault);
                }
                if !is_stopped && is_told(&signalled)? {
                    is_stopped = true;
                    stop(STOPPED_DRAIN_NS);
                }
                course.take().iter().for_each(|second| sum.second(second, out));
            }
            Ok(())
        },
    )?;
    // What is due after an end that came early was not scheduled.
    let mut arrivals = arrivals.into_inner().unwrap_or_else(PoisonError::into_inner).until(course.now().min(end_ns));
    let rest = arrivals.rest();
    let scheduled = arrivals.claimed();
    let (seconds, last) = course.end(rest);
    seconds.iter().for_each(|second| sum.second(second, out));
    sum.add(&last);
    sum.finish(scheduled, connect_ns, inputs(&pool, &beside), out);
    Ok(())
}

/// A thread, and the sessions of its clients by their numbers.
type Seat = (usize, Vec<(u32, Session)>);

/// Divides the clients among the threads.
fn seats(sessions: Vec<Session>, threads: usize) -> Vec<Seat> {
    let mut seats: Vec<Seat> = (0..threads).map(|thread| (thread, Vec::new())).collect();
    for (number, session) in (0..).zip(sessions) {
        seats[number as usize % threads].1.push((number, session));
    }
    seats
}

/// Drives the clients of a thread until they are done.
fn drive(common: &Common, place: usize, clients: Vec<(u32, Session)>, errands: &Errands) -> Result<(), Fault> {
    let turns = Turns::new(errands)?;
    turns.run(clients.into_iter().map(|(number, session)| {
        let (common, turns) = (common, &turns);
        async move { Client::new(common, turns, number).connected(place, session).run().await }
    }))
}

/// The transactions of the sessions that are asked for, and where they go.
fn read(spec: &mut SampleSpec, errands: &Errands) -> Result<(Shared, Pool), Fault> {
    let mut file = CaptureFile::open(&spec.capture).map_err(fault)?;
    let contents = file.contents();
    let part = Part::of(spec.part, &contents);
    let mut shared = Shared::new(contents.sessions, std::mem::take(&mut spec.endpoints), (Pace::Due, 1.0), 1, part);
    let chosen: Vec<usize> =
        (0..shared.sessions.len()).filter(|session| shared.chosen(&shared.sessions[*session])).collect();
    shared.types = Arc::new(types::find(&mut file, &shared, &chosen, errands)?);
    let links = match spec.keys.take() {
        Some(keys) => Some(keys.links(&mut file, &shared.asked(&chosen, &contents.account))?),
        None => None,
    };
    let pool = load(&mut file, &shared, &chosen, links.as_ref(), spec.seed).map_err(fault)?;
    if pool.transactions.is_empty() {
        return Err(Fault::new(
            "the capture has no transaction that can be sent",
            "look at what it has: `pgdyno capture show`",
        ));
    }
    Ok((shared, pool))
}

fn schedule(spec: &SampleSpec) -> Arrivals {
    let arrivals = Arrivals::new(spec.pattern(), spec.seed, 0).until(spec.end_ns());
    match spec.late_max_ms {
        Some(late_ms) => arrivals.late_max_ns(late_ms.saturating_mul(NS_PER_MS)),
        None => arrivals,
    }
}

/// The endpoint of most transactions.
fn most_frequent(pool: &Pool) -> usize {
    let mut counts: BTreeMap<usize, u64> = BTreeMap::new();
    pool.transactions.iter().for_each(|one| *counts.entry(one.place).or_default() += 1);
    counts.into_iter().max_by_key(|(_, count)| *count).map_or(0, |(place, _)| place)
}

/// What is counted beside the account.
fn inputs(pool: &Pool, beside: &Beside) -> BTreeMap<&'static str, u64> {
    let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
    BTreeMap::from([
        ("transactions", pool.transactions.len() as u64),
        ("read", pool.read),
        ("left_out", pool.left_out.values().sum()),
        ("drawn_again", count(&beside.drawn_again)),
        ("keys_not_given", count(&beside.keys_not_given)),
        ("no_longer_failed", count(&beside.no_longer_failed)),
    ])
}
