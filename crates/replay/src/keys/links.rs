//! What was learned: which answer gives which key, and when a key can be needed.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use pgdyno_capture::Call;

use super::decide::{Decision, Known};
use super::fit::Fit;
use super::key::{Family, Form, Key, Place, Slot, Value, values_of};
use super::makers::Wanted;
use super::texts::{Text, Texts};

/// A statement: its session, and its number in it.
pub(crate) type Statement = (usize, u32);

/// Values that a sequence skips, after a crash or a base backup.
const SKIPPED: u64 = 32;
const OTHERS: &str = "(other statements)";
/// Rows of a statement that are counted.
const ROWS: u64 = 16;

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
    /// The statement that made it.
    pub call: u32,
    /// When that was due.
    pub due_us: i64,
    /// The last statement of its transaction, and until when that had surely not ended in production.
    pub last: u32,
    pub open_until_us: i64,
    /// Its transaction, in that session.
    pub transaction: u32,
}

impl Made {
    /// The statement of the maker's session that another session waits for when it needs the key at this time: the end of the maker's transaction,
    /// before which it would not see the row. A key that was surely used before that end was not read from the database: to wait for the end might never end.
    pub(crate) fn awaited(&self, due_us: i64) -> u32 {
        if due_us < self.open_until_us { self.call } else { self.last }
    }
}

/// Why a value that may be a key is sent as captured.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Doubt {
    /// The statement, without its literals.
    pub statement: String,
    /// The parameter or the literal.
    pub place: String,
    pub why: String,
}

impl Doubt {
    /// Of all places beyond those that are told apart.
    pub(crate) fn of_others() -> Self {
        let statement = OTHERS.to_owned();
        Self {
            statement,
            place: "any place".to_owned(),
            why: "there are too many places to tell them apart".to_owned(),
        }
    }
}

/// A value of a call that is, or may be, a key that was made during the capture.
#[derive(Debug)]
pub(crate) enum Occurrence {
    Key(Place, Key, Made),
    Doubtful(Doubt),
}

/// See the module.
#[derive(Default)]
pub(crate) struct Links {
    pub texts: Texts,
    /// Of each session its database.
    pub databases: Vec<usize>,
    learned: HashMap<Statement, Vec<Learned>>,
    made: HashMap<Key, Made>,
    /// The values of keys that were learned.
    values: HashSet<Value>,
    /// The last statement of each transaction, and when it was over.
    ends: HashMap<(usize, u32), (u32, i64)>,
    /// Statements behind which keys are there for other sessions.
    ending: HashSet<Statement>,
    /// Of each family the range in which the capture may have made keys.
    possible: HashMap<Family, (u64, u64)>,
    /// No number that is not beyond this is a new key.
    lowest: u64,
    /// Keys that the application gave itself.
    pub given: HashSet<(Family, u64)>,
    /// Keys of which several statements could be the makers.
    pub ties: u64,
    /// How keys follow the sequences of the database.
    pub fits: Vec<Fit>,
}

impl Links {
    /// Nothing is learned yet from statements with these texts, of sessions in these databases.
    pub(crate) fn of(texts: Texts, databases: Vec<usize>) -> Self {
        Self { texts, databases, ..Self::default() }
    }

    /// A statement of a transaction made a key.
    pub(crate) fn link(&mut self, maker: Statement, (transaction, due_us): (u32, i64), wanted: Wanted, key: Key) {
        let (session, call) = maker;
        let made = Made { session, call, due_us, last: call, open_until_us: due_us, transaction };
        if let Entry::Vacant(place) = self.made.entry(key) {
            place.insert(made);
            self.values.insert(key.value());
            self.learned.entry(maker).or_default().push(Learned { wanted, key });
        }
    }

    /// Whether it is known what made a key.
    pub(crate) fn is_made(&self, key: Key) -> bool {
        self.made.contains_key(&key)
    }

    /// The last statement of a transaction, and when it was over.
    pub(crate) fn ends_at(&mut self, session: usize, transaction: u32, last: u32, ended_us: i64) {
        self.ends.insert((session, transaction), (last, ended_us));
    }

    /// All is linked: finds where the makers' transactions end. Times are exact to `uncertain_us`.
    /// `uses` counts how often statements took a value of a sequence, of which there are `most` at most.
    pub(crate) fn settle(&mut self, uncertain_us: i64, uses: &HashMap<Family, u64>, most: u64) {
        for made in self.made.values_mut() {
            if let Some((last, ended_us)) = self.ends.get(&(made.session, made.transaction)) {
                (made.last, made.open_until_us) = (*last, ended_us.saturating_sub(uncertain_us));
            }
            self.ending.extend([(made.session, made.last), (made.session, made.call)]);
        }
        self.ends = HashMap::new();
        let known = self.known();
        self.possible = (0..)
            .map(Family)
            .zip(&self.texts.columns.sequences)
            .map(|(family, sequence)| {
                // Where no statement takes its values, something else does: a trigger, a function, a COPY.
                let counted = uses.get(&family).map_or(most, |uses| uses.saturating_mul(ROWS).saturating_add(SKIPPED));
                let last = known.get(&family).and_then(|known| known.made.keys().max()).copied().unwrap_or(0);
                (family, (sequence.after, last.max(sequence.after.saturating_add(counted))))
            })
            .collect();
        self.lowest = self.possible.values().map(|(after, _)| *after).min().unwrap_or(u64::MAX);
    }

    /// The numbers that were learned, by family.
    pub(crate) fn known(&self) -> HashMap<Family, Known> {
        let mut found: HashMap<Family, Known> = HashMap::new();
        for (key, made) in &self.made {
            if let Key::Number(family, number) = key {
                found.entry(*family).or_default().made.insert(*number, made.due_us);
            }
        }
        found
    }

    /// What the answer to a statement has.
    pub(crate) fn learned(&self, statement: Statement) -> &[Learned] {
        self.learned.get(&statement).map_or(&[], Vec::as_slice)
    }

    /// Whether keys are there for other sessions when this statement is answered.
    pub(crate) fn ends(&self, statement: Statement) -> bool {
        self.ending.contains(&statement)
    }

    /// Passes the values of a session's call that are keys of the capture, or may be, to `each`, in their order.
    pub(crate) fn needed(&self, call: &Call, session: usize, mut each: impl FnMut(Occurrence)) {
        // Where no database gives keys nothing was read.
        if self.texts.decisions.is_empty() {
            return;
        }
        let database = self.databases.get(session).copied().unwrap_or(0);
        let mut text = None;
        values_of(call, |place, slot, value, form| {
            let number = match value {
                // No other value happens to be a uuid.
                Value::Uuid(uuid) => {
                    if let Some(made) = self.made.get(&Key::Uuid(uuid)) {
                        each(Occurrence::Key(place, Key::Uuid(uuid), *made));
                    }
                    return;
                }
                Value::Number(number) => number,
            };
            if number <= self.lowest {
                return;
            }
            let text = *text.get_or_insert_with(|| self.texts.of(call, database));
            let at = self.texts.at(text, slot);
            let doubt = |why: &str| Occurrence::Doubtful(doubt(text, slot, why));
            match self.texts.decision(at.group) {
                Decision::Keys(families) if form == Form::Whole => {
                    let keys = families.iter().map(|family| Key::Number(*family, number));
                    let mut made = keys.filter_map(|key| Some((key, *self.made.get(&key)?)));
                    match (made.next(), made.next()) {
                        (Some((key, made)), None) => each(Occurrence::Key(place, key, made)),
                        (Some(_), Some(_)) => each(doubt("it may be a key of two sequences")),
                        // What the application gives a key itself is no key that the server gave.
                        (None, _) if at.gives => (),
                        (None, _) => {
                            let is_new = |family: &&Family| {
                                let is_given = self.given.contains(&(**family, number));
                                let (after, last) = self.possible.get(family).copied().unwrap_or((u64::MAX, 0));
                                after < number && number <= last && !is_given
                            };
                            if let Some(family) = families.iter().find(is_new) {
                                let label = &self.texts.columns.sequence(*family).label;
                                each(doubt(&format!("no statement is known to have made this key of {label}")));
                            }
                        }
                    }
                }
                Decision::Ambiguous(families) | Decision::Keys(families) if self.values.contains(&value) => {
                    let is_made = |family: &&Family| self.made.contains_key(&Key::Number(**family, number));
                    if let Some(family) = families.iter().find(is_made) {
                        let label = &self.texts.columns.sequence(*family).label;
                        let why = self.texts.why(at.group);
                        let named = self.texts.label(at.group).map(|column| format!("{column}: ")).unwrap_or_default();
                        each(doubt(&format!("{named}{why}, and its numbers may be keys of {label}")));
                    }
                }
                _ => (),
            }
        });
    }

    /// How many keys were learned.
    pub(crate) fn len(&self) -> usize {
        self.made.len()
    }
}

fn doubt(text: Option<&Text>, slot: Slot, why: &str) -> Doubt {
    let statement = text.map_or_else(|| OTHERS.to_owned(), |text| text.shape.clone());
    let place = match slot {
        Slot::Parameter(at) => format!("${}", at + 1),
        Slot::Literal(at) => format!("literal {}", at + 1),
    };
    Doubt { statement, place, why: why.to_owned() }
}
