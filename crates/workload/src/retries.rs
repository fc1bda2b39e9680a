//! Which failed transactions are tried again.

use crate::client::SqlState;

/// Which failed transactions are tried again, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retries {
    /// How often a transaction is begun at most; 0 is without limit, until the run ends.
    pub tries_max: u32,
    /// The errors after which it is begun again. They are errors of a workload that works: they never end a run.
    pub codes: &'static [SqlState],
    /// Whether each try draws new values.
    pub redraw: bool,
}

impl Retries {
    /// pgbench's default: none. More tries would follow a serialization failure or a deadlock, with the same values.
    pub const NONE: Self =
        Self { tries_max: 1, codes: &[SqlState::SERIALIZATION_FAILURE, SqlState::DEADLOCK_DETECTED], redraw: false };

    /// sysbench's way: as often as it takes, also when a key exists already, and with new values.
    pub const SYSBENCH: Self = Self {
        tries_max: 0,
        codes: &[SqlState::SERIALIZATION_FAILURE, SqlState::DEADLOCK_DETECTED, SqlState::UNIQUE_VIOLATION],
        redraw: true,
    };

    pub(crate) fn covers(self, code: SqlState, tries: u32) -> bool {
        self.codes.contains(&code) && (self.tries_max == 0 || tries < self.tries_max)
    }
}
