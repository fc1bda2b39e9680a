//! A log in one reading: from which position on each request is durable, and the state of a cut.

use crate::draw::Random;
use crate::fate::{Fate, fates};
use crate::history::History;
use crate::log::{Cache, What};
use crate::reading::{Lie, Reading};
use crate::state::{State, Undecided};

/// A cache whose flushes are ignored writes back by itself after this time: Linux's own page cache is asked to after 30 s, disks do it
/// as they can.
const WRITTEN_BACK_NS: u64 = 1_000_000_000;
/// A request that never becomes durable.
const NEVER: u32 = u32::MAX;

/// A log in one reading.
#[derive(Debug)]
pub struct View<'a> {
    history: &'a History,
    reading: Reading,
    seed: u64,
    /// For each request the position from which on it is durable.
    durable: Vec<u32>,
}

impl<'a> View<'a> {
    /// Reads the log.
    pub fn new(history: &'a History, reading: Reading, seed: u64) -> Self {
        Self { history, reading, seed, durable: durable(history, &reading, seed) }
    }

    /// The state at a position, which the reading's lies may set apart by volume. `instant` and `number` name the draws;
    /// requests in `whole` stay whatever is drawn. `None`: the instant has fewer states.
    pub fn state(&self, position: u32, instant: u64, number: u64, whole: &[u32]) -> Option<State<'a>> {
        let volumes = self.history.log().header().volumes.len();
        let positions: Vec<u32> = (0..volumes).map(|volume| self.position(position, volume)).collect();
        let undecided: Vec<u32> = self.undecided(&positions).collect();
        let parts: Vec<Vec<u64>> = undecided.iter().map(|number| self.parts(*number)).collect();
        let mut drawn = fates(&self.reading, &parts, self.seed, instant, number)?;
        for (request, fate) in undecided.iter().zip(&mut drawn) {
            if whole.contains(request) {
                *fate = Fate::Whole;
            }
        }
        let undecided = undecided.into_iter().zip(drawn).map(|(request, fate)| Undecided { request, fate }).collect();
        let stays = |request: u32| self.durable[request as usize];
        let random = Random::derived(self.seed, 4, instant ^ (number << 48));
        let cut = |volume: usize, place: usize| self.position_of_block(positions[volume], volume, place);
        Some(State::compose(self.history, cut, stays, undecided, &self.reading, random))
    }

    /// What had come and was not durable at a position.
    fn undecided<'b>(&'b self, positions: &'b [u32]) -> impl Iterator<Item = u32> + 'b {
        let numbered = (0..).zip(self.history.requests().iter().zip(&self.durable));
        numbered.filter_map(|(number, (request, durable))| {
            let position = positions[usize::from(request.volume)];
            (request.came < position && *durable >= position).then_some(number)
        })
    }

    fn parts(&self, number: u32) -> Vec<u64> {
        let request = &self.history.requests()[number as usize];
        // A discard tears nothing that anyone wants.
        if request.data.is_none() { vec![request.len] } else { self.reading.parts(request.offset, request.len) }
    }

    fn position(&self, position: u32, volume: usize) -> u32 {
        let ms = match self.reading.lie_of(volume) {
            Lie::Apart(ms) if volume > 0 || self.reading.only.is_some() => ms,
            Lie::Behind(ms) => ms,
            _ => return position,
        };
        self.earlier(position, ms * 1_000_000)
    }

    /// The position at which a block is cut; `place` is its own among those that were ever written.
    fn position_of_block(&self, position: u32, volume: usize, place: usize) -> u32 {
        let Lie::Copied(ms) = self.reading.lie_of(volume) else { return position };
        let left = self.history.blocks(volume).len() - place;
        let ns = ms * 1_000_000 * left as u64 / self.history.blocks(volume).len() as u64;
        self.earlier(position, ns)
    }

    /// The position so many nanoseconds before another one.
    fn earlier(&self, position: u32, ns: u64) -> u32 {
        let events = self.history.log().events();
        if events.is_empty() {
            return position;
        }
        let at = events[(position as usize).min(events.len() - 1)].at_ns.saturating_sub(ns);
        events.partition_point(|event| event.at_ns < at) as u32
    }
}

/// For each request the number of the event with which it became durable: it is so at every later position.
fn durable(history: &History, reading: &Reading, seed: u64) -> Vec<u32> {
    let log = history.log();
    let mut durable = vec![NEVER; history.requests().len()];
    let mut pending: Vec<Pending> = log.header().volumes.iter().map(|_| Pending::default()).collect();
    let answered: std::collections::BTreeMap<u32, (u32, u8)> = (0..)
        .zip(history.requests())
        .filter_map(|(number, request)| request.answered.map(|event| (event, (number, request.volume))))
        .collect();
    for (number, event) in (0..).zip(log.events()) {
        match event.what {
            What::Answer { .. } => {
                let Some(&(request, volume)) = answered.get(&number) else { continue };
                match log.header().volumes[usize::from(volume)].cache {
                    Cache::None => durable[request as usize] = number,
                    Cache::Volatile => pending[usize::from(volume)].answered.push((request, event.at_ns)),
                }
            }
            What::Flush { volume } => {
                let lie = reading.lie_of(usize::from(volume));
                let ignored = match lie {
                    Lie::FlushIgnored(one_in) => Random::derived(seed, 5, u64::from(number)).below(one_in) == 0,
                    _ => false,
                };
                for request in pending[usize::from(volume)].flush(lie, ignored, event.at_ns) {
                    durable[request as usize] = number;
                }
            }
            What::Write { .. } | What::Discard { .. } | What::Mark { .. } => {}
        }
    }
    durable
}

/// What a volatile cache holds.
#[derive(Debug, Default)]
struct Pending {
    /// Answered requests, each with its instant, the oldest first.
    answered: Vec<(u32, u64)>,
    /// How many of them a flush before should have covered.
    overdue: usize,
}

impl Pending {
    /// What becomes durable with a flush.
    fn flush(&mut self, lie: Lie, ignored: bool, now: u64) -> Vec<u32> {
        let count = match lie {
            _ if ignored => self.answered.iter().take_while(|(_, at)| at + WRITTEN_BACK_NS < now).count(),
            Lie::FlushNarrow => self.answered.len().div_ceil(2),
            Lie::FlushOvertaken => self.overdue,
            Lie::FlushLate(ms) => self.answered.iter().take_while(|(_, at)| at + ms * 1_000_000 <= now).count(),
            _ => self.answered.len(),
        };
        let covered = self.answered.drain(..count).map(|(request, _)| request).collect();
        self.overdue = self.answered.len();
        covered
    }
}
