//! The queue in front of the limits, and in which order it is served.
//!
//! A request is granted when it is the head and both limits have its cost. The volume's order decides which request is the
//! head: the one that has waited longest (FIFO), or one drawn at random so that waits follow a gamma distribution, as measured
//! on EBS (`queueing/gamma.rs`). Waiting is part of the model, not a thread's sleep, so the queue length and the time above a
//! limit are exact.

mod gamma;

use std::collections::VecDeque;

use gamma::GammaLine;

use crate::io::{Io, Nanos};
use crate::params::Order;
use crate::seed::Stream;

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

/// Requests that wait.
#[derive(Clone, Debug)]
pub struct Queue {
    line: Line,
    /// The last grant, change, or arrival that could change the head: no grant comes before it.
    not_before: Nanos,
}

#[derive(Clone, Debug)]
enum Line {
    Fifo(VecDeque<Waiting>),
    Gamma(GammaLine<Waiting>),
}

impl Queue {
    /// Room for `depth` requests before memory is asked for; `draws` are for the order alone.
    pub(crate) fn new(order: Order, depth: usize, draws: Stream) -> Self {
        let line = match order {
            Order::Fifo => Line::Fifo(VecDeque::with_capacity(depth)),
            Order::Gamma => Line::Gamma(GammaLine::new(depth, draws)),
        };
        Self { line, not_before: 0 }
    }

    /// Adds a request.
    pub fn push(&mut self, waiting: Waiting) {
        match &mut self.line {
            Line::Fifo(line) => line.push_back(waiting),
            Line::Gamma(line) => line.push(waiting),
        }
    }

    /// Whether an arrival may become the head before those that wait already. What the head has waited is settled
    /// first then, and [`Self::hold_until`] is called: the new head cannot have been granted before it was one.
    pub fn head_may_change(&self) -> bool {
        matches!(self.line, Line::Gamma(_)) && !self.is_empty()
    }

    /// The request that is granted next, and the instant from which it stands at the head.
    pub fn head(&self) -> Option<(&Waiting, Nanos)> {
        let head = match &self.line {
            Line::Fifo(line) => line.front(),
            Line::Gamma(line) => line.head(),
        };
        head.map(|head| (head, head.submitted_at.max(self.not_before)))
    }

    /// Removes the head, granted at `at`.
    pub fn grant(&mut self, at: Nanos) -> Option<Waiting> {
        self.not_before = at;
        match &mut self.line {
            Line::Fifo(line) => line.pop_front(),
            Line::Gamma(line) => line.pop(),
        }
    }

    /// Who is the head after `now` is granted at `now` at the earliest.
    pub fn hold_until(&mut self, now: Nanos) {
        self.not_before = self.not_before.max(now);
    }

    /// Requests that wait.
    pub fn len(&self) -> usize {
        match &self.line {
            Line::Fifo(line) => line.len(),
            Line::Gamma(line) => line.len(),
        }
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
