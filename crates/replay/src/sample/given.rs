//! Keys that this run was given by the transactions that make them, for those that need such keys.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use super::pool::Drawn;

/// The keys that a transaction made, in the order in which it makes them.
pub(crate) type Entry = Vec<Option<String>>;

/// Entries of a kind that are kept: who needs one that is older has none.
const KEPT_MAX: usize = 100_000;

/// What transactions of one kind made.
#[derive(Default)]
struct Stock {
    entries: VecDeque<Arc<Entry>>,
    /// Entries that are gone.
    gone: u64,
    /// Shape of a transaction -> how often transactions of it were given one.
    taken: HashMap<u32, u64>,
}

/// See the module.
pub(crate) struct Given {
    stocks: Vec<Mutex<Stock>>,
}

impl Given {
    pub(crate) fn new(kinds: usize) -> Self {
        Self { stocks: (0..kinds).map(|_| Mutex::default()).collect() }
    }

    /// A transaction made these keys, and has ended.
    pub(crate) fn put(&self, kind: u32, entry: Entry) {
        self.stock(kind, |stock| {
            if stock.entries.len() >= KEPT_MAX {
                stock.entries.pop_front();
                stock.gone += 1;
            }
            stock.entries.push_back(Arc::new(entry));
        });
    }

    /// An entry for each maker whose keys a transaction needs; none if one of them has made nothing yet that is left for it.
    pub(crate) fn take(&self, one: &Drawn) -> Option<Vec<Option<Arc<Entry>>>> {
        let mut found = Vec::with_capacity(one.makers.len());
        for maker in &one.makers {
            let Some(maker) = maker else {
                found.push(None);
                continue;
            };
            let Some(entry) = self.stock(maker.kind, |stock| stock.next(one.shape, maker.uses)) else {
                for earlier in one.makers[..found.len()].iter().flatten() {
                    self.stock(earlier.kind, |stock| stock.give_back(one.shape));
                }
                return None;
            };
            found.push(Some(entry));
        }
        Some(found)
    }

    fn stock<T>(&self, kind: u32, work: impl FnOnce(&mut Stock) -> T) -> T {
        work(&mut self.stocks[kind as usize].lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Stock {
    /// Each entry goes to transactions of a shape as often as in production.
    fn next(&mut self, shape: u32, uses: u64) -> Option<Arc<Entry>> {
        let taken = self.taken.entry(shape).or_default();
        *taken = (*taken).max(self.gone * uses);
        let place = usize::try_from(*taken / uses - self.gone).ok()?;
        let entry = self.entries.get(place)?;
        *taken += 1;
        Some(Arc::clone(entry))
    }

    fn give_back(&mut self, shape: u32) {
        if let Some(taken) = self.taken.get_mut(&shape) {
            *taken = taken.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::pool::{Ends, Maker};
    use super::*;

    fn needing(shape: u32, makers: &[(u32, u64)]) -> Drawn {
        let makers = makers.iter().map(|(kind, uses)| Some(Maker { kind: *kind, uses: *uses })).collect();
        Drawn { place: 0, settings: 0, steps: Vec::new(), shape, makers, makes: None, ends: Ends::Committed }
    }

    fn key(given: &Given, one: &Drawn) -> Option<String> {
        given.take(one).and_then(|found| found[0].as_ref().and_then(|entry| entry[0].clone()))
    }

    #[test]
    fn each_key_goes_to_a_shape_of_transactions_as_often_as_in_production() {
        let given = Given::new(2);
        let (pays, looks) = (needing(1, &[(0, 1)]), needing(2, &[(0, 2)]));
        assert_eq!(key(&given, &pays), None, "nothing is made yet");
        for number in 0..2 {
            given.put(0, vec![Some(format!("order {number}"))]);
        }
        let found: Vec<_> = (0..3).map(|_| key(&given, &pays)).collect();
        assert_eq!(found, [Some("order 0".to_owned()), Some("order 1".to_owned()), None]);
        let found: Vec<_> =
            (0..5).map(|_| key(&given, &looks)).map(|one| one.map(|text| text[6..].to_owned())).collect();
        assert_eq!(found, [Some("0"), Some("0"), Some("1"), Some("1"), None].map(|one| one.map(str::to_owned)));
    }

    #[test]
    fn what_cannot_have_all_its_keys_takes_none() {
        let given = Given::new(2);
        given.put(0, vec![Some("a".to_owned())]);
        let (both, one) = (needing(1, &[(0, 1), (1, 1)]), needing(1, &[(0, 1)]));
        assert!(given.take(&both).is_none());
        assert_eq!(key(&given, &one).as_deref(), Some("a"));
    }
}
