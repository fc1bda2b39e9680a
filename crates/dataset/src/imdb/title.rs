//! What is known of a title by its number: whether it is an episode, and of which series another one may be.

use super::draw::Draw;

/// What a title is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TitleType {
    pub(super) name: &'static str,
    /// How many of ten thousand titles.
    share: u64,
}

/// Titles come in rounds of so many, each with every type as often as its share says: then the files' ratios are exact, and
/// the series of an episode can be found without looking.
const ROUND: u64 = 10_000;
/// Spreads the types over a round; it has no divisor in common with [`ROUND`].
const STRIDE: u64 = 7_919;
/// Its inverse: their product leaves 1 when it is divided by [`ROUND`].
const STRIDE_BACK: u64 = 7_679;

/// The eleven types. Of episodes there are 9,514,619 among 12,323,467 titles; how the others share the rest is assumed. Series
/// come first, so that their places in a round are known.
const TYPES: [TitleType; 11] = [
    TitleType { name: "tvSeries", share: 240 },
    TitleType { name: "tvMiniSeries", share: 55 },
    TitleType { name: "short", share: 900 },
    TitleType { name: "movie", share: 600 },
    TitleType { name: "video", share: 260 },
    TitleType { name: "tvMovie", share: 125 },
    TitleType { name: "tvSpecial", share: 47 },
    TitleType { name: "videoGame", share: 37 },
    TitleType { name: "tvShort", share: 10 },
    TitleType { name: "tvPilot", share: 5 },
    TitleType { name: "tvEpisode", share: 7_721 },
];
/// Places of a round that are series of either kind.
const SERIES: u64 = TYPES[0].share + TYPES[1].share;

/// The titles of a data set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Titles {
    count: u64,
}

impl Titles {
    pub(super) fn new(count: u64) -> Self {
        Self { count }
    }

    pub(super) fn count(self) -> u64 {
        self.count
    }

    /// The type of a title.
    pub(super) fn kind(title: u64) -> TitleType {
        let mut place = title % ROUND * STRIDE % ROUND;
        for kind in &TYPES {
            if place < kind.share {
                return *kind;
            }
            place -= kind.share;
        }
        TYPES[TYPES.len() - 1]
    }

    /// A series for an episode; older ones have more. Where a data set is so small that it has none, the first title.
    pub(super) fn series(self, draw: &mut Draw) -> u64 {
        let rounds = self.count.div_ceil(ROUND);
        for _ in 0..16 {
            let round = draw.popular(rounds);
            let place = draw.popular(SERIES) * STRIDE_BACK % ROUND;
            let title = round * ROUND + place;
            if title < self.count {
                return title;
            }
        }
        // The last round is not whole: the first series of all is the first title.
        0
    }

    /// A title that somebody is known for; some are for thousands.
    pub(super) fn known(self, draw: &mut Draw) -> u64 {
        draw.popular(self.count)
    }
}

impl TitleType {
    pub(super) fn is_episode(self) -> bool {
        self.name == "tvEpisode"
    }

    /// Whether it runs for years.
    pub(super) fn is_series(self) -> bool {
        self.name == "tvSeries" || self.name == "tvMiniSeries"
    }
}

#[cfg(test)]
mod tests {
    use super::super::file::File;
    use super::*;

    #[test]
    fn a_round_has_every_type_as_often_as_its_share() {
        assert_eq!(TYPES.iter().map(|kind| kind.share).sum::<u64>(), ROUND);
        assert_eq!(STRIDE * STRIDE_BACK % ROUND, 1);
        for kind in TYPES {
            let found = (0..ROUND).filter(|title| Titles::kind(title + ROUND) == kind).count() as u64;
            assert_eq!(found, kind.share, "{}", kind.name);
        }
        let run =
            (0..100).map(|title| Titles::kind(title).is_episode()).fold((0_u32, 0_u32), |(run, longest), episode| {
                let run = if episode { run + 1 } else { 0 };
                (run, run.max(longest))
            });
        assert!(run.1 < 100, "types are mixed");
    }

    #[test]
    fn the_series_of_an_episode_is_one() {
        for count in [1, 500, 20_000, 25_001] {
            let titles = Titles::new(count);
            let mut draw = Draw::new(3, File::TitleEpisode, count);
            for _ in 0..2_000 {
                let series = titles.series(&mut draw);
                assert!(series < count && Titles::kind(series).is_series(), "{series} of {count}");
            }
        }
    }
}
