//! What was learned: which answer gives which key, when a key can be needed, and at which places of statements keys are.

use std::collections::hash_map::{DefaultHasher, Entry};
use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};

use pgdyno_capture::{Call, Protocol, shape};

use super::fit::Fit;
use super::key::{Key, Place, keys_of};
use super::makers::Wanted;

/// A statement: its session, and its number in it.
pub(crate) type Statement = (usize, u32);

/// A value that a statement's answer has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Learned {
    pub wanted: Wanted,
    /// As production had it.
    pub key: Key,
}

/// Where a key was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Made {
    pub session: usize,
    /// The last statement of its transaction.
    pub last: u32,
    /// Its transaction, in that session.
    pub transaction: u32,
}

/// A place of values in all statements of one text, or of one shape.
type PlaceOfMany = (u64, usize);

/// See the module.
#[derive(Default)]
pub(crate) struct Links {
    learned: HashMap<Statement, Vec<Learned>>,
    made: HashMap<Key, Made>,
    /// The last statement of each transaction.
    ends: HashMap<(usize, u32), u32>,
    /// Statements behind which keys are there for other sessions.
    ending: HashSet<Statement>,
    /// Values that are keys, and all that could be.
    seen: HashMap<PlaceOfMany, (u64, u64)>,
    places: HashSet<PlaceOfMany>,
    /// Keys of which several statements could be the makers.
    pub ties: u64,
    /// How keys follow the sequences of the database.
    pub fits: Vec<Fit>,
}

impl Links {
    /// A statement of a transaction made a key.
    pub(crate) fn link(&mut self, maker: Statement, transaction: u32, wanted: Wanted, key: Key) {
        let made = Made { session: maker.0, last: maker.1, transaction };
        if let Entry::Vacant(place) = self.made.entry(key) {
            place.insert(made);
            self.learned.entry(maker).or_default().push(Learned { wanted, key });
        }
    }

    /// Whether it is known what made a key.
    pub(crate) fn is_made(&self, key: Key) -> bool {
        self.made.contains_key(&key)
    }

    /// The last statement of a transaction.
    pub(crate) fn ends_at(&mut self, session: usize, transaction: u32, last: u32) {
        self.ends.insert((session, transaction), last);
    }

    /// All is linked: finds where the makers' transactions end.
    pub(crate) fn settle(&mut self) {
        for made in self.made.values_mut() {
            made.last = self.ends.get(&(made.session, made.transaction)).copied().unwrap_or(made.last);
            self.ending.insert((made.session, made.last));
        }
        self.ends = HashMap::new();
    }

    /// Counts a call's values, of which numbers beyond `lowest` could be keys.
    pub(crate) fn see(&mut self, call: &Call, lowest: u64, most: u64) {
        let mut text = Text::default();
        let mut number = 0;
        keys_of(call, |place, key| {
            let could_be = match key {
                Key::Number(value) => value > lowest && value - lowest <= most,
                Key::Uuid(_) => true,
            };
            if could_be {
                let seen = self.seen.entry((text.digest(call, &place), number_of(&place, number))).or_default();
                *seen = (seen.0 + u64::from(self.made.contains_key(&key)), seen.1 + 1);
            }
            number += 1;
        });
    }

    /// All was seen: keys are where at least half of the values that could be keys are. A quantity that happens to be one stays.
    pub(crate) fn choose_places(&mut self) {
        let seen = std::mem::take(&mut self.seen);
        self.places =
            seen.into_iter().filter(|(_, (keys, all))| *keys > 0 && keys * 2 >= *all).map(|one| one.0).collect();
    }

    /// What the answer to a statement has.
    pub(crate) fn learned(&self, statement: Statement) -> &[Learned] {
        self.learned.get(&statement).map_or(&[], Vec::as_slice)
    }

    /// Whether keys are there for other sessions when this statement is answered.
    pub(crate) fn ends(&self, statement: Statement) -> bool {
        self.ending.contains(&statement)
    }

    /// Passes the keys of a call that were made during the capture, with their places and makers, to `each`.
    pub(crate) fn needed(&self, call: &Call, mut each: impl FnMut(Place, Key, Made)) {
        if self.made.is_empty() {
            return;
        }
        let mut text = Text::default();
        let mut number = 0;
        keys_of(call, |place, key| {
            if let Some(made) = self.made.get(&key)
                && self.places.contains(&(text.digest(call, &place), number_of(&place, number)))
            {
                each(place, key, *made);
            }
            number += 1;
        });
    }

    /// How many keys were learned.
    pub(crate) fn len(&self) -> usize {
        self.made.len()
    }
}

/// The digest of a call's text, made when it is needed.
#[derive(Default)]
struct Text(Option<u64>);

impl Text {
    fn digest(&mut self, call: &Call, place: &Place) -> u64 {
        *self.0.get_or_insert_with(|| {
            let mut hasher = DefaultHasher::new();
            match place {
                Place::Text(_) if call.protocol == Protocol::Text => shape(&call.text).hash(&mut hasher),
                _ => call.text.hash(&mut hasher),
            }
            hasher.finish()
        })
    }
}

/// A parameter by its number, a literal by its order.
fn number_of(place: &Place, order: usize) -> usize {
    match place {
        Place::Parameter(number) => *number,
        Place::Text(_) => order,
    }
}
