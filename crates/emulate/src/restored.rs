//! A volume that was made from a snapshot: what of it is still to come, and the credit that it has taken.

use pgdyno_catalog::credit_params;
use pgdyno_volume::{Extents, RestoreCredits};

/// What is known of a volume's snapshot when the volume begins.
#[derive(Clone, Debug, Default)]
pub(crate) struct Restored {
    /// What the snapshot holds and the volume does not have yet; `None` if it has everything.
    pub(crate) lazily: Option<Extents>,
    /// Bytes of a snapshot with fast snapshot restore.
    pub(crate) fast_bytes: Option<u64>,
}

impl Restored {
    /// Bytes that are still to come; `None` if the volume has everything.
    pub(crate) fn bytes(&self) -> Option<u64> {
        self.lazily.as_ref().map(Extents::bytes)
    }

    /// The snapshot's credits after this volume has taken one at `now`, of a bucket that was full.
    pub(crate) fn credits(&self, now: u64) -> Option<RestoreCredits> {
        let mut credits = RestoreCredits::full(credit_params(), self.fast_bytes?, now);
        credits.take(now);
        Some(credits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fast_volume_has_taken_a_credit_and_a_lazy_one_has_none() {
        let restored = Restored { lazily: None, fast_bytes: Some(128 << 30) };
        let credits = restored.credits(5).expect("credits");
        assert_eq!((credits.balance_millionths(5), credits.capacity_millionths()), (7_000_000, 8_000_000));
        assert_eq!(restored.bytes(), None);
        assert_eq!(Restored::default().credits(5), None);
    }
}
