//! How many sessions: one more as long as the last one brought something.

use std::time::Duration;

/// What another session must bring, as a share of the rate before it. Less is lost in what a rate varies by itself.
const GAIN_MIN: f64 = 0.05;
/// How long a rate is measured: a chunk of 8 MiB is under way for a tenth of a second or so, and its pauses even out.
const WINDOW: Duration = Duration::from_secs(3);
/// A new session has to connect and to fill its first pages.
const SETTLE: Duration = Duration::from_secs(1);

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Nothing, for now.
    None,
    /// Begin another session.
    Add,
    /// End the last one: it brought nothing.
    Remove,
}

/// Looks at the rate and decides. Times are since any instant.
#[derive(Debug)]
pub(crate) struct SessionScaler {
    sessions: usize,
    sessions_max: usize,
    /// When the measurement under way began, with the bytes until then; none before its time.
    begun: Option<(Duration, u64)>,
    /// Start of the measurement window.
    from: Duration,
    /// Bytes per second with one session less.
    rate_before: Option<f64>,
    settled: bool,
}

impl SessionScaler {
    /// Begins with this number of sessions now.
    pub(crate) fn new(sessions: usize, sessions_max: usize, now: Duration) -> Self {
        let settled = sessions >= sessions_max;
        Self { sessions, sessions_max, begun: None, from: now + SETTLE, rate_before: None, settled }
    }

    /// Takes the number of bytes that were sent by now.
    pub(crate) fn look(&mut self, now: Duration, bytes: u64) -> Change {
        if self.settled || now < self.from {
            return Change::None;
        }
        let Some((begun, bytes_before)) = self.begun else {
            self.begun = Some((now, bytes));
            return Change::None;
        };
        let time = now.saturating_sub(begun);
        if time < WINDOW {
            return Change::None;
        }
        let rate = bytes.saturating_sub(bytes_before) as f64 / time.as_secs_f64();
        let helped = self.rate_before.is_none_or(|before| rate >= before * (1.0 + GAIN_MIN));
        if !helped {
            self.settled = true;
            self.sessions -= 1;
            return Change::Remove;
        }
        if self.sessions == self.sessions_max {
            self.settled = true;
            return Change::None;
        }
        self.sessions += 1;
        (self.rate_before, self.begun, self.from) = (Some(rate), None, now + SETTLE);
        Change::Add
    }

    /// The session that was to begin could not: it stays at those that there are.
    pub(crate) fn refused(&mut self) {
        self.sessions -= 1;
        self.settled = true;
    }

    /// How many sessions there are to be.
    pub(crate) fn sessions(&self) -> usize {
        self.sessions
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Sessions at the end, where the rate is given by their number.
    fn settles(sessions: usize, sessions_max: usize, rate: impl Fn(usize) -> u64) -> usize {
        let mut scaler = SessionScaler::new(sessions, sessions_max, Duration::ZERO);
        let mut bytes = 0;
        for second in 1..600 {
            bytes += rate(scaler.sessions());
            scaler.look(Duration::from_secs(second), bytes);
        }
        scaler.sessions()
    }

    #[test]
    fn sessions_are_added_up_to_the_limit_that_binds() {
        assert_eq!(settles(1, 8, |sessions| 50 * sessions.min(3) as u64), 3);
        assert_eq!(settles(1, 8, |sessions| 50 * sessions as u64), 8);
        assert_eq!(settles(2, 8, |_| 100), 2);
        assert_eq!(settles(2, 2, |sessions| 50 * sessions as u64), 2);
    }

    #[test]
    fn one_that_is_refused_is_the_last_that_was_tried() {
        let mut scaler = SessionScaler::new(1, 8, Duration::ZERO);
        let added = (1..60).find(|second| scaler.look(Duration::from_secs(*second), second * 10) == Change::Add);
        assert!(added.is_some());
        scaler.refused();
        assert!((60..600).all(|second| scaler.look(Duration::from_secs(second), second * 100) == Change::None));
        assert_eq!(scaler.sessions(), 1);
    }

    proptest! {
        #[test]
        fn there_are_never_fewer_than_at_first_nor_more_than_allowed(
            sessions in 1_usize..9, more in 0_usize..9, rates in prop::collection::vec(0_u64..1000, 600),
        ) {
            let mut scaler = SessionScaler::new(sessions, sessions + more, Duration::ZERO);
            let mut bytes = 0;
            for (second, rate) in rates.iter().enumerate() {
                bytes += rate;
                scaler.look(Duration::from_secs(second as u64), bytes);
                prop_assert!((sessions..=sessions + more).contains(&scaler.sessions()));
            }
        }
    }
}
