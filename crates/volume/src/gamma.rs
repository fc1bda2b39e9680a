//! A waiting room in which the time that a request waits follows a gamma law of shape 2.
//!
//! Requests pass two crowds, one after the other: they arrive among the fresh, a random fresh one joins the candidates
//! for each one that leaves these, and a random candidate is granted. A wait is then the sum of two geometric ones of
//! half the length each, which is a gamma law of shape 2, and whoever waits, one request leaves with each grant: the
//! rate is that of the limit and the mean is Little's. One in two of those that wait (and one more) is a candidate,
//! which gives the law's coefficient of variation, 0.707, at every depth from two on. Both crowds share one list, so
//! that an arrival or a grant costs the same however many wait, and memory is asked for only when the list grows.
//!
//! Choices are made when a request arrives or leaves and are kept until then, never when somebody looks; and they are
//! corrected for each arrival (reservoir sampling), so that it makes no difference whether it comes just before or just
//! after a choice.

use crate::seed::Stream;
use crate::stage::queueing::Waiting;

/// Requests that wait: the candidates first, then the fresh.
#[derive(Clone, Debug)]
pub(crate) struct GammaLine {
    waiting: Vec<Waiting>,
    /// Who is granted next: a place among the candidates, drawn when there is somebody.
    head: usize,
    /// Whether the last candidate joined since the last grant, so that an arrival may still take its place.
    newest_is_open: bool,
    stream: Stream,
    drawn: u64,
}

/// How many of `waiting` requests are candidates.
fn candidates(waiting: usize) -> usize {
    if waiting == 0 { 0 } else { waiting / 2 + 1 }
}

impl GammaLine {
    /// Nobody waits; room for `depth` requests.
    pub fn new(depth: usize, stream: Stream) -> Self {
        Self { waiting: Vec::with_capacity(depth), head: 0, newest_is_open: false, stream, drawn: 0 }
    }

    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Who is granted next.
    pub fn head(&self) -> Option<&Waiting> {
        self.waiting.get(self.head)
    }

    /// Adds a request to the fresh. It may become a candidate, and the head, at once.
    pub fn push(&mut self, request: Waiting) {
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
    pub fn pop(&mut self) -> Option<Waiting> {
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

    /// Draws one from `place` to the end, all fresh, and puts it there, as the last candidate.
    fn promote_a_fresh_one(&mut self, place: usize) {
        let drawn = place + self.below(self.waiting.len() - place);
        self.waiting.swap(place, drawn);
        self.newest_is_open = true;
    }

    /// A number from 0 to `n` - 1, each as likely as any other to one in 2^32.
    fn below(&mut self, n: usize) -> usize {
        let bits = self.stream.draw(self.drawn) >> 32;
        self.drawn += 1;
        ((bits * n as u64) >> 32) as usize
    }
}
