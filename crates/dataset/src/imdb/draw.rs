//! Cheap draws: a row takes some tens of them, and a file a hundred million rows.

use pgdyno_workload::{Purpose, Random};

use super::file::File;

/// In hundred thousandths: what all chances and weights here are given in.
pub(super) const WHOLE: u32 = 100_000;

/// The sequence of one title, or one person, in one file.
pub(super) struct Draw(Random);

impl Draw {
    /// Unrelated to that of any other file or unit.
    pub(super) fn new(seed: u64, file: File, unit: u64) -> Self {
        Self(Random::derived(seed, Purpose::Rows, file as u32, unit))
    }

    /// What all files know of a title.
    pub(super) fn shared(seed: u64, unit: u64) -> Self {
        Self(Random::derived(seed, Purpose::Rows, u32::MAX, unit))
    }

    /// That of a word which is the same wherever it stands.
    pub(super) fn word(number: u64) -> Self {
        Self(Random::new(number))
    }

    /// 64 uniform bits.
    pub(super) fn bits(&mut self) -> u64 {
        self.0.bits()
    }

    /// Uniform below `count`, which is above 0. By multiplication; the bias is below `count` in four thousand million.
    pub(super) fn below(&mut self, count: u32) -> u32 {
        (((self.bits() >> 32) * u64::from(count)) >> 32) as u32
    }

    /// Uniform in `low..=high`.
    pub(super) fn between(&mut self, low: u32, high: u32) -> u32 {
        low + self.below(high - low + 1)
    }

    /// Whether something happens that does so often of a hundred thousand times.
    pub(super) fn happens(&mut self, of_whole: u32) -> bool {
        self.below(WHOLE) < of_whole
    }

    /// Uniform in `[0, 1)`.
    pub(super) fn unit(&mut self) -> f64 {
        self.0.unit()
    }

    /// Below `count`, mostly near 0: the share of the draws below `x · count` is the square root of `x`.
    ///
    /// So the first of a million has a draw in a thousand: what is popular is popular as in a power law of exponent 1/2. By
    /// multiplication alone, which is the same on every machine.
    pub(super) fn popular(&mut self, count: u64) -> u64 {
        let unit = self.unit();
        ((count as f64 * unit * unit) as u64).min(count.saturating_sub(1))
    }

    /// An element, the first ones more often ([`Draw::popular`]).
    pub(super) fn favourite<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.popular(all.len() as u64) as usize]
    }

    /// An element, by its weight; the weights add up to [`WHOLE`].
    pub(super) fn weighted<T: Copy>(&mut self, all: &[(u32, T)]) -> T {
        let mut left = self.below(WHOLE);
        for (weight, value) in &all[..all.len() - 1] {
            if left < *weight {
                return *value;
            }
            left -= weight;
        }
        all[all.len() - 1].1
    }

    /// A count, by a table of (weight, least, most): uniform within a line.
    pub(super) fn count(&mut self, table: &[(u32, (u32, u32))]) -> u32 {
        let (low, high) = self.weighted(table);
        self.between(low, high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chances_come_true() {
        let mut draw = Draw::new(1, File::TitleAkas, 0);
        let often = (0..WHOLE).filter(|_| draw.happens(12_345)).count();
        // Four standard deviations of a binomial are 416.
        assert!((11_900..12_800).contains(&often), "{often}");
        let (low, high) = (0..10_000)
            .map(|_| draw.between(3, 7))
            .fold((9_u32, 0_u32), |(low, high), value| (low.min(value), high.max(value)));
        assert_eq!((low, high), (3, 7));
    }

    #[test]
    fn the_popular_ones_are_drawn_as_a_root() {
        let mut draw = Draw::new(2, File::TitleAkas, 0);
        let within = |share: u64, draw: &mut Draw| (0..100_000).filter(|_| draw.popular(10_000) < share).count();
        for (share, wanted) in [(1, 1_000), (100, 10_000), (2_500, 50_000)] {
            let found = within(share, &mut draw);
            // Four standard deviations: at most 632.
            assert!(found.abs_diff(wanted) < 640, "{share}: {found}");
        }
        assert_eq!(draw.popular(1), 0);
    }
}
