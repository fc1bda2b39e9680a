//! Keys that only other sessions used: known by the order in which a sequence gives its values.

use std::collections::HashMap;

use super::key::Key;
use super::links::Links;
use super::makers::{Kind, Wanted};
use super::uses::{At, Use};

/// Links the uses of a sequence whose values are not known, where between two that are known there are as many as are missing.
///
/// `source` is table and column.
pub(crate) fn link_by_order(source: &str, mut uses: Vec<Use>, first: &HashMap<Key, At>, links: &mut Links) {
    if !uses.iter().any(|one| one.returned) {
        return;
    }
    uses.sort_by_key(|one| one.at);
    let Some(after) = uses.first().map(|one| one.after) else { return };
    let (mut before, mut open) = (after, 0);
    for at in 0..=uses.len() {
        let number = match uses.get(at).map(|one| one.key) {
            Some(Some(Key::Number(number))) => Some(number),
            Some(_) => continue,
            None => None,
        };
        let unknown = &uses[open..at];
        // Behind the last known one nothing says how many there are.
        if number.is_none_or(|number| number > before && number - before - 1 == unknown.len() as u64) {
            for (place, one) in (1..).zip(unknown).filter(|(_, one)| one.returned) {
                let key = Key::Number(before + place);
                let Some(used) = first.get(&key).filter(|_| !links.is_made(key)) else { continue };
                if used.due_us < one.ended_us {
                    links.ties += 1;
                    break;
                }
                let column = source.rsplit('.').next().map(str::to_owned);
                let wanted = Wanted { column, kind: Kind::Number, after, source: source.to_owned() };
                links.link((one.at.session, one.at.call), one.transaction, wanted, key);
            }
        }
        if let Some(number) = number {
            (before, open) = (number, at + 1);
        }
    }
}
