//! The seven files: names, columns, and how large the public ones are.

/// One of the seven files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum File {
    /// People.
    NameBasics,
    /// Titles by region and language.
    TitleAkas,
    /// Titles.
    TitleBasics,
    /// Directors and writers of each title.
    TitleCrew,
    /// Which series an episode is of.
    TitleEpisode,
    /// Who had a part in a title.
    TitlePrincipals,
    /// What users think of some titles.
    TitleRatings,
}

/// Rows of the public files of March 2026, as a profile of them tells (204,295,502 in all).
const PUBLIC_ROWS: [u64; 7] = [15_122_182, 55_294_765, 12_323_467, 12_325_801, 9_514_619, 98_073_271, 1_641_397];
/// Bytes of a row there: the sizes of the unpacked files of 2025 (0.90, 2.67, 1.03, 0.39, 0.24, 4.21, 0.027 GB) by their rows.
const PUBLIC_BYTES_PER_ROW: [u64; 7] = [60, 48, 84, 32, 25, 43, 17];

impl File {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::NameBasics,
        Self::TitleAkas,
        Self::TitleBasics,
        Self::TitleCrew,
        Self::TitleEpisode,
        Self::TitlePrincipals,
        Self::TitleRatings,
    ];

    /// Its name without `.tsv`.
    pub fn name(self) -> &'static str {
        match self {
            Self::NameBasics => "name.basics",
            Self::TitleAkas => "title.akas",
            Self::TitleBasics => "title.basics",
            Self::TitleCrew => "title.crew",
            Self::TitleEpisode => "title.episode",
            Self::TitlePrincipals => "title.principals",
            Self::TitleRatings => "title.ratings",
        }
    }

    /// The file of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|file| file.name() == name)
    }

    /// Its columns, as its first line has them.
    pub fn columns(self) -> &'static [&'static str] {
        match self {
            Self::NameBasics => {
                &["nconst", "primaryName", "birthYear", "deathYear", "primaryProfession", "knownForTitles"]
            }
            Self::TitleAkas => {
                &["titleId", "ordering", "title", "region", "language", "types", "attributes", "isOriginalTitle"]
            }
            Self::TitleBasics => &[
                "tconst",
                "titleType",
                "primaryTitle",
                "originalTitle",
                "isAdult",
                "startYear",
                "endYear",
                "runtimeMinutes",
                "genres",
            ],
            Self::TitleCrew => &["tconst", "directors", "writers"],
            Self::TitleEpisode => &["tconst", "parentTconst", "seasonNumber", "episodeNumber"],
            Self::TitlePrincipals => &["tconst", "ordering", "nconst", "category", "job", "characters"],
            Self::TitleRatings => &["tconst", "averageRating", "numVotes"],
        }
    }

    /// How many rows the public file has.
    pub fn public_rows(self) -> u64 {
        PUBLIC_ROWS[self as usize]
    }

    /// How many bytes a row of the public file has, about.
    pub fn public_bytes_per_row(self) -> u64 {
        PUBLIC_BYTES_PER_ROW[self as usize]
    }
}
