//! Types of parameters where the server cannot find them: a log has none, and `$1 + $2` may be the sum of many things.
//!
//! Each text is prepared once, before the first statement and outside of every transaction. Where the server says that it
//! is ambiguous, types are tried by the values that production sent.

use std::cell::RefCell;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use pgdyno_capture::{CaptureFile, Protocol};
use pgdyno_connection::Fault;

use crate::errands::Errands;
use crate::left_out;
use crate::link::{Answer, Link, Types};
use crate::shared::{Shared, fault};
use crate::turns::Turns;

/// Texts that are looked at; an application has some hundred, and one that writes values into texts sends no parameters.
const TEXTS_MAX: usize = 20_000;
/// `ambiguous_function`, `indeterminate_datatype`, and `datatype_mismatch`: a parameter of INSERT … SELECT DISTINCT is a text unless it is told.
const AMBIGUOUS: [&[u8; 5]; 3] = [b"42725", b"42P18", b"42804"];
/// Numbers in `pg_type`.
const BOOL: u32 = 16;
const INT8: u32 = 20;
const INT4: u32 = 23;
const TEXT: u32 = 25;
const DATE: u32 = 1082;
const TIMESTAMPTZ: u32 = 1184;
const NUMERIC: u32 = 1700;
const UUID: u32 = 2950;

/// A text's parameters: the place where it is sent, and values that production sent.
type Example = (usize, Vec<Option<String>>);

/// Finds them for the statements of the `chosen` sessions. A server that cannot be reached is found by who needs it.
pub(crate) fn find(
    file: &mut CaptureFile,
    shared: &Shared,
    chosen: &[usize],
    errands: &Errands,
) -> Result<Types, Fault> {
    let mut examples: HashMap<String, Example> = HashMap::new();
    // Texts of the capture's table of which enough is known.
    let settled: RefCell<HashSet<usize>> = RefCell::default();
    for &session in chosen {
        let Some(place) = shared.place_of(&shared.sessions[session]) else { continue };
        let asks = |protocol: Protocol, text: Option<usize>| {
            protocol != Protocol::Text && text.is_none_or(|text| !settled.borrow().contains(&text))
        };
        file.calls_of(session, asks, |text, call| {
            if call.without_values || call.cut {
                return;
            }
            settled.borrow_mut().extend(text);
            let has_values = !call.values.is_empty();
            if has_values
                && examples.len() < TEXTS_MAX
                && !examples.contains_key(&call.text)
                && left_out::why(call).is_none()
            {
                examples.insert(call.text.clone(), (place, call.values.clone()));
            }
        })
        .map_err(fault)?;
    }
    let (turns, mut found) = (Turns::new(errands)?, Types::new());
    turns.run([ask(examples, shared, &turns, &mut found)])?;
    Ok(found)
}

/// Asks the servers, one text after the other.
async fn ask(examples: HashMap<String, Example>, shared: &Shared, turns: &Turns, found: &mut Types) {
    let stops = || shared.stops();
    let mut links: HashMap<usize, Option<Link>> = HashMap::new();
    for (text, (place, values)) in examples {
        let link = match links.entry(place) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(Link::open(turns, shared.server_at(place), stops).await.ok()),
        };
        let Some(link) = link else { continue };
        if let Some(types) = types_of(link, &text, &values, &stops).await {
            found.insert(text, types);
        }
    }
    links.into_values().flatten().for_each(Link::close);
}

/// The types with which the server takes a text that it finds ambiguous; none if it needs none, or refuses them all.
async fn types_of(
    link: &mut Link<'_>,
    text: &str,
    values: &[Option<String>],
    stops: &impl Fn() -> bool,
) -> Option<Vec<u32>> {
    let Answer::Failed(state) = link.prepare(text, &[], stops).await else { return None };
    if !AMBIGUOUS.contains(&&state) {
        return None;
    }
    for types in guesses(values) {
        if link.prepare(text, &types, stops).await == Answer::Done {
            return Some(types);
        }
    }
    None
}

/// What the values may be, in the order in which it is tried.
fn guesses(values: &[Option<String>]) -> Vec<Vec<u32>> {
    let with = |number| values.iter().map(|value| type_of(value.as_deref(), number)).collect::<Vec<_>>();
    let mut found = vec![with(INT8), with(INT4), with(NUMERIC), vec![TEXT; values.len()]];
    found.dedup();
    found
}

/// The type that a value looks like, where a whole number is a `number`.
fn type_of(value: Option<&str>, number: u32) -> u32 {
    let Some(value) = value else { return TEXT };
    let bytes = value.as_bytes();
    let digits = value.strip_prefix('-').unwrap_or(value);
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_shaped = |shape: &str| {
        bytes.len() >= shape.len()
            && shape
                .bytes()
                .zip(bytes)
                .all(|(wanted, byte)| if wanted == b'0' { byte.is_ascii_digit() } else { wanted == *byte })
    };
    match value {
        "t" | "f" => BOOL,
        _ if is_digits(digits) => number,
        _ if digits.split_once('.').is_some_and(|(whole, part)| is_digits(whole) && is_digits(part)) => NUMERIC,
        _ if is_shaped("0000-00-00") && bytes.len() == 10 => DATE,
        _ if is_shaped("0000-00-00 00:00") => TIMESTAMPTZ,
        _ if bytes.len() == 36 && [8, 13, 18, 23].iter().all(|at| bytes[*at] == b'-') => UUID,
        _ => TEXT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_the_type_that_it_looks_like() {
        let of = |value| type_of(Some(value), INT8);
        assert_eq!(["5", "-17", "1.5", "t", "it's"].map(of), [INT8, INT8, NUMERIC, BOOL, TEXT]);
        assert_eq!(["2026-03-01", "2026-03-01 10:00:00+01", "2026-03"].map(of), [DATE, TIMESTAMPTZ, TEXT]);
        assert_eq!(["0af7651c-1234-4321-8b6d-a1b2c3d4e5f6", "-", ".", ""].map(of), [UUID, TEXT, TEXT, TEXT]);
        assert_eq!(type_of(None, INT8), TEXT);
    }

    #[test]
    fn whole_numbers_are_tried_as_each_kind_of_number() {
        let values = [Some("5".to_owned()), None];
        assert_eq!(guesses(&values), [[INT8, TEXT], [INT4, TEXT], [NUMERIC, TEXT], [TEXT, TEXT]]);
        assert_eq!(guesses(&[Some("x".to_owned())]), [[TEXT]]);
    }
}
