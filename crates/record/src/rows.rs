//! Rows of COPY FROM STDIN on their way into the capture, a part at a time.

use std::rc::Rc;

use crate::ledger::{Held, Ledger};
use crate::store::Store;

/// Rows are written when they take this much, so that a COPY of any size is kept in little memory.
const PART_BYTES: usize = 1 << 20;

/// See the module. What a client sends before the server has asked for rows counts: it knows that they will be asked for.
pub(crate) struct Rows {
    part: Vec<u8>,
    held: Held,
    parts: Vec<u64>,
    /// How often the server asked for rows in the text that is executed.
    asked: u32,
    cut: bool,
}

impl Rows {
    /// None yet.
    pub(crate) fn new(ledger: &Rc<Ledger>) -> Self {
        Self { part: Vec::new(), held: Held::new(ledger, 0), parts: Vec::new(), asked: 0, cut: false }
    }

    /// The server asks for rows.
    pub(crate) fn begin(&mut self) {
        self.asked += 1;
    }

    /// The client sends some.
    pub(crate) fn add(&mut self, rows: &[u8], whole: bool, store: &mut Store) {
        self.cut |= !whole;
        for rows in rows.chunks(PART_BYTES) {
            if !self.held.ledger().allows(rows.len()) {
                self.write(store);
            }
            if self.part.is_empty() && !self.held.ledger().allows(rows.len()) {
                self.cut = true;
                continue;
            }
            self.part.extend_from_slice(rows);
            self.held.set(self.part.capacity());
            if self.part.len() >= PART_BYTES {
                self.write(store);
            }
        }
    }

    /// A statement is over: its rows, if it is a COPY, and whether they are all that it was sent. A text of several COPYs
    /// does not say which of them a row is of.
    pub(crate) fn taken(&mut self, store: &mut Store) -> (Option<Vec<u64>>, bool) {
        if self.asked == 0 {
            return (None, true);
        }
        self.write(store);
        let empty = Self::new(self.held.ledger());
        let found = std::mem::replace(self, empty);
        (Some(found.parts), !found.cut && found.asked == 1)
    }

    fn write(&mut self, store: &mut Store) {
        if !self.part.is_empty() {
            self.parts.extend(store.rows(&self.part));
            self.part.clear();
            self.part.shrink_to(PART_BYTES / 16);
            self.held.set(self.part.capacity());
        }
    }
}
