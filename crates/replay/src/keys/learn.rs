//! Finds in a capture which statement made which key: what the server answered is in no log, but what was sent afterwards is.

use std::collections::HashMap;

use pgdyno_capture::{Account, Call};

use super::catalogue::Catalogue;
use super::decide::{Decision, Known, Seen};
use super::fit::{Beside, fit};
use super::in_session::{InSession, Learning};
use super::key::{Family, Form, Key, Value, values_of};
use super::links::Links;
use super::parse;
use super::sequence::link_by_order;
use super::texts::Texts;
use super::uses::At;

/// A sequence is used at most so much more often than the capture has statements: by COPY, by functions.
const USES_PER_CALL: u64 = 16;
const USES_BESIDE: u64 = 1_000_000;

/// What is learned from: the chosen sessions of a capture.
pub(crate) struct Asked<'a> {
    pub chosen: &'a [usize],
    /// Of every session the name of its database.
    pub databases: Vec<String>,
    /// Calls of the capture.
    pub calls: u64,
    /// The database is that of this time.
    pub from_us: i64,
    /// How much later than it says a statement may have been sent.
    pub uncertain_us: i64,
}

/// How exact the times of a capture are. A log has them of a statement's end, in milliseconds or, with `%t`, in seconds, less its duration;
/// a process may also wait for a CPU in between.
pub(crate) fn uncertain_us(account: &Account) -> i64 {
    let in_seconds = |(_, format): &(String, String)| format.contains("%t");
    if account.files.iter().any(in_seconds) { 2_000_000 } else { 20_000 }
}

/// Learns the keys of the chosen sessions. `read` passes the calls of a session in their order; each is read three times, and twice more where values contradict names of columns.
pub(crate) fn learn<E: Send + From<std::io::Error>>(
    mut read: impl FnMut(usize, &mut dyn FnMut(&Call)) -> Result<(), E> + Send,
    asked: &Asked,
    catalogue: Catalogue,
) -> Result<Links, E> {
    let mut texts = Texts::new(catalogue);
    if texts.make_none() {
        return Ok(Links::default());
    }
    let databases: Vec<usize> = asked.databases.iter().map(|name| texts.database(name)).collect();
    parse::on_deep_stack(|| {
        for &session in asked.chosen {
            read(session, &mut |call| texts.read(call, databases[session]))?;
        }
        Ok::<(), E>(())
    })??;
    texts.columns.join_by_name();
    loop {
        texts.settle();
        let (links, seen) = learn_once(&mut read, asked, texts, &databases)?;
        let mut links = links;
        let known = links.known();
        if !contradicted(&mut links.texts, &seen, &known) {
            decide(&mut links, &seen, &known);
            return Ok(links);
        }
        texts = links.texts;
    }
}

/// Forgets the names of columns whose values contradict them: more of them are no keys than are. Whether there was one.
fn contradicted(texts: &mut Texts, seen: &Seen, known: &HashMap<Family, Known>) -> bool {
    let mut found = false;
    for group in seen.groups() {
        let (Decision::Keys(families), Some(column)) = (texts.decision(group).clone(), texts.class(group)) else {
            continue;
        };
        let none = Known::default();
        let is_wrong = families.iter().all(|family| {
            let after = texts.columns.sequence(*family).after;
            let (keys, others) = seen.against(group, known.get(family).unwrap_or(&none), after);
            others > keys
        });
        if is_wrong && texts.columns.is_by_name(column) {
            texts.columns.forget_name(column);
            found = true;
        }
    }
    found
}

/// Decides the places of which their statements do not say what they are.
fn decide(links: &mut Links, seen: &Seen, known: &HashMap<Family, Known>) {
    for group in 0..links.texts.decisions.len() {
        if *links.texts.decision(group) != Decision::Undecided {
            continue;
        }
        let mut families: Vec<(Family, &Known)> = known
            .iter()
            .filter(|(family, _)| {
                links.texts.database_of(group).is_none_or(|own| links.texts.shares_database(**family, own))
            })
            .map(|(family, known)| (*family, known))
            .collect();
        families.sort_unstable_by_key(|(family, _)| *family);
        links.texts.decisions[group] = seen.decide(group, &families);
    }
}

/// Learns the keys, as far as places are decided. What stands at the others is seen.
fn learn_once<E>(
    read: &mut impl FnMut(usize, &mut dyn FnMut(&Call)) -> Result<(), E>,
    asked: &Asked,
    texts: Texts,
    databases: &[usize],
) -> Result<(Links, Seen), E> {
    let most = asked.calls.saturating_mul(USES_PER_CALL).saturating_add(USES_BESIDE);
    let mut links = Links::of(texts, databases.to_vec());
    let (mut first, mut seen) = (HashMap::new(), Seen::within(asked.uncertain_us));
    for &session in asked.chosen {
        let mut number = 0;
        read(session, &mut |call| {
            let at = At { due_us: call.due_us, session, call: number };
            note_firsts((&mut first, &mut seen, &mut links), at, call, asked.calls);
            number += 1;
        })?;
    }
    let mut learning = Learning::new(first, most, asked.from_us, links);
    for &session in asked.chosen {
        let mut one = InSession::new(session, databases[session]);
        let mut number = 0;
        read(session, &mut |call| {
            one.call(&mut learning, number, call);
            number += 1;
        })?;
        one.end(&mut learning);
    }
    let Learning { first, mut links, mut uses, others, below, .. } = learning;
    let counts = uses.iter().map(|(family, uses)| (*family, uses.len() as u64)).collect();
    let sequences = std::mem::take(&mut links.texts.columns.sequences);
    for (family, sequence) in (0..).map(Family).zip(&sequences) {
        let Some(uses) = uses.remove(&family) else { continue };
        let beside = Beside {
            after: sequence.after,
            others: others.get(&sequence.database).map_or(&[][..], Vec::as_slice),
            from_us: asked.from_us,
            cached: sequence.cached,
            below: below.get(&family).map_or(&[][..], Vec::as_slice),
        };
        links.fits.extend(fit(&sequence.label, &uses, &beside));
        if sequence.in_order {
            link_by_order((family, sequence), uses, &first, &mut links);
        }
    }
    links.texts.columns.sequences = sequences;
    links.fits.sort_by(|one, other| one.column.cmp(&other.column));
    links.settle(asked.uncertain_us, &counts, most);
    Ok((links, seen))
}

/// Notes where the values of a call that may be keys occur first, and those of places that are not decided.
fn note_firsts((first, seen, links): (&mut HashMap<Key, At>, &mut Seen, &mut Links), at: At, call: &Call, calls: u64) {
    let database = links.databases[at.session];
    let text = links.texts.of(call, database);
    let given = &mut links.given;
    let mut note = |key| {
        first.entry(key).and_modify(|known: &mut At| *known = (*known).min(at)).or_insert(at);
    };
    values_of(call, |_, slot, value, form| {
        let number = match value {
            Value::Uuid(uuid) => return note(Key::Uuid(uuid)),
            Value::Number(number) => number,
        };
        let place = links.texts.at(text, slot);
        match links.texts.decision(place.group) {
            Decision::Plain => seen.note_other(number),
            Decision::Keys(families) if form == Form::Whole => {
                for family in families {
                    // Values that sequences gave lately are looked for too: a database that is newer than the capture has its keys.
                    if number > links.texts.columns.sequence(*family).after.saturating_sub(calls) {
                        note(Key::Number(*family, number));
                    }
                    if place.gives {
                        given.insert((*family, number));
                    }
                }
                if links.texts.class(place.group).is_some_and(|column| links.texts.columns.is_by_name(column)) {
                    seen.note(place.group, number, at.due_us);
                }
            }
            _ => {
                if form == Form::Within {
                    seen.within.insert(place.group);
                }
                seen.note(place.group, number, at.due_us);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use pgdyno_capture::{Ending, Protocol};
    use serde_json::json;

    use super::super::links::Occurrence;
    use super::*;

    fn catalogue() -> Catalogue {
        let table = |name: &str, columns: &[(&str, &str)]| json!({"schema": "", "name": name, "columns": columns});
        let column = |table: &str, sequence: &str| json!({"table": table, "column": "id", "kind": "number", "sequence": sequence});
        let catalogue = json!({"databases": [{
            "tables": [
                table("orders", &[("id", "number"), ("ref", "uuid"), ("note", "text")]),
                table("customers", &[("id", "number"), ("name", "text")]),
                table("t", &[("id", "number"), ("a", "number"), ("r", "uuid")]),
                table("stock", &[("id", "number"), ("n", "number")]),
            ],
            "columns": [
                column("orders", "o"), {"table": "orders", "column": "ref", "kind": "uuid"}, column("customers", "c"),
            ],
            "sequences": [{"qualified": "o", "name": "o", "after": 100}, {"qualified": "c", "name": "c", "after": 5000}],
            "same": [[["", "t", "id"], ["", "orders", "id"], true]],
            "functions": ["place"],
        }]});
        serde_json::from_value(catalogue).unwrap()
    }

    const ORDERS: Family = Family(0);

    fn number(number: u64) -> Key {
        Key::Number(ORDERS, number)
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
        learned_within(0, sessions)
    }

    /// From times that are exact to this.
    fn learned_within(uncertain_us: i64, sessions: &[Vec<Call>]) -> Links {
        let read = |session: usize, each: &mut dyn FnMut(&Call)| {
            sessions[session].iter().for_each(each);
            Ok::<_, std::io::Error>(())
        };
        let chosen: Vec<usize> = (0..sessions.len()).collect();
        let databases = vec![String::new(); sessions.len()];
        learn(read, &Asked { chosen: &chosen, databases, calls: 100, from_us: 0, uncertain_us }, catalogue()).unwrap()
    }

    fn uuid(text: &str) -> Key {
        let Some(Value::Uuid(uuid)) = Value::of(text) else { panic!("{text}") };
        Key::Uuid(uuid)
    }

    /// What a session's call has: keys that are exchanged, and places that are doubtful.
    fn occurring(links: &Links, text: &str) -> (Vec<Key>, Vec<String>) {
        let (mut keys, mut doubts) = (Vec::new(), Vec::new());
        links.needed(&session(&[(1_000, 9, text)])[0], 0, |occurrence| match occurrence {
            Occurrence::Key(_, key, _) => keys.push(key),
            Occurrence::Doubtful(doubt) => {
                doubts.push(format!("{} of {}: {}", doubt.place, doubt.statement, doubt.why))
            }
        });
        (keys, doubts)
    }

    fn keys(links: &Links, statement: (usize, u32)) -> Vec<Key> {
        links.learned(statement).iter().map(|one| one.key).collect()
    }

    const INSERT: &str = "INSERT INTO orders (note) VALUES ('a') RETURNING id";
    const UUID: &str = "0af7651c-1234-4321-8b6d-a1b2c3d4e5f6";

    #[test]
    fn times_that_cannot_be_are_no_trouble() {
        let mut calls = session(&[
            (i64::MAX, 1, INSERT),
            (i64::MIN, 1, "SELECT FROM orders WHERE id = 101"),
            (i64::MAX, 2, INSERT),
        ]);
        calls.iter_mut().for_each(|call| call.ending = Ending::Done(u64::MAX));
        learned(&[calls]);
    }

    #[test]
    fn what_is_new_behind_an_insert_is_what_it_made() {
        let used = format!("UPDATE t SET a = 3 WHERE r = '{UUID}' AND id = 101");
        let both = "INSERT INTO orders (note) VALUES (7) RETURNING id, ref";
        let links = learned(&[session(&[(10, 1, "BEGIN"), (20, 1, both), (30, 1, &used), (40, 1, "COMMIT")])]);
        let mut found = keys(&links, (0, 1));
        found.sort_unstable();
        assert_eq!(found, [number(101), uuid(UUID)]);
        assert!(links.ends((0, 3)) && links.ends((0, 1)) && !links.ends((0, 2)));
        let mut needed = Vec::new();
        links.needed(&session(&[(0, 1, &used)])[0], 0, |occurrence| match occurrence {
            Occurrence::Key(_, _, made) => needed.push(made.last),
            Occurrence::Doubtful(doubt) => panic!("{doubt:?}"),
        });
        assert_eq!(needed, [3, 3]);
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
        assert_eq!(keys(&links, (0, 1)), [number(109)]);
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
        let before = session(&[(5, 1, "SELECT FROM orders WHERE id = 101")]);
        let links = learned(&[before, session(&[(10, 1, INSERT), (20, 2, "UPDATE t SET a = 1 WHERE id = 101")])]);
        assert_eq!(links.len(), 0);
    }

    #[test]
    fn statements_outside_a_transaction_are_looked_at_for_a_while() {
        let used = |id: u32| format!("UPDATE t SET a = 1 WHERE id = {id}");
        let links = learned(&[session(&[(1, 1, INSERT), (2, 2, &used(101)), (3, 3, INSERT), (4, 4, &used(102))])]);
        assert_eq!((keys(&links, (0, 0)), keys(&links, (0, 2))), (vec![number(101)], vec![number(102)]));
    }

    #[test]
    fn of_several_that_were_made_the_order_decides_or_nothing() {
        let begin = [(1, 1, "BEGIN"), (2, 1, INSERT), (3, 1, INSERT)];
        let used =
            |text: &'static str| learned(&[session(&[&begin[..], &[(4, 1, text), (5, 2, "SELECT 1")]].concat())]);
        let links = used("SELECT FROM t WHERE id IN (102, 101)");
        assert_eq!((keys(&links, (0, 1)), keys(&links, (0, 2))), (vec![number(101)], vec![number(102)]));
        // One of the two: both uses of the sequence are known by their order, and the session's own rule leaves it alone.
        let links = used("SELECT FROM t WHERE id = 102");
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
        assert_eq!((keys(&links, (0, 2)), keys(&links, (0, 4))), (vec![], vec![number(102)]));
    }

    #[test]
    fn keys_that_only_other_sessions_use_are_known_by_the_order_of_the_sequence() {
        let maker = session(&[(10, 1, INSERT), (20, 2, INSERT), (30, 3, INSERT)]);
        let others =
            session(&[(15, 1, "UPDATE t SET a = 1 WHERE id = 101"), (35, 2, "UPDATE t SET a = 1 WHERE id = 103")]);
        let links = learned(&[maker.clone(), others]);
        assert_eq!((keys(&links, (0, 0)), keys(&links, (0, 2))), (vec![number(101)], vec![number(103)]));
        // A key that is used before its maker was due is another's.
        let early = session(&[(5, 1, "UPDATE t SET a = 1 WHERE id = 101")]);
        assert_eq!(learned(&[maker, early]).len(), 0);
    }

    #[test]
    fn a_database_that_gives_no_keys_needs_none() {
        let links = Links::default();
        assert_eq!(occurring(&links, "UPDATE t SET a = 101 WHERE id = 7"), (vec![], vec![]));
    }

    #[test]
    fn numbers_at_other_places_do_not_matter() {
        // 101 and 102 are quantities before they are keys.
        let quantities =
            session(&[(1, 1, "UPDATE stock SET n = n - 101"), (2, 2, "INSERT INTO stock VALUES (1, 102)")]);
        let links = learned(&[
            quantities,
            session(&[
                (10, 1, INSERT),
                (20, 2, "UPDATE t SET a = 5 WHERE id = 101"),
                (30, 3, INSERT),
                (40, 4, "UPDATE t SET a = 6 WHERE id = 102"),
            ]),
        ]);
        assert_eq!(
            (keys(&links, (0, 0)), keys(&links, (1, 0)), keys(&links, (1, 2))),
            (vec![], vec![number(101)], vec![number(102)])
        );
        assert_eq!(occurring(&links, "UPDATE stock SET n = n - 101"), (vec![], vec![]));
        assert_eq!(occurring(&links, "UPDATE t SET a = 101 WHERE id = 101").0, [number(101)]);
        // It is calculated with, so it is never a key.
        assert_eq!(occurring(&links, "INSERT INTO stock VALUES (101, 102)").1.len(), 0);
    }

    #[test]
    fn the_same_number_of_two_sequences_is_two_keys() {
        let customer = "INSERT INTO customers (name) VALUES ('b') RETURNING id";
        let links = learned(&[session(&[
            (10, 1, INSERT),
            (11, 2, customer),
            (20, 3, "UPDATE t SET a = 1 WHERE id = 5001"),
            (30, 4, "UPDATE customers SET name = 'c' WHERE id = 5001"),
        ])]);
        assert_eq!(keys(&links, (0, 0)), [number(5001)]);
        assert_eq!(keys(&links, (0, 1)), [Key::Number(Family(1), 5001)]);
        let customer = "UPDATE customers SET name = 'c' WHERE id = 5001";
        assert_eq!(occurring(&links, customer).0, [Key::Number(Family(1), 5001)]);
        assert_eq!(occurring(&links, "UPDATE t SET a = 1 WHERE id = 5001").0, [number(5001)]);
    }

    #[test]
    fn a_place_that_nothing_proves_is_named_and_its_value_stays() {
        let links = learned(&[session(&[
            (10, 1, INSERT),
            (20, 2, "UPDATE t SET a = 1 WHERE id = 101"),
            (30, 3, "SELECT place(101)"),
            (40, 4, "SELECT place(3)"),
        ])]);
        let (found, doubts) = occurring(&links, "SELECT place(101)");
        assert_eq!((found, doubts.len()), (vec![], 1), "{doubts:?}");
        assert!(doubts[0].starts_with("literal 1 of SELECT place(?)"), "{doubts:?}");
        assert_eq!(occurring(&links, "SELECT place(3)"), (vec![], vec![]));
    }

    #[test]
    fn a_key_that_no_statement_is_known_to_have_made_is_named() {
        let links = learned(&[session(&[(10, 1, INSERT), (20, 2, "UPDATE t SET a = 1 WHERE id = 101")])]);
        assert_eq!(occurring(&links, "UPDATE t SET a = 1 WHERE id = 103").1.len(), 1);
        for other in ["UPDATE t SET a = 1 WHERE id = 99", "UPDATE t SET a = 1 WHERE id = 99999"] {
            assert_eq!(occurring(&links, other), (vec![], vec![]), "{other}");
        }
    }

    #[test]
    fn a_name_that_values_contradict_is_not_believed() {
        // Nothing but its name says that unknown.order_id is a key, and it has other numbers too.
        let named = |id: u32| format!("INSERT INTO unknown (order_id) VALUES ({id})");
        let calls = [named(101), named(177), named(178), named(179)];
        let mut all = vec![(10, 1, INSERT), (11, 2, "UPDATE t SET a = 1 WHERE id = 101")];
        all.extend(calls.iter().zip(3..).map(|(text, at)| (i64::from(at) * 10, at, text.as_str())));
        let links = learned(&[session(&all)]);
        assert_eq!(occurring(&links, &calls[0]).0, []);
        let links = learned(&[session(&all[..3])]);
        assert_eq!(occurring(&links, &calls[0]).0, [number(101)]);
    }

    #[test]
    fn a_key_that_was_surely_used_before_its_transaction_had_ended_is_waited_for_no_longer() {
        let maker = session(&[
            (10, 1, "BEGIN"),
            (20, 1, INSERT),
            (30, 1, "UPDATE t SET a = 1 WHERE id = 101"),
            (90, 1, "COMMIT"),
        ]);
        for (uncertain_us, due_us, awaited) in [(0, 50, 1), (0, 95, 3), (20, 50, 1), (20, 75, 3)] {
            let links = learned_within(uncertain_us, std::slice::from_ref(&maker));
            let mut found = None;
            links.needed(&session(&[(due_us, 1, "UPDATE t SET a = 1 WHERE id = 101")])[0], 0, |occurrence| {
                if let Occurrence::Key(_, _, made) = occurrence {
                    found = Some(made.awaited(due_us));
                }
            });
            assert_eq!(found, Some(awaited), "at {due_us}, within {uncertain_us}");
        }
    }
}
