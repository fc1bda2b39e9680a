//! Requests whose data a worker must move: a bounded queue that never allocates.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex};

use crate::slots::SlotIndex;

#[derive(Debug)]
pub(crate) struct WorkQueue {
    /// `None` once closed.
    waiting: Mutex<Option<VecDeque<SlotIndex>>>,
    arrived: Condvar,
}

impl WorkQueue {
    /// Room for every slot there is.
    pub(crate) fn new(slots: usize) -> Self {
        Self { waiting: Mutex::new(Some(VecDeque::with_capacity(slots))), arrived: Condvar::new() }
    }

    pub(crate) fn push(&self, index: SlotIndex) {
        if let Some(waiting) = self.waiting.lock().expect("no holder panics").as_mut() {
            waiting.push_back(index);
        }
        self.arrived.notify_one();
    }

    /// Waits for a request; `None` when the queue is closed and empty.
    pub(crate) fn pop(&self) -> Option<SlotIndex> {
        let mut waiting = self.waiting.lock().expect("no holder panics");
        loop {
            if let Some(index) = waiting.as_mut()?.pop_front() {
                return Some(index);
            }
            waiting = self.arrived.wait(waiting).expect("no holder panics");
        }
    }

    pub(crate) fn close(&self) {
        *self.waiting.lock().expect("no holder panics") = None;
        self.arrived.notify_all();
    }
}
