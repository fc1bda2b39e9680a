//! A rate that is not exceeded.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How soon a session that waits sees the order to stop.
const LOOK: Duration = Duration::from_millis(100);
/// A session that was held up may catch up on this much: it is less than what one sees as a burst.
const CATCH_UP: Duration = Duration::from_millis(100);
const SECOND_NS: u128 = 1_000_000_000;

/// Bytes by time, of all sessions together.
pub(crate) struct RateLimit {
    /// None is as fast as it goes.
    bytes_per_s: Option<u64>,
    /// When the next byte may be sent.
    due: Mutex<Instant>,
}

impl RateLimit {
    /// Begins now.
    pub(crate) fn new(bytes_per_s: Option<u64>) -> Self {
        Self { bytes_per_s, due: Mutex::new(Instant::now()) }
    }

    /// Whether there is a rate.
    pub(crate) fn is_limited(&self) -> bool {
        self.bytes_per_s.is_some()
    }

    /// Takes leave to send bytes, and says from when on: the sessions after this one come later.
    fn claim(&self, bytes: usize, now: Instant) -> Instant {
        let Some(bytes_per_s) = self.bytes_per_s else { return now };
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        let from = (*due).max(now.checked_sub(CATCH_UP).unwrap_or(now));
        let ns = bytes as u128 * SECOND_NS / u128::from(bytes_per_s);
        *due = from + Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX));
        from
    }

    /// Waits until bytes may be sent, or the order to stop. Returns how long it waited.
    pub(crate) fn wait(&self, bytes: usize, stop: &AtomicBool) -> Duration {
        if !self.is_limited() {
            return Duration::ZERO;
        }
        let began = Instant::now();
        let from = self.claim(bytes, began);
        loop {
            let left = from.saturating_duration_since(Instant::now());
            if left.is_zero() || stop.load(Ordering::Relaxed) {
                return began.elapsed();
            }
            std::thread::sleep(left.min(LOOK));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_one_after_another_at_the_rate() {
        let rate_limit = RateLimit::new(Some(1000));
        let now = Instant::now() + Duration::from_secs(60);
        let from: Vec<Instant> = (0..4).map(|_| rate_limit.claim(500, now)).collect();
        assert_eq!(from[3].duration_since(from[0]), Duration::from_millis(1500));
        assert_eq!(now.duration_since(from[0]), CATCH_UP, "no more than that is caught up on");
    }

    #[test]
    fn without_a_rate_nobody_waits() {
        let rate_limit = RateLimit::new(None);
        assert_eq!(rate_limit.wait(usize::MAX, &AtomicBool::new(false)), Duration::ZERO);
    }
}
