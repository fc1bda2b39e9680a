//! The release thread: sends every answer at its instant.
//!
//! It sleeps to absolute instants and does not spin: on two cores a spinning thread steals from the server under test.
//! How late the machine wakes a thread changes with its load (an idle core sleeps deeper), so the thread follows the
//! median of its own lateness and sets its alarm that much earlier.

use std::sync::Arc;
use std::time::Duration;

use crate::pipeline::Pipeline;

/// Answers sent before the lock is taken again.
const BATCH: usize = 32;
/// How far one wake-up moves the estimate of the median.
const STEP_NS: u64 = 500;
/// An alarm is never earlier than this: above it the machine stalls, which no alarm clock mends.
const MAX_AHEAD_NS: u64 = 100_000;
const START_AHEAD_NS: u64 = 40_000;

/// Runs until the pipeline stops.
pub(crate) fn run(pipeline: &Arc<Pipeline>) {
    let mut ahead_ns = START_AHEAD_NS;
    let mut batch: Vec<(u16, u64)> = Vec::with_capacity(BATCH);
    let mut state = pipeline.lock();
    loop {
        let now = pipeline.clock.now();
        state.advance(now, None);
        while batch.len() < BATCH {
            let Some(index) = state.pop_due(now + ahead_ns) else { break };
            batch.push((index, 0));
        }
        if !batch.is_empty() {
            drop(state);
            batch.retain_mut(|(index, released_at)| {
                // Before the answer: sending it is part of the path that was calibrated.
                *released_at = pipeline.clock.now();
                pipeline.answer(*index)
            });
            state = pipeline.lock();
            for (index, released_at) in batch.drain(..) {
                state.finish(index, released_at, false);
            }
            continue;
        }
        if state.stopping {
            return;
        }
        let Some(next) = state.set_alarm() else {
            state = pipeline.earlier.wait(state).expect("the state's holder does not panic");
            continue;
        };
        let alarm = next.saturating_sub(ahead_ns);
        if alarm <= now {
            // A grant is due within the margin; it cannot be asked for before its instant.
            let rest = Duration::from_nanos(next.saturating_sub(now));
            state = pipeline.earlier.wait_timeout(state, rest).expect("the state's holder does not panic").0;
            continue;
        }
        let wait = pipeline.earlier.wait_timeout(state, Duration::from_nanos(alarm - now));
        let (woken, outcome) = wait.expect("the state's holder does not panic");
        state = woken;
        if outcome.timed_out() {
            let late = pipeline.clock.now() > next;
            let moved = if late { ahead_ns + STEP_NS } else { ahead_ns.saturating_sub(STEP_NS) };
            ahead_ns = moved.min(MAX_AHEAD_NS);
        }
    }
}
