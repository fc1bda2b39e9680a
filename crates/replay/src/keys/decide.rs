//! Places of which neither the catalogue nor the statements say what stands there: decided by all the values that are seen there, or left alone.
//!
//! A number there is taken for a key only if it cannot be anything else: every number that is seen there is a known key of one sequence, used after
//! it was made, no other number is in the range of these keys, and it is not by chance: of numbers between 1 and the last key, so many would not all be keys. A number that is used before
//! the key was made, by more than times are uncertain, proves that the place has other numbers. What is left is ambiguous: sent as captured, counted and named.

use std::collections::{HashMap, HashSet};

use super::key::Family;

/// The number of a group of places.
pub(crate) type Group = usize;

/// What is done with the values of a group of places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    /// They are no keys.
    Plain,
    /// They are keys of one of these sequences.
    Keys(Vec<Family>),
    /// Not known yet.
    Undecided,
    /// They may be keys of these: sent as captured, and counted.
    Ambiguous(Vec<Family>),
}

/// Distinct numbers that are remembered: some hundred megabytes.
const VALUES_MAX: usize = 4_000_000;
/// So improbable must it be that numbers are keys by chance.
const CHANCE_MAX: f64 = 1e-3;

/// The numbers that are seen at places which are not decided, and at those where there are no keys.
#[derive(Default)]
pub(crate) struct Seen {
    /// When each number is used first in a group.
    first: HashMap<Group, HashMap<u64, i64>>,
    /// Groups with numbers in documents: never exchanged.
    pub within: HashSet<Group>,
    others: HashSet<u64>,
    count: usize,
    /// More than can be remembered.
    is_full: bool,
    /// A number counts as used before its key only if it is by more than this.
    uncertain_us: i64,
}

/// The keys of a sequence that are known.
#[derive(Default)]
pub(crate) struct Known {
    /// When each was made, at the earliest.
    pub made: HashMap<u64, i64>,
}

impl Seen {
    /// None yet, where times are uncertain by this.
    pub(crate) fn within(uncertain_us: i64) -> Self {
        Self { uncertain_us, ..Self::default() }
    }

    /// Whether a number that was used at `due_us` may be a key that was made at `made_us`, as exact as times are.
    fn may_follow(&self, due_us: i64, made_us: i64) -> bool {
        made_us <= due_us.saturating_add(self.uncertain_us)
    }

    /// A number at a place of an undecided group, at this time.
    pub(crate) fn note(&mut self, group: Group, number: u64, due_us: i64) {
        self.is_full |= self.count >= VALUES_MAX;
        if self.is_full {
            return;
        }
        let before = self.first.entry(group).or_default();
        let count = before.len();
        before.entry(number).and_modify(|known| *known = (*known).min(due_us)).or_insert(due_us);
        self.count += before.len() - count;
    }

    /// A number at a place where there are no keys.
    pub(crate) fn note_other(&mut self, number: u64) {
        self.is_full |= self.count >= VALUES_MAX;
        if !self.is_full && self.others.insert(number) {
            self.count += 1;
        }
    }

    /// The groups that have numbers.
    pub(crate) fn groups(&self) -> Vec<Group> {
        let mut found: Vec<Group> = self.first.keys().copied().collect();
        found.sort_unstable();
        found
    }

    /// Of the numbers beyond `after` in a group how many are known keys that were made before, and how many are not.
    pub(crate) fn against(&self, group: Group, known: &Known, after: u64) -> (usize, usize) {
        let beyond = self.first.get(&group).into_iter().flatten().filter(|(number, _)| **number > after);
        let (keys, others): (Vec<_>, Vec<_>) = beyond.partition(|(number, due_us)| {
            known.made.get(number).is_some_and(|made_us| self.may_follow(**due_us, *made_us))
        });
        (keys.len(), others.len())
    }

    /// What is done with the values of a group, where these keys are known.
    pub(crate) fn decide(&self, group: Group, families: &[(Family, &Known)]) -> Decision {
        let Some(numbers) = self.first.get(&group) else { return Decision::Plain };
        let mut possible = Vec::new();
        for (family, known) in families {
            let those = numbers.iter().filter_map(|(number, due_us)| Some((known.made.get(number)?, due_us)));
            let (mut is_used, mut is_early) = (false, false);
            for (made_us, due_us) in those {
                let may_follow = self.may_follow(*due_us, *made_us);
                is_used |= may_follow;
                is_early |= !may_follow;
            }
            // A document has numbers of all kinds: one that is no key says nothing of the others.
            if is_used && (!is_early || self.within.contains(&group)) {
                possible.push((*family, *known));
            }
        }
        let named = || possible.iter().map(|(family, _)| *family).collect();
        match possible.as_slice() {
            [] if self.is_full => Decision::Ambiguous(families.iter().map(|(family, _)| *family).collect()),
            [] => Decision::Plain,
            [(family, known)] if !self.is_full && !self.within.contains(&group) && self.are_keys(numbers, known) => {
                Decision::Keys(vec![*family])
            }
            _ => Decision::Ambiguous(named()),
        }
    }

    /// Whether numbers can be nothing but these keys.
    fn are_keys(&self, numbers: &HashMap<u64, i64>, known: &Known) -> bool {
        let (Some(first), Some(last)) = (known.made.keys().min(), known.made.keys().max()) else { return false };
        let is_crowded = || self.others.iter().any(|other| first <= other && other <= last);
        let share = known.made.len() as f64 / *last as f64;
        numbers.keys().all(|number| known.made.contains_key(number))
            && share.powf(numbers.len() as f64) <= CHANCE_MAX
            && !is_crowded()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDERS: Family = Family(0);
    const CUSTOMERS: Family = Family(1);

    fn known(numbers: impl IntoIterator<Item = u64>) -> Known {
        // Each was made at the time of its own number.
        Known { made: numbers.into_iter().map(|number| (number, number as i64)).collect() }
    }

    fn decided(numbers: &[(u64, i64)], families: &[(Family, &Known)]) -> Decision {
        let mut seen = Seen::default();
        numbers.iter().for_each(|(number, due_us)| seen.note(7, *number, *due_us));
        seen.decide(7, families)
    }

    #[test]
    fn high_numbers_that_are_all_known_are_keys() {
        let keys = known(50_001..50_100);
        assert_eq!(decided(&[(50_003, 60_000), (50_009, 60_000)], &[(ORDERS, &keys)]), Decision::Keys(vec![ORDERS]));
    }

    #[test]
    fn low_numbers_may_be_keys_by_chance() {
        let keys = known(1..100);
        let numbers = [(1, 200), (5, 200), (7, 200)];
        assert_eq!(decided(&numbers, &[(ORDERS, &keys)]), Decision::Ambiguous(vec![ORDERS]));
    }

    #[test]
    fn a_number_that_is_used_before_the_key_was_made_is_none() {
        let keys = known(1..100);
        assert_eq!(decided(&[(3, 200), (50, 20)], &[(ORDERS, &keys)]), Decision::Plain);
    }

    #[test]
    fn a_number_that_is_used_as_early_as_times_are_uncertain_may_be_the_key() {
        let (keys, numbers) = (known(1..100), [(3, 200), (50, 20)]);
        for (uncertain_us, decision) in [(29, Decision::Plain), (30, Decision::Ambiguous(vec![ORDERS]))] {
            let mut seen = Seen::within(uncertain_us);
            numbers.iter().for_each(|(number, due_us)| seen.note(7, *number, *due_us));
            assert_eq!(seen.decide(7, &[(ORDERS, &keys)]), decision);
        }
    }

    #[test]
    fn numbers_of_which_some_are_no_known_keys_are_ambiguous() {
        let keys = known(50_001..50_100);
        let numbers = [(50_003, 60_000), (17, 60_000)];
        assert_eq!(decided(&numbers, &[(ORDERS, &keys)]), Decision::Ambiguous(vec![ORDERS]));
    }

    #[test]
    fn keys_of_two_sequences_are_ambiguous() {
        let (orders, customers) = (known(50_001..50_100), known(50_001..50_100));
        let both = [(ORDERS, &orders), (CUSTOMERS, &customers)];
        assert_eq!(decided(&[(50_003, 60_000)], &both), Decision::Ambiguous(vec![ORDERS, CUSTOMERS]));
    }

    #[test]
    fn where_other_numbers_are_in_the_range_of_the_keys_nothing_is_exchanged() {
        let keys = known(50_001..50_100);
        let mut seen = Seen::default();
        seen.note(7, 50_003, 60_000);
        seen.note(7, 50_004, 60_000);
        seen.note_other(50_040);
        assert_eq!(seen.decide(7, &[(ORDERS, &keys)]), Decision::Ambiguous(vec![ORDERS]));
    }

    #[test]
    fn a_document_has_numbers_of_all_kinds() {
        let keys = known(1..100);
        let mut seen = Seen::default();
        seen.within.insert(7);
        seen.note(7, 3, 200);
        seen.note(7, 50, 20);
        assert_eq!(seen.decide(7, &[(ORDERS, &keys)]), Decision::Ambiguous(vec![ORDERS]));
    }

    #[test]
    fn places_without_known_keys_have_none() {
        assert_eq!(decided(&[(5, 1)], &[(ORDERS, &known([]))]), Decision::Plain);
    }
}
