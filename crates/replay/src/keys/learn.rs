//! Finds in a capture which statement made which key: what the server answered is in no log, but what was sent afterwards is.

use std::collections::HashMap;

use pgdyno_capture::{Call, Ending};

use super::fit::{Beside, fit};
use super::key::{Key, keys_of};
use super::links::Links;
use super::makers::{Cache, Kind, Makers, Wanted};
use super::sequence::link_by_order;
use super::uses::{At, Use, ended_us};

/// A key that a transaction of one statement made is looked for in so many statements of its session behind it.
const WINDOW: u32 = 20;
/// A sequence is used at most so much more often than the capture has statements: by COPY, by functions.
const USES_PER_CALL: u64 = 16;
const USES_BESIDE: u64 = 1_000_000;

/// Learns the keys of the chosen sessions. `read` passes the calls of a session in their order; each is read three times.
/// The database is that of `from_us`.
pub(crate) fn learn<E>(
    mut read: impl FnMut(usize, &mut dyn FnMut(&Call)) -> Result<(), E>,
    chosen: &[usize],
    makers: &Makers,
    calls: u64,
    from_us: i64,
) -> Result<Links, E> {
    let most = calls.saturating_mul(USES_PER_CALL).saturating_add(USES_BESIDE);
    // Values that sequences gave lately are looked for too: a database that is newer than the capture has its keys.
    let lowest = makers.lowest.saturating_sub(calls);
    let mut first = HashMap::new();
    for &session in chosen {
        let mut number = 0;
        read(session, &mut |call| {
            note_firsts(&mut first, At { due_us: call.due_us, session, call: number }, call, lowest);
            number += 1;
        })?;
    }
    let mut learning = Learning::new(makers, first, most, from_us);
    for &session in chosen {
        let mut one = InSession { session, ..InSession::default() };
        let mut number = 0;
        read(session, &mut |call| {
            one.call(&mut learning, number, call);
            number += 1;
        })?;
        one.end(&mut learning);
    }
    let Learning { first, mut links, uses, others, below, .. } = learning;
    for (source, uses) in uses {
        let Cache { cached, in_order } = makers.cache(&source);
        let below = below.get(&source).map_or(&[][..], Vec::as_slice);
        links.fits.extend(fit(&source, &uses, &Beside { others: &others, from_us, cached, below }));
        if in_order {
            link_by_order(&source, uses, &first, &mut links);
        }
    }
    drop(first);
    links.fits.sort_by(|one, other| one.column.cmp(&other.column));
    links.settle(makers);
    for &session in chosen {
        read(session, &mut |call| links.see(call, most))?;
    }
    links.choose_places();
    Ok(links)
}

/// Notes where the values of a call that may be keys occur first.
fn note_firsts(first: &mut HashMap<Key, At>, at: At, call: &Call, lowest: u64) {
    keys_of(call, |_, key| {
        if !matches!(key, Key::Number(number) if number <= lowest) {
            first.entry(key).and_modify(|known| *known = (*known).min(at)).or_insert(at);
        }
    });
}

struct Learning<'a> {
    makers: &'a Makers,
    first: HashMap<Key, At>,
    /// How far beyond a sequence's last value its keys may be.
    most: u64,
    links: Links,
    /// Uses of each sequence's column, in any session.
    uses: HashMap<String, Vec<Use>>,
    /// When statements were due that take values of a sequence which their texts do not name.
    others: Vec<i64>,
    /// Of each column, by how much values that are new behind statements without a known key are below the last one.
    below: HashMap<String, Vec<u64>>,
    from_us: i64,
}

/// A key that a statement made and that is looked for.
struct Pending {
    call: u32,
    transaction: u32,
    /// The last statement that may need it; none while its transaction is open.
    until: Option<u32>,
    wanted: Wanted,
    /// By how much a new value behind it is below the sequence's last one, at least.
    below: Option<u64>,
    /// Whether it is in the part whose beginning the database is of.
    is_asked: bool,
}

/// New keys of one source that several statements may have made.
struct Shared {
    wanted: Wanted,
    keys: Vec<Key>,
}

#[derive(Default)]
struct InSession {
    session: usize,
    pending: Vec<Pending>,
    shared: Vec<Shared>,
    /// Names with the number of keys pending at that time.
    savepoints: Vec<(String, usize)>,
    /// The present transaction, its last statement, and how many it has.
    last: Option<(u32, u32, u32)>,
}

impl InSession {
    fn call(&mut self, learning: &mut Learning, number: u32, call: &Call) {
        self.transaction(learning, number, call.transaction);
        let at = At { due_us: call.due_us, session: self.session, call: number };
        keys_of(call, |_, key| {
            if learning.first.get(&key) == Some(&at) {
                self.take(learning, key);
            }
        });
        self.savepoint(&call.text);
        let (transaction, ended_us) = (call.transaction, ended_us(call));
        let failed = matches!(call.ending, Ending::Failed(_));
        let wanted = learning.makers.wanted(&call.text);
        for one in learning.makers.uses(&call.text) {
            let returned = !failed && wanted.contains(&one);
            let made = Use { at, transaction, ended_us, key: None, after: one.after, returned };
            learning.uses.entry(one.source).or_default().push(made);
        }
        if learning.makers.takes_unnamed(&call.text) {
            learning.others.push(call.due_us);
        }
        if !failed {
            let is_asked = call.due_us >= learning.from_us;
            for wanted in wanted {
                let answered = wanted.answered(&call.answer);
                let made = Pending { call: number, transaction, until: None, wanted, below: None, is_asked };
                match answered {
                    Some(key) => learning.known(made, key, at),
                    None => self.pending.push(made),
                }
            }
        }
    }

    fn end(&mut self, learning: &mut Learning) {
        self.settle(learning, |_| true);
        if let Some((transaction, last, _)) = self.last {
            learning.links.ends_at(self.session, transaction, last);
        }
    }

    /// Notes the transaction of a call; what an earlier one made is settled, or looked for in a few statements more.
    fn transaction(&mut self, learning: &mut Learning, number: u32, transaction: u32) {
        match &mut self.last {
            Some((same, last, count)) if *same == transaction => (*last, *count) = (number, *count + 1),
            _ => {
                if let Some((ended, last, count)) = self.last {
                    learning.links.ends_at(self.session, ended, last);
                    let until = if count == 1 { last.saturating_add(WINDOW) } else { last };
                    for one in self.pending.iter_mut().filter(|one| one.transaction == ended) {
                        one.until = Some(until);
                    }
                }
                self.savepoints.clear();
                self.last = Some((transaction, number, 1));
            }
        }
        self.settle(learning, |one| one.until.is_some_and(|until| until < number));
    }

    /// A new key: it is what the only statement made that can have made it. Where there are several, it waits for others.
    fn take(&mut self, learning: &mut Learning, key: Key) {
        let fits = |one: &Wanted| match (key, one.kind) {
            (Key::Number(number), Kind::Number) => one.after < number && number - one.after <= learning.most,
            (Key::Uuid(_), Kind::Uuid) => true,
            _ => false,
        };
        // Of several sequences the one whose last value is nearest below it.
        let fitting = self.pending.iter().map(|one| &one.wanted).filter(|one| fits(one));
        let Some(nearest) = fitting.max_by_key(|one| one.after).cloned() else { return self.note_below(key) };
        let mut those = (0..self.pending.len()).filter(|at| self.pending[*at].wanted.is_like(&nearest));
        match (those.next(), those.next()) {
            (Some(only), None) => {
                let maker = self.pending.remove(only);
                learning.link(self.session, maker, key);
            }
            _ => match self.shared.iter_mut().find(|one| nearest.is_like(&one.wanted)) {
                Some(shared) => shared.keys.push(key),
                None => self.shared.push(Shared { wanted: nearest, keys: vec![key] }),
            },
        }
    }

    /// A new value that no statement can have made: it may have been made already when the sequences were read.
    fn note_below(&mut self, key: Key) {
        let Key::Number(number) = key else { return };
        for one in self.pending.iter_mut().filter(|one| one.wanted.kind == Kind::Number) {
            if let Some(below) = one.wanted.after.checked_sub(number) {
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
            let is_one = |one: &Pending| one.wanted.is_like(&shared.wanted);
            if self.pending.iter().filter(|one| is_one(one)).count() != shared.keys.len() {
                learning.links.ties += shared.keys.len() as u64;
                continue;
            }
            let (makers, others): (Vec<_>, Vec<_>) =
                std::mem::take(&mut self.pending).into_iter().partition(|one| is_one(one));
            self.pending = others;
            if shared.wanted.kind == Kind::Number {
                // A sequence gives them in this order; of uuids the first use decides.
                shared.keys.sort_unstable();
            }
            for (maker, key) in makers.into_iter().zip(shared.keys) {
                learning.link(self.session, maker, key);
            }
        }
        for one in self.pending.iter().filter(|one| one.is_asked && over(one)) {
            if let Some(below) = one.below {
                learning.below.entry(one.wanted.source.clone()).or_default().push(below);
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

impl<'a> Learning<'a> {
    fn new(makers: &'a Makers, first: HashMap<Key, At>, most: u64, from_us: i64) -> Self {
        let (uses, below) = (HashMap::new(), HashMap::new());
        Self { makers, first, most, links: Links::default(), uses, others: Vec::new(), below, from_us }
    }

    /// A key that is known from the answer of a statement: it is linked if it was new then, and is used later.
    fn known(&mut self, maker: Pending, key: Key, at: At) {
        if let Key::Number(number) = key
            && let Some(below) = maker.wanted.after.checked_sub(number)
        {
            if maker.is_asked {
                self.below.entry(maker.wanted.source).or_default().push(below);
            }
            return;
        }
        if self.first.get(&key).is_some_and(|first| *first > at) {
            self.link(at.session, maker, key);
        }
    }

    fn link(&mut self, session: usize, maker: Pending, key: Key) {
        let uses = self.uses.get_mut(&maker.wanted.source).into_iter().flatten();
        for one in uses.filter(|one| (one.at.session, one.at.call) == (session, maker.call)) {
            one.key = Some(key);
        }
        self.links.link((session, maker.call), maker.transaction, maker.wanted, key);
    }
}

#[cfg(test)]
mod tests {
    use pgdyno_capture::Protocol;

    use super::*;

    fn makers() -> Makers {
        let catalogue = serde_json::json!({
            "columns": [
                {"table": "orders", "column": "id", "kind": "number", "after": 100},
                {"table": "orders", "column": "ref", "kind": "uuid"},
            ],
            "sequences": [{"name": "orders_id_seq", "after": 100}],
            "functions": [],
        });
        Makers::new(serde_json::from_value(catalogue).unwrap())
    }

    /// Calls of a session: when they are due, in which transaction, their text.
    fn session(calls: &[(i64, u32, &str)]) -> Vec<Call> {
        let call = |(due_us, transaction, text): &(i64, u32, &str)| Call {
            due_us: *due_us,
            protocol: Protocol::Text,
            name: String::new(),
            text: (*text).to_owned(),
            values: Vec::new(),
            transaction: *transaction,
            ending: Ending::Done(1),
            without_values: false,
            cut: false,
            rows: None,
            answer: Vec::new(),
        };
        calls.iter().map(call).collect()
    }

    fn learned(sessions: &[Vec<Call>]) -> Links {
        let read = |session: usize, each: &mut dyn FnMut(&Call)| {
            sessions[session].iter().for_each(each);
            Ok::<_, ()>(())
        };
        let chosen: Vec<usize> = (0..sessions.len()).collect();
        learn(read, &chosen, &makers(), 100, 0).unwrap()
    }

    fn keys(links: &Links, statement: (usize, u32)) -> Vec<Key> {
        links.learned(statement).iter().map(|one| one.key).collect()
    }

    const INSERT: &str = "INSERT INTO orders VALUES ('a') RETURNING id";
    const UUID: &str = "0af7651c-1234-4321-8b6d-a1b2c3d4e5f6";

    #[test]
    fn times_that_cannot_be_are_no_trouble() {
        let mut calls = session(&[(i64::MAX, 1, INSERT), (i64::MIN, 1, "SELECT 101"), (i64::MAX, 2, INSERT)]);
        calls.iter_mut().for_each(|call| call.ending = Ending::Done(u64::MAX));
        learned(&[calls]);
    }

    #[test]
    fn what_is_new_behind_an_insert_is_what_it_made() {
        let used = format!("UPDATE t SET a = 3 WHERE r = '{UUID}' AND id = 101");
        let both = "INSERT INTO orders VALUES (7) RETURNING id, ref";
        let links = learned(&[session(&[(10, 1, "BEGIN"), (20, 1, both), (30, 1, &used), (40, 1, "COMMIT")])]);
        let mut found = keys(&links, (0, 1));
        found.sort_unstable();
        assert_eq!(found, [Key::Number(101), Key::of(UUID).unwrap()]);
        assert!(links.ends((0, 3)) && !links.ends((0, 1)));
        let mut needed = Vec::new();
        links.needed(&session(&[(0, 1, &used)])[0], |_, key, made| needed.push((key, made.last)));
        assert_eq!(needed.iter().map(|one| one.1).collect::<Vec<_>>(), [3, 3]);
    }

    #[test]
    fn an_answer_that_was_recorded_says_what_other_sessions_need() {
        let mut sessions = [
            session(&[(10, 1, "BEGIN"), (20, 1, INSERT), (30, 1, "COMMIT")]),
            session(&[(40, 1, "UPDATE t SET a = 1 WHERE id = 109")]),
        ];
        assert!(keys(&learned(&sessions), (0, 1)).is_empty(), "a log does not say it");
        sessions[0][1].answer = vec![("id".to_owned(), "109".to_owned())];
        let links = learned(&sessions);
        assert_eq!(keys(&links, (0, 1)), [Key::Number(109)]);
        assert_eq!(links.fits.iter().map(|one| one.missing).collect::<Vec<_>>(), [8]);
        sessions[0][1].answer = vec![("id".to_owned(), "99".to_owned())];
        assert!(keys(&learned(&sessions), (0, 1)).is_empty(), "the sequence is beyond it");
    }

    #[test]
    fn what_an_older_database_lacks_is_counted() {
        let links = learned(&[session(&[(10, 1, INSERT), (20, 2, "UPDATE t SET a = 1 WHERE id = 161")])]);
        assert_eq!(links.fits.iter().map(|one| (one.missing, one.given)).collect::<Vec<_>>(), [(60, 1)]);
        let links = learned(&[session(&[(10, 1, INSERT), (20, 2, "UPDATE t SET a = 1 WHERE id = 101")])]);
        assert_eq!(links.fits.iter().map(|one| (one.missing, one.given)).collect::<Vec<_>>(), [(0, 1)]);
    }

    #[test]
    fn keys_that_a_newer_database_has_already_are_counted() {
        let used = "UPDATE t SET a = 1 WHERE id = 99";
        let links = learned(&[session(&[(10, 1, INSERT), (20, 2, used), (30, 3, INSERT)])]);
        assert_eq!(links.fits.iter().map(|one| (one.already, one.returned)).collect::<Vec<_>>(), [(1, 2)]);
    }

    #[test]
    fn a_value_that_was_there_before_is_no_key() {
        let before = session(&[(5, 1, "SELECT 101")]);
        let links = learned(&[before, session(&[(10, 1, INSERT), (20, 2, "UPDATE t SET a = 1 WHERE id = 101")])]);
        assert_eq!(links.len(), 0);
    }

    #[test]
    fn statements_outside_a_transaction_are_looked_at_for_a_while() {
        let used = |id: u32| format!("UPDATE t SET a = 1 WHERE id = {id}");
        let links = learned(&[session(&[(1, 1, INSERT), (2, 2, &used(101)), (3, 3, INSERT), (4, 4, &used(102))])]);
        assert_eq!((keys(&links, (0, 0)), keys(&links, (0, 2))), (vec![Key::Number(101)], vec![Key::Number(102)]));
    }

    #[test]
    fn of_several_that_were_made_the_order_decides_or_nothing() {
        let begin = [(1, 1, "BEGIN"), (2, 1, INSERT), (3, 1, INSERT)];
        let used =
            |text: &'static str| learned(&[session(&[&begin[..], &[(4, 1, text), (5, 2, "SELECT 1")]].concat())]);
        let links = used("SELECT 102, 101");
        assert_eq!((keys(&links, (0, 1)), keys(&links, (0, 2))), (vec![Key::Number(101)], vec![Key::Number(102)]));
        // One of the two: both uses of the sequence are known by their order, and the session's own rule leaves it alone.
        let links = used("SELECT 102");
        assert_eq!(links.ties, 1);
    }

    #[test]
    fn what_was_rolled_back_to_a_savepoint_made_nothing() {
        let links = learned(&[session(&[
            (1, 1, "BEGIN"),
            (2, 1, "SAVEPOINT a"),
            (3, 1, INSERT),
            (4, 1, "ROLLBACK TO SAVEPOINT a"),
            (5, 1, INSERT),
            (6, 1, "UPDATE t SET a = 1 WHERE id = 102"),
            (7, 1, "COMMIT"),
        ])]);
        assert_eq!((keys(&links, (0, 2)), keys(&links, (0, 4))), (vec![], vec![Key::Number(102)]));
    }

    #[test]
    fn keys_that_only_other_sessions_use_are_known_by_the_order_of_the_sequence() {
        let maker = session(&[(10, 1, INSERT), (20, 2, INSERT), (30, 3, INSERT)]);
        let others =
            session(&[(15, 1, "UPDATE t SET a = 1 WHERE id = 101"), (35, 2, "UPDATE t SET a = 1 WHERE id = 103")]);
        let links = learned(&[maker.clone(), others]);
        assert_eq!((keys(&links, (0, 0)), keys(&links, (0, 2))), (vec![Key::Number(101)], vec![Key::Number(103)]));
        // A key that is used before its maker was due is another's.
        let early = session(&[(5, 1, "UPDATE t SET a = 1 WHERE id = 101")]);
        assert_eq!(learned(&[maker, early]).len(), 0);
    }
}
