//! A queue whose waiting times follow a gamma distribution of shape 2.
//!
//! Requests pass two groups in turn: they arrive in the fresh group, a random fresh request becomes a candidate whenever a
//! candidate leaves, and a random candidate is granted. A wait is then the sum of two geometric waits of half the length
//! each, which is a gamma distribution of shape 2. Each grant removes one request, so the rate is the limit's and the mean
//! wait is Little's. Half of the waiting requests (plus one) are candidates, which gives the distribution's coefficient of
//! variation, 0.707, at every depth from two on. Both groups share one list, so an arrival or a grant costs the same at
//! every depth, and memory is allocated only when the list grows.
//!
//! A choice is drawn when a request arrives or leaves, never when the queue is read. Each arrival corrects it (reservoir
//! sampling), so it makes no difference whether a request arrives just before or just after a choice.

use crate::seed::Stream;

/// Waiting requests: the candidates first, then the fresh ones.
#[derive(Clone, Debug)]
pub(crate) struct GammaLine<T> {
    waiting: Vec<T>,
    /// Index of the candidate that is granted next.
    head: usize,
    /// True if the last candidate was chosen after the last grant, so that an arrival may still replace it.
    newest_is_open: bool,
    stream: Stream,
    drawn: u64,
}

/// How many of `waiting` requests are candidates.
fn candidates(waiting: usize) -> usize {
    if waiting == 0 { 0 } else { waiting / 2 + 1 }
}

impl<T> GammaLine<T> {
    /// An empty queue with room for `depth` requests.
    pub fn new(depth: usize, stream: Stream) -> Self {
        Self { waiting: Vec::with_capacity(depth), head: 0, newest_is_open: false, stream, drawn: 0 }
    }

    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// The request that is granted next.
    pub fn head(&self) -> Option<&T> {
        self.waiting.get(self.head)
    }

    /// Adds a request to the fresh. It may become a candidate, and the head, at once.
    pub fn push(&mut self, request: T) {
        let before = candidates(self.waiting.len());
        self.waiting.push(request);
        let chosen = candidates(self.waiting.len());
        if chosen > before {
            self.promote_a_fresh_one(chosen - 1);
            if self.below(chosen) == 0 {
                self.head = chosen - 1;
            }
        } else if self.newest_is_open && self.below(self.waiting.len() - chosen + 1) == 0 {
            let last = self.waiting.len() - 1;
            self.waiting.swap(chosen - 1, last);
        }
    }

    /// Removes the head and draws the next one.
    pub fn pop(&mut self) -> Option<T> {
        let last_candidate = candidates(self.waiting.len()).checked_sub(1)?;
        self.waiting.swap(self.head, last_candidate);
        let granted = self.waiting.swap_remove(last_candidate);
        let left = candidates(self.waiting.len());
        self.newest_is_open = false;
        if left > last_candidate {
            self.promote_a_fresh_one(last_candidate);
        }
        self.head = if left > 0 { self.below(left) } else { 0 };
        Some(granted)
    }

    /// Draws one of the fresh requests from `place` to the end and makes it the last candidate.
    fn promote_a_fresh_one(&mut self, place: usize) {
        let drawn = place + self.below(self.waiting.len() - place);
        self.waiting.swap(place, drawn);
        self.newest_is_open = true;
    }

    /// A uniform number below `n`; the bias is below one in 2^32.
    fn below(&mut self, n: usize) -> usize {
        let bits = self.stream.draw(self.drawn) >> 32;
        self.drawn += 1;
        ((bits * n as u64) >> 32) as usize
    }
}
