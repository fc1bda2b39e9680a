//! The release thread: sends every answer at its instant.
//!
//! It sleeps to absolute instants and does not spin: on two cores a spinning thread steals from the server under test.
//! How late the machine wakes a thread changes with its load (an idle core sleeps deeper), so the thread follows the
//! median of its own lateness and sets its alarm that much earlier.

use crate::core::Core;
use crate::precautions;

/// Answers sent before the lock is taken again.
const BATCH: usize = 32;
/// How far one wake-up moves the estimate of the median.
const STEP_NS: u64 = 500;
/// An alarm is never earlier than this: above it the machine stalls, which no alarm clock mends.
const MAX_AHEAD_NS: u64 = 100_000;
/// Where the estimate starts: a core that idles is awake after about this time.
pub(crate) const START_AHEAD_NS: u64 = 40_000;

/// Runs until the daemon stops.
pub(crate) fn run(core: &Core) {
    // Where the host refuses, that was said when the process was protected.
    let _ = precautions::realtime_priority();
    let (step_ns, max_ahead_ns) = (core.clock.model_ns(STEP_NS).max(1), core.clock.model_ns(MAX_AHEAD_NS));
    let mut batch: Vec<(u16, u64)> = Vec::with_capacity(BATCH);
    let mut state = core.lock();
    loop {
        let now = core.clock.now();
        state.advance(now, None);
        while batch.len() < BATCH {
            let Some(index) = state.pop_due(now) else { break };
            batch.push((index, 0));
        }
        if !batch.is_empty() {
            drop(state);
            batch.retain_mut(|(index, released_at)| {
                // Before the answer: sending it is part of the path that was calibrated.
                *released_at = core.clock.now();
                core.answer(*index)
            });
            state = core.lock();
            for (index, released_at) in batch.drain(..) {
                state.finish(index, released_at, false);
            }
            continue;
        }
        if state.stopping {
            return;
        }
        core.set_alarm(&mut state);
        drop(state);
        core.alarm.wait();
        state = core.lock();
        let late_ns = core.clock.now().saturating_sub(state.alarm);
        let ahead_ns = &mut state.ahead_ns;
        *ahead_ns = if late_ns > *ahead_ns { *ahead_ns + step_ns } else { ahead_ns.saturating_sub(step_ns) };
        *ahead_ns = (*ahead_ns).min(max_ahead_ns);
    }
}
