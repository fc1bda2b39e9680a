//! What was learned: which answer gives which key, when a key can be needed, and at which places of statements keys are.

use std::collections::hash_map::{DefaultHasher, Entry};
use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};

use pgdyno_capture::{Call, Protocol, shape};

use super::fit::Fit;
use super::key::{Key, Place, keys_of};
use super::makers::{Makers, Wanted};

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
    /// Of a number the value beyond which its sequence's new ones are; 0 of others.
    pub beyond: u64,
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
    /// Values beyond which sequences gave keys, from the lowest.
    bounds: Vec<u64>,
    /// Of each place, for each bound: values beyond it that are keys, and all that could be.
    seen: HashMap<PlaceOfMany, Vec<(u64, u64)>>,
    /// Places where numbers beyond a bound are keys.
    places: HashSet<(PlaceOfMany, u64)>,
    /// Keys of which several statements could be the makers.
    pub ties: u64,
    /// How keys follow the sequences of the database.
    pub fits: Vec<Fit>,
}

impl Links {
    /// A statement of a transaction made a key.
    pub(crate) fn link(&mut self, maker: Statement, transaction: u32, wanted: Wanted, key: Key) {
        let made = Made { session: maker.0, last: maker.1, transaction, beyond: 0 };
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

    /// All is linked: finds where the makers' transactions end, and beyond which values their keys are.
    pub(crate) fn settle(&mut self, makers: &Makers) {
        for made in self.made.values_mut() {
            made.last = self.ends.get(&(made.session, made.transaction)).copied().unwrap_or(made.last);
            self.ending.insert((made.session, made.last));
        }
        self.ends = HashMap::new();
        // Sources may have one name in two databases.
        let mut given: HashMap<(&str, u64), (&Wanted, u64, u64)> = HashMap::new();
        for (wanted, number) in numbers(&self.learned) {
            let one = given.entry((wanted.source.as_str(), wanted.after)).or_insert((wanted, number, number));
            (one.1, one.2) = (one.1.min(number), one.2.max(number));
        }
        let bounds: HashMap<(&str, u64), u64> = given
            .into_iter()
            .map(|(source, (wanted, first, last))| (source, makers.beyond(wanted, first, last)))
            .collect();
        for (wanted, number) in numbers(&self.learned) {
            if let Some(made) = self.made.get_mut(&Key::Number(number)) {
                made.beyond = bounds[&(wanted.source.as_str(), wanted.after)];
            }
        }
        self.bounds = bounds.into_values().collect();
        self.bounds.sort_unstable();
        self.bounds.dedup();
    }

    /// Counts a call's numbers that could be keys: those beyond a bound, by `most` at most.
    pub(crate) fn see(&mut self, call: &Call, most: u64) {
        let Some(lowest) = self.bounds.first().copied() else { return };
        let mut text = Text::default();
        let mut order = 0;
        keys_of(call, |place, key| {
            if let Key::Number(value) = key
                && value > lowest
            {
                let is_key = u64::from(self.made.contains_key(&key));
                let place = (text.digest(call, &place), number_of(&place, order));
                let seen = self.seen.entry(place).or_insert_with(|| vec![(0, 0); self.bounds.len()]);
                for (beyond, seen) in self.bounds.iter().zip(seen) {
                    if value > *beyond && value - beyond <= most {
                        *seen = (seen.0 + is_key, seen.1 + 1);
                    }
                }
            }
            order += 1;
        });
    }

    /// All was seen: numbers are keys where at least half of those that could be are. A quantity that happens to be one stays.
    pub(crate) fn choose_places(&mut self) {
        for (place, seen) in std::mem::take(&mut self.seen) {
            let those = self.bounds.iter().zip(seen).filter(|(_, (keys, all))| *keys > 0 && keys * 2 >= *all);
            self.places.extend(those.map(|(beyond, _)| (place, *beyond)));
        }
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
        let mut order = 0;
        keys_of(call, |place, key| {
            if let Some(made) = self.made.get(&key) {
                // No other value happens to be a uuid.
                let is_one = matches!(key, Key::Uuid(_)) || {
                    let place = (text.digest(call, &place), number_of(&place, order));
                    self.places.contains(&(place, made.beyond))
                };
                if is_one {
                    each(place, key, *made);
                }
            }
            order += 1;
        });
    }

    /// How many keys were learned.
    pub(crate) fn len(&self) -> usize {
        self.made.len()
    }
}

/// The numbers that were learned, each with what says where it is.
fn numbers(learned: &HashMap<Statement, Vec<Learned>>) -> impl Iterator<Item = (&Wanted, u64)> {
    learned.values().flatten().filter_map(|one| match one.key {
        Key::Number(number) => Some((&one.wanted, number)),
        Key::Uuid(_) => None,
    })
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

#[cfg(test)]
mod tests {
    use pgdyno_capture::Ending;

    use super::super::makers::Kind;
    use super::*;
    use crate::testing::call;

    const MOST: u64 = 1000;
    const NEW: [u64; 5] = [101, 102, 103, 104, 105];
    const ORDER: &str = "INSERT INTO orders (customer_id) VALUES ($1)";
    const LINE: &str = "INSERT INTO order_lines (quantity) VALUES ($1)";
    const UUID: &str = "0af7651c-1234-4321-8b6d-a1b2c3d4e5f6";

    /// Sequences with these last values. An unused one is among them.
    fn makers(lasts: &[u64]) -> Makers {
        let sequence = |after: &u64| serde_json::json!({"name": format!("of {after}"), "after": after});
        let sequences: Vec<_> = [0].iter().chain(lasts).map(sequence).collect();
        let catalogue = serde_json::json!({"columns": [], "sequences": sequences, "functions": []});
        Makers::new(serde_json::from_value(catalogue).unwrap())
    }

    fn valued(text: &str, value: &str) -> Call {
        Call { protocol: Protocol::Unnamed, values: vec![Some(value.to_owned())], ..call(text, Ending::Done(1)) }
    }

    /// A column of customers, or a function.
    fn made_by(column: Option<&str>, after: u64) -> Wanted {
        let source = column.map_or_else(|| "sign_up".to_owned(), |column| format!("customers.{column}"));
        Wanted { column: column.map(str::to_owned), kind: Kind::Number, after, source }
    }

    /// Which of a text's values are exchanged, where these numbers were made so, beside sequences with these last values.
    fn exchanged(wanted: &Wanted, made: &[u64], lasts: &[u64], values: &[(&str, u64)]) -> Vec<Key> {
        let mut links = Links::default();
        for (number, statement) in made.iter().zip(0..) {
            links.link((0, statement), statement, wanted.clone(), Key::Number(*number));
        }
        links.settle(&makers(lasts));
        let calls: Vec<Call> = values.iter().map(|(text, value)| valued(text, &value.to_string())).collect();
        calls.iter().for_each(|call| links.see(call, MOST));
        links.choose_places();
        let mut found = Vec::new();
        for call in &calls {
            links.needed(call, |_, key, _| found.push(key));
        }
        found
    }

    #[test]
    fn new_ones_among_many_that_were_there_before_are_exchanged() {
        let old = (1..=95).map(|customer| (ORDER, customer));
        let values: Vec<_> = old.chain(NEW.map(|customer| (ORDER, customer))).collect();
        for wanted in [made_by(Some("id"), 100), made_by(None, 0)] {
            assert_eq!(exchanged(&wanted, &NEW, &[100, 5000], &values), NEW.map(Key::Number), "{wanted:?}");
        }
    }

    #[test]
    fn a_quantity_that_happens_to_be_one_stays() {
        let customers = NEW.into_iter().map(|customer| (ORDER, customer));
        let values: Vec<_> = customers.chain((90..=112).map(|quantity| (LINE, quantity))).collect();
        assert_eq!(
            exchanged(&made_by(Some("id"), 100), &NEW, &[100], &values),
            NEW.map(Key::Number),
            "orders, and no line"
        );
    }

    #[test]
    fn where_another_sequence_ended_among_them_all_numbers_count() {
        // Products up to 103 were there before: their numbers are those of new customers.
        let customers = NEW.into_iter().map(|customer| (ORDER, customer));
        let values: Vec<_> = customers.chain((1..=103).map(|product| (LINE, product))).collect();
        for wanted in [made_by(Some("id"), 100), made_by(None, 0)] {
            assert_eq!(
                exchanged(&wanted, &NEW, &[100, 103], &values),
                NEW.map(Key::Number),
                "orders, and no line: {wanted:?}"
            );
        }
    }

    #[test]
    fn a_uuid_is_exchanged_among_any_others() {
        let mut links = Links::default();
        let wanted = Wanted { kind: Kind::Uuid, ..made_by(Some("ref"), 0) };
        links.link((0, 0), 1, wanted, Key::of(UUID).unwrap());
        links.settle(&makers(&[100]));
        let other = UUID.replace("0af", "0bf");
        let calls = [other.as_str(), &other, &other, UUID].map(|value| valued(ORDER, value));
        calls.iter().for_each(|call| links.see(call, MOST));
        links.choose_places();
        let mut found = 0;
        calls.iter().for_each(|call| links.needed(call, |_, _, _| found += 1));
        assert_eq!(found, 1);
    }
}
