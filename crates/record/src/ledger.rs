//! How much memory sessions have: what came of a message, what was prepared, what waits for its answer.
//!
//! A client chooses all of that, and the server may keep it no longer than the recorder does. A session that needs more than it may have is not
//! followed any further; its bytes pass on.

use std::cell::Cell;
use std::rc::Rc;

/// What a session may have.
const SESSION_BYTES_MAX: usize = 64 << 20;
/// What all sessions may have together, beyond [`SESSION_BYTES_LEAST`] of each.
const TOTAL_BYTES_MAX: usize = 256 << 20;
/// What a session has is never too much up to this, so that those that take all do not end the small ones.
const SESSION_BYTES_LEAST: usize = 64 << 10;

/// What all sessions have.
#[derive(Clone, Default)]
pub(crate) struct Total(Rc<Cell<usize>>);

#[cfg(test)]
impl Total {
    /// How many bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.0.get()
    }
}

/// What a session has.
pub(crate) struct Ledger {
    used: Cell<usize>,
    total: Total,
}

impl Ledger {
    /// Of a new session.
    pub(crate) fn new(total: &Total) -> Rc<Self> {
        Rc::new(Self { used: Cell::new(0), total: total.clone() })
    }

    /// Whether it may have so many bytes more: as many as are free at most, so that the next one finds something too.
    pub(crate) fn allows(&self, more: usize) -> bool {
        let wanted = self.used.get().saturating_add(more);
        let free = TOTAL_BYTES_MAX.saturating_sub(self.total.0.get());
        wanted <= SESSION_BYTES_LEAST || wanted <= free.min(SESSION_BYTES_MAX)
    }
}

/// A part of what a session has; it is given back when this is dropped.
pub(crate) struct Held {
    ledger: Rc<Ledger>,
    bytes: usize,
}

impl Held {
    /// So many bytes.
    pub(crate) fn new(ledger: &Rc<Ledger>, bytes: usize) -> Self {
        let mut held = Self { ledger: Rc::clone(ledger), bytes: 0 };
        held.set(bytes);
        held
    }

    /// So many bytes instead.
    pub(crate) fn set(&mut self, bytes: usize) {
        for cell in [&self.ledger.used, &self.ledger.total.0] {
            cell.set((cell.get() + bytes).saturating_sub(self.bytes));
        }
        self.bytes = bytes;
    }

    /// So many bytes more.
    pub(crate) fn add(&mut self, bytes: usize) {
        self.set(self.bytes + bytes);
    }

    /// Whose part it is.
    pub(crate) fn ledger(&self) -> &Rc<Ledger> {
        &self.ledger
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_sessions_get_more_than_all_may_have_and_small_ones_always_get_theirs() {
        let total = Total::default();
        let hogs: Vec<Held> = (0..100)
            .map(|_| {
                let mut held = Held::new(&Ledger::new(&total), 0);
                while held.ledger().allows(1 << 16) {
                    held.add(1 << 16);
                }
                held
            })
            .collect();
        assert!(hogs.iter().all(|hog| hog.bytes <= SESSION_BYTES_MAX));
        assert!(total.0.get() <= TOTAL_BYTES_MAX + hogs.len() * SESSION_BYTES_LEAST);
        assert!(Ledger::new(&total).allows(SESSION_BYTES_LEAST));
        drop(hogs);
        assert_eq!(total.0.get(), 0);
    }
}
