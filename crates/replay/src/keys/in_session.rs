//! What the statements of each session made: new values behind them are their keys.

use std::collections::HashMap;

use pgdyno_capture::{Call, Ending};

use super::catalogue::Kind;
use super::decide::Decision;
use super::key::{Family, Form, Key, Value, values_of};
use super::links::Links;
use super::makers::{Makes, Wanted};
use super::uses::{At, Use, ended_us};

/// A key that a transaction of one statement made is looked for in so many statements of its session behind it.
const WINDOW: u32 = 20;

/// What is learned from all sessions.
pub(super) struct Learning {
    pub first: HashMap<Key, At>,
    /// How far beyond a sequence's last value its keys may be.
    pub most: u64,
    pub links: Links,
    /// Uses of each sequence, in any session.
    pub uses: HashMap<Family, Vec<Use>>,
    /// Of each database when statements were due that take values of a sequence which their texts do not name.
    pub others: HashMap<usize, Vec<i64>>,
    /// Of each sequence, by how much values that are new behind statements without a known key are below the last one.
    pub below: HashMap<Family, Vec<u64>>,
    pub from_us: i64,
}

impl Learning {
    pub(super) fn new(first: HashMap<Key, At>, most: u64, from_us: i64, links: Links) -> Self {
        let (uses, below, others) = (HashMap::new(), HashMap::new(), HashMap::new());
        Self { first, most, links, uses, others, below, from_us }
    }

    /// A value that is known from the answer of a statement: it is a key if it was new then, and is used later.
    fn known(&mut self, (maker, database): (Pending, usize), value: Value, at: At) {
        let is_later = |key: &Key| self.first.get(key).is_some_and(|first| *first > at);
        let key = match (value, maker.wanted.family) {
            (Value::Uuid(uuid), _) => Some(Key::Uuid(uuid)).filter(is_later),
            (Value::Number(number), Some(family)) => {
                if let Some(below) = self.links.texts.columns.sequence(family).after.checked_sub(number) {
                    if maker.is_asked {
                        self.below.entry(family).or_default().push(below);
                    }
                    return;
                }
                Some(Key::Number(family, number)).filter(is_later)
            }
            (Value::Number(number), None) => {
                // Nothing says which sequence a function takes, but a place says of which one the number is that is used there.
                let sequences = (0..).map(Family).zip(&self.links.texts.columns.sequences);
                let mut found = sequences
                    .filter(|(_, sequence)| sequence.database == database && sequence.after < number)
                    .map(|(family, _)| Key::Number(family, number))
                    .filter(is_later);
                let only = found.next();
                if only.is_some() && found.next().is_some() {
                    self.links.ties += 1;
                    return;
                }
                only
            }
        };
        if let Some(key) = key {
            self.link(at.session, maker, key);
        }
    }

    fn link(&mut self, session: usize, maker: Pending, key: Key) {
        if let Key::Number(family, number) = key {
            let uses = self.uses.get_mut(&family).into_iter().flatten();
            for one in uses.filter(|one| (one.at.session, one.at.call) == (session, maker.call)) {
                one.key = Some(number);
            }
        }
        self.links.link((session, maker.call), (maker.transaction, maker.due_us), maker.wanted, key);
    }
}

/// A key that a statement made and that is looked for.
#[derive(Clone)]
struct Pending {
    call: u32,
    due_us: i64,
    transaction: u32,
    /// The last statement that may need it; none while its transaction is open.
    until: Option<u32>,
    wanted: Wanted,
    /// By how much a new value behind it is below the sequence's last one, at least.
    below: Option<u64>,
    /// Whether it is in the part whose beginning the database is of.
    is_asked: bool,
}

/// What several statements may have made: keys of a sequence, by statements that name it or by functions; uuids of a column or of functions.
#[derive(Clone, PartialEq, Eq)]
struct Source {
    /// None of uuids.
    family: Option<Family>,
    /// The column of uuids.
    column: Option<String>,
    is_function: bool,
}

impl Source {
    /// Whether a statement may have made keys of it.
    fn is_of(&self, wanted: &Wanted) -> bool {
        let is_function = wanted.column.is_none() && wanted.family.is_none();
        if is_function != self.is_function {
            return false;
        }
        match self.family {
            Some(family) => wanted.kind == Kind::Number && wanted.family.is_none_or(|own| own == family),
            None => wanted.kind == Kind::Uuid && self.column.as_ref().is_none_or(|column| *column == wanted.source),
        }
    }
}

/// New keys of one source that several statements may have made.
struct Shared {
    source: Source,
    keys: Vec<Key>,
}

#[derive(Default)]
pub(super) struct InSession {
    session: usize,
    database: usize,
    pending: Vec<Pending>,
    shared: Vec<Shared>,
    /// Names with the number of keys pending at that time.
    savepoints: Vec<(String, usize)>,
    /// The present transaction, its last statement, when that was over, and how many it has.
    last: Option<(u32, u32, i64, u32)>,
}

impl InSession {
    pub(super) fn new(session: usize, database: usize) -> Self {
        Self { session, database, ..Self::default() }
    }

    pub(super) fn call(&mut self, learning: &mut Learning, number: u32, call: &Call) {
        let (transaction, ended_us) = (call.transaction, ended_us(call));
        self.transaction(learning, number, transaction, ended_us);
        let at = At { due_us: call.due_us, session: self.session, call: number };
        for key in self.new_keys(learning, call, at) {
            self.take(learning, key);
        }
        self.savepoint(&call.text);
        let failed = matches!(call.ending, Ending::Failed(_));
        let makes = learning.links.texts.of(call, self.database).map_or_else(Makes::default, |text| text.makes.clone());
        for family in makes.uses {
            let wanted = makes.wanted.iter().find(|wanted| !failed && wanted.family == Some(family));
            let returned = wanted.and_then(|wanted| wanted.column.clone());
            let made = Use { at, transaction, ended_us, key: None, returned };
            learning.uses.entry(family).or_default().push(made);
        }
        if makes.takes_unnamed {
            learning.others.entry(self.database).or_default().push(call.due_us);
        }
        if failed {
            return;
        }
        let is_asked = call.due_us >= learning.from_us;
        for wanted in makes.wanted {
            let answered = wanted.answered(&call.answer);
            let made =
                Pending { call: number, due_us: call.due_us, transaction, until: None, wanted, below: None, is_asked };
            match answered {
                Some(value) => learning.known((made, self.database), value, at),
                None => self.pending.push(made),
            }
        }
    }

    /// The keys of a call that no statement had before.
    fn new_keys(&self, learning: &Learning, call: &Call, at: At) -> Vec<Key> {
        let (texts, mut found) = (&learning.links.texts, Vec::new());
        let text = texts.of(call, self.database);
        let mut look = |key| {
            if learning.first.get(&key) == Some(&at) && !found.contains(&key) {
                found.push(key);
            }
        };
        values_of(call, |_, slot, value, form| match value {
            Value::Uuid(uuid) => look(Key::Uuid(uuid)),
            Value::Number(number) => {
                if let Decision::Keys(families) = texts.decision(texts.at(text, slot).group)
                    && form == Form::Whole
                {
                    families.iter().for_each(|family| look(Key::Number(*family, number)));
                }
            }
        });
        found
    }

    pub(super) fn end(&mut self, learning: &mut Learning) {
        self.settle(learning, |_| true);
        if let Some((transaction, last, ended_us, _)) = self.last {
            learning.links.ends_at(self.session, transaction, last, ended_us);
        }
    }

    /// Notes the transaction of a call; what an earlier one made is settled, or looked for in a few statements more.
    fn transaction(&mut self, learning: &mut Learning, number: u32, transaction: u32, ended_us: i64) {
        match &mut self.last {
            Some((same, last, end_us, count)) if *same == transaction => {
                (*last, *end_us, *count) = (number, ended_us, *count + 1);
            }
            _ => {
                if let Some((ended, last, end_us, count)) = self.last {
                    learning.links.ends_at(self.session, ended, last, end_us);
                    let until = if count == 1 { last.saturating_add(WINDOW) } else { last };
                    for one in self.pending.iter_mut().filter(|one| one.transaction == ended) {
                        one.until = Some(until);
                    }
                }
                self.savepoints.clear();
                self.last = Some((transaction, number, ended_us, 1));
            }
        }
        self.settle(learning, |one| one.until.is_some_and(|until| until < number));
    }

    /// A new key: it is what the only statement made that can have made it. Where there are several, it waits for others.
    fn take(&mut self, learning: &mut Learning, key: Key) {
        let Some(source) = self.source(learning, key) else { return self.note_below(learning, key) };
        let mut those = (0..self.pending.len()).filter(|at| source.is_of(&self.pending[*at].wanted));
        match (those.next(), those.next()) {
            (Some(only), None) => {
                let maker = self.pending.remove(only);
                learning.link(self.session, maker, key);
            }
            _ => match self.shared.iter_mut().find(|one| one.source == source) {
                Some(shared) => shared.keys.push(key),
                None => self.shared.push(Shared { source, keys: vec![key] }),
            },
        }
    }

    /// Which of the pending statements may have made a key: those that name its sequence, before functions.
    fn source(&self, learning: &Learning, key: Key) -> Option<Source> {
        let family = match key {
            Key::Number(family, number) => {
                let after = learning.links.texts.columns.sequence(family).after;
                if number <= after || number - after > learning.most {
                    return None;
                }
                Some(family)
            }
            Key::Uuid(_) => None,
        };
        let fits = |source: &Source| self.pending.iter().any(|one| source.is_of(&one.wanted));
        let columns = self.pending.iter().filter(|one| one.wanted.kind == Kind::Uuid && one.wanted.column.is_some());
        let column = columns.map(|one| one.wanted.source.clone()).next().filter(|_| family.is_none());
        let named = Source { family, column, is_function: false };
        let function = Source { family, column: None, is_function: true };
        [named, function].into_iter().find(fits)
    }

    /// A new value that no statement can have made: it may have been made already when the sequences were read.
    fn note_below(&mut self, learning: &Learning, key: Key) {
        let Key::Number(family, number) = key else { return };
        let after = learning.links.texts.columns.sequence(family).after;
        for one in self.pending.iter_mut().filter(|one| one.wanted.family == Some(family)) {
            if let Some(below) = after.checked_sub(number) {
                one.below = Some(one.below.map_or(below, |known| known.min(below)));
            }
        }
    }

    /// Drops what is `over`. Keys that several statements may have made are theirs in order, if there are as many.
    fn settle(&mut self, learning: &mut Learning, over: impl Fn(&Pending) -> bool) {
        if !self.pending.iter().any(&over) {
            return;
        }
        for mut shared in std::mem::take(&mut self.shared) {
            let is_one = |one: &Pending| shared.source.is_of(&one.wanted);
            if self.pending.iter().filter(|one| is_one(one)).count() != shared.keys.len() {
                learning.links.ties += shared.keys.len() as u64;
                continue;
            }
            let (makers, others): (Vec<_>, Vec<_>) =
                std::mem::take(&mut self.pending).into_iter().partition(|one| is_one(one));
            self.pending = others;
            if shared.source.family.is_some() {
                // A sequence gives them in this order; of uuids the first use decides.
                shared.keys.sort_unstable();
            }
            for (maker, key) in makers.into_iter().zip(shared.keys) {
                learning.link(self.session, maker, key);
            }
        }
        for one in self.pending.iter().filter(|one| one.is_asked && over(one)) {
            if let (Some(below), Some(family)) = (one.below, one.wanted.family) {
                learning.below.entry(family).or_default().push(below);
            }
        }
        self.pending.retain(|one| !over(one));
    }

    /// What was made since a savepoint that is rolled back to is never needed.
    fn savepoint(&mut self, text: &str) {
        let bare = |word: &str| word.trim_matches(|sign| matches!(sign, ';' | '"')).to_lowercase();
        let words: Vec<String> = text.split_ascii_whitespace().take(5).map(bare).collect();
        match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["savepoint", name, ..] => self.savepoints.push((name.to_owned(), self.pending.len())),
            ["rollback", "to", "savepoint", name, ..] | ["rollback", "to", name, ..] => {
                if let Some((_, length)) = self.savepoints.iter().rfind(|(known, _)| known == name) {
                    self.pending.truncate(*length);
                }
            }
            ["rollback" | "abort", ..] => self.pending.retain(|one| one.until.is_some()),
            _ => (),
        }
    }
}
