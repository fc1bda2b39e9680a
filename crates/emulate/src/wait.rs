//! Waiting for a condition with a deadline.

use std::time::{Duration, Instant};

/// Waits until `is_met` says so; false when that takes longer than `timeout`.
pub(crate) fn wait_until(timeout: Duration, is_met: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + timeout;
    while !is_met() {
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    true
}
