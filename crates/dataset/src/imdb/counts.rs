//! How often what occurs: tables of (weight in hundred thousandths, least, most), and shares of nulls.
//!
//! Means and nulls are those of the public files of March 2026; within a mean the shape is chosen.

/// The last year of the data.
pub(super) const YEAR_LAST: u32 = 2026;

/// Rows of title.akas beside the original's: 55,294,765 rows of 12,323,467 titles are 4.487 each, one of them the original's.
/// Most titles have none or those of a few large regions; films that are shown everywhere have a hundred.
pub(super) const AKAS: &[(u32, (u32, u32))] = &[(39_961, (0, 0)), (59_039, (3, 7)), (1_000, (4, 103))];

/// Rows of title.principals: 98,073,271 of 12,323,467 titles are 7.958 each, of 11.1 million that have any.
pub(super) const PRINCIPALS: &[(u32, (u32, u32))] = &[(9_930, (0, 0)), (43_846, (1, 10)), (46_224, (4, 20))];

/// Directors where there are any: 1.34 in the mean, 528 at most.
pub(super) const DIRECTORS: &[(u32, (u32, u32))] =
    &[(80_000, (1, 1)), (11_435, (2, 2)), (8_465, (3, 3)), (90, (2, 60)), (10, (61, 528))];

/// Writers where there are any: 2.33 in the mean, 1,393 at most.
pub(super) const WRITERS: &[(u32, (u32, u32))] =
    &[(45_000, (1, 1)), (37_780, (2, 4)), (17_120, (2, 5)), (90, (6, 150)), (10, (151, 1_393))];

/// Genres where there are any: 1.63 in the mean, three at most.
pub(super) const GENRES: &[(u32, (u32, u32))] = &[(55_000, (1, 1)), (27_000, (2, 2)), (18_000, (3, 3))];

/// Professions where there are any: 1.39 in the mean, three at most.
pub(super) const PROFESSIONS: &[(u32, (u32, u32))] = &[(70_000, (1, 1)), (21_000, (2, 2)), (9_000, (3, 3))];

/// Titles that somebody is known for, where there are any: 1.84 in the mean, four at most.
pub(super) const KNOWN_FOR: &[(u32, (u32, u32))] =
    &[(56_000, (1, 1)), (19_000, (2, 2)), (10_000, (3, 3)), (15_000, (4, 4))];

/// Seasons and episodes of one: assumed.
pub(super) const SEASONS: &[(u32, (u32, u32))] = &[(70_000, (1, 4)), (25_000, (5, 15)), (5_000, (16, 60))];
/// Within a season.
pub(super) const EPISODES: &[(u32, (u32, u32))] = &[(60_000, (1, 13)), (30_000, (14, 60)), (10_000, (61, 260))];

/// Shares of nulls, each by its column.
pub(super) mod null {
    /// name.basics.birthYear.
    pub(crate) const BIRTH_YEAR: u32 = 95_590;
    /// name.basics.deathYear: 98.31 % of all, and nobody has one without the other.
    pub(crate) const DEATH_YEAR_OF_BORN: u32 = 61_680;
    /// name.basics.primaryProfession: about three million people.
    pub(crate) const PROFESSION: u32 = 20_000;
    /// name.basics.knownForTitles: assumed.
    pub(crate) const KNOWN_FOR: u32 = 11_000;
    /// title.basics.startYear: assumed.
    pub(crate) const START_YEAR: u32 = 11_600;
    /// title.basics.endYear: 98.75 % of all; only series have one.
    pub(crate) const END_YEAR_OF_SERIES: u32 = 52_070;
    /// title.basics.runtimeMinutes.
    pub(crate) const RUNTIME: u32 = 64_120;
    /// title.basics.genres: half a million titles.
    pub(crate) const GENRES: u32 = 4_300;
    /// title.crew.directors.
    pub(crate) const DIRECTORS: u32 = 44_020;
    /// title.crew.writers.
    pub(crate) const WRITERS: u32 = 48_970;
    /// title.episode.seasonNumber and episodeNumber, together.
    pub(crate) const SEASON: u32 = 20_580;
    /// title.principals.job, of those who do not act: 80.98 % of all, and no actor has one.
    pub(crate) const JOB_OF_CREW: u32 = 60_940;
    /// title.principals.characters, of those who act: 51.22 % of all.
    pub(crate) const CHARACTERS_OF_CAST: u32 = 4_910;
    /// title.akas.region: 22.43 % of all, those of the original title among them.
    pub(crate) const REGION_OF_OTHERS: u32 = 190;
    /// title.akas.language: 32.97 % of all.
    pub(crate) const LANGUAGE_OF_OTHERS: u32 = 13_750;
    /// title.akas.types: 69.31 % of all; the original title has one.
    pub(crate) const TYPES_OF_OTHERS: u32 = 89_180;
    /// title.akas.attributes: 99.44 % of all.
    pub(crate) const ATTRIBUTES_OF_OTHERS: u32 = 99_280;
}

/// Titles with ratings: 1,641,397 of 12,323,467.
pub(super) const RATED: u32 = 13_319;

#[cfg(test)]
mod tests {
    use super::super::draw::WHOLE;
    use super::*;

    fn mean(table: &[(u32, (u32, u32))]) -> f64 {
        assert_eq!(table.iter().map(|line| line.0).sum::<u32>(), WHOLE, "{table:?}");
        let sum: f64 = table.iter().map(|(weight, (low, high))| f64::from(*weight) * f64::from(low + high) / 2.0).sum();
        sum / f64::from(WHOLE)
    }

    #[test]
    fn means_are_those_of_the_public_files() {
        let titles = 12_323_467.0;
        for (table, wanted) in [
            (AKAS, 55_294_765.0 / titles - 1.0),
            (PRINCIPALS, 98_073_271.0 / titles),
            (DIRECTORS, 1.34),
            (WRITERS, 2.33),
            (GENRES, 1.63),
            (PROFESSIONS, 1.39),
            (KNOWN_FOR, 1.84),
        ] {
            assert!((mean(table) - wanted).abs() < 0.002 * wanted, "{table:?}: {} for {wanted}", mean(table));
        }
        assert_eq!((mean(SEASONS) > 1.0, mean(EPISODES) > 1.0), (true, true));
    }
}
