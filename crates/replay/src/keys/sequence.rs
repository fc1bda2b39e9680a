//! Keys that only other sessions used: known by the order in which a sequence gives its values.

use std::collections::HashMap;

use super::catalogue::{Kind, Sequence};
use super::key::{Family, Key};
use super::links::Links;
use super::makers::Wanted;
use super::uses::{At, Use};

/// Links the uses of a sequence whose values are not known, where between two that are known there are as many as are missing.
pub(crate) fn link_by_order(
    (family, sequence): (Family, &Sequence),
    mut uses: Vec<Use>,
    first: &HashMap<Key, At>,
    links: &mut Links,
) {
    if !uses.iter().any(|one| one.returned.is_some()) {
        return;
    }
    uses.sort_by_key(|one| one.at);
    let (mut before, mut open) = (sequence.after, 0);
    for at in 0..=uses.len() {
        let number = match uses.get(at).map(|one| one.key) {
            Some(Some(number)) => Some(number),
            Some(None) => continue,
            None => None,
        };
        let unknown = &uses[open..at];
        // Behind the last known one nothing says how many there are.
        if number.is_none_or(|number| number > before && number - before - 1 == unknown.len() as u64) {
            for (place, one) in (1..).zip(unknown) {
                let Some(column) = &one.returned else { continue };
                let key = Key::Number(family, before + place);
                let Some(used) = first.get(&key).filter(|_| !links.is_made(key)) else { continue };
                if used.due_us < one.ended_us {
                    links.ties += 1;
                    break;
                }
                let (column, source) = (Some(column.clone()), sequence.label.clone());
                let wanted = Wanted { column, kind: Kind::Number, family: Some(family), source };
                links.link((one.at.session, one.at.call), (one.transaction, one.at.due_us), wanted, key);
            }
        }
        if let Some(number) = number {
            (before, open) = (number, at + 1);
        }
    }
}
