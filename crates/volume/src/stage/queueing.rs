//! The queue in front of the limits, and in which order it is served.
//!
//! First come, first granted: a request is granted when it is at the head and both limits have its cost. Waiting is
//! the model's, not a thread's sleep, so the queue length and the time above a limit are exact.

use std::collections::VecDeque;

use crate::io::{Io, Nanos};

/// A request that waits for its grant.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// The request.
    pub io: Io,
    /// When it was submitted.
    pub submitted_at: Nanos,
    /// Its cost in I/O units.
    pub units: u32,
    /// Its service time.
    pub service_ns: Nanos,
}

/// Requests in arrival order.
#[derive(Clone, Debug)]
pub struct Queue {
    waiting: VecDeque<Waiting>,
    /// The last grant or change: no grant comes before it.
    not_before: Nanos,
}

impl Queue {
    /// Room for `depth` requests before memory is asked for.
    pub fn new(depth: usize) -> Self {
        Self { waiting: VecDeque::with_capacity(depth), not_before: 0 }
    }

    /// Appends a request.
    pub fn push(&mut self, waiting: Waiting) {
        self.waiting.push_back(waiting);
    }

    /// The request that is granted next, and the instant from which it stands at the head.
    pub fn head(&self) -> Option<(&Waiting, Nanos)> {
        self.waiting.front().map(|head| (head, head.submitted_at.max(self.not_before)))
    }

    /// Removes the head, granted at `at`.
    pub fn grant(&mut self, at: Nanos) -> Option<Waiting> {
        self.not_before = at;
        self.waiting.pop_front()
    }

    /// What waits at `now` waits until a change made at `now` is in force.
    pub fn hold_until(&mut self, now: Nanos) {
        self.not_before = self.not_before.max(now);
    }

    /// Requests that wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}
