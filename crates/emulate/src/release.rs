//! The release thread: sends every answer at its instant.
//!
//! It sleeps to absolute instants and does not spin: on two cores a spinning thread steals from the server under test.
//! The machine wakes a thread late, so the alarm is set earlier by a [`pgdyno_clock::WakeLead`].

use crate::core::Core;
use crate::last_words::{self, Thread};
use crate::precautions;
use crate::slots::{Answered, SlotIndex};

/// Answers sent before the lock is taken again.
const BATCH: usize = 32;

/// Runs until the daemon stops.
pub(crate) fn run(core: &Core) {
    // Where the host refuses, that was said when the process was protected.
    let _ = precautions::realtime_priority();
    let mut batch: Vec<(SlotIndex, u64, bool)> = Vec::with_capacity(BATCH);
    let mut state = core.lock();
    loop {
        last_words::pass(Thread::Release);
        let now = core.clock.now();
        state.advance(now, None);
        while batch.len() < BATCH {
            let Some(index) = state.pop_due(now) else { break };
            batch.push((index, 0, state.fails(index)));
        }
        if !batch.is_empty() {
            drop(state);
            batch.retain_mut(|(index, released_at, failed)| {
                // Before the answer: sending it is part of the path that was calibrated.
                *released_at = core.clock.now();
                let answered = core.answer(*index, *failed);
                *failed = answered == Answered::Sent { failed: true };
                matches!(answered, Answered::Sent { .. })
            });
            state = core.lock();
            for (index, released_at, failed) in batch.drain(..) {
                core.finish(&mut state, index, (released_at, false, failed));
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
        // Otherwise it was brought forward or stopped meanwhile.
        if let Some(late_ns) = core.clock.now().checked_sub(state.alarm) {
            state.wake_lead.woken(late_ns);
        }
    }
}
