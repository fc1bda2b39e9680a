//! Seven files in the shape of IMDb's public data sets: their names, columns, nulls, ratios of rows, and skew.
//!
//! Nothing in them is IMDb's: titles and names are made of syllables. Where each figure comes from stands beside it; what is
//! published nowhere is an assumption, and said to be one. The profile is that of the public files of March 2026 (204,295,502
//! rows), the columns are those of IMDb's documentation of its non-commercial data sets.
//!
//! The rows of a title, or of a person, are a function of the seed, the file and the title's number alone. So files can be made
//! at the same time, and agree: the titles that one calls episodes have a parent in another.

mod counts;
mod draw;
mod ids;
mod person;
mod tables;
mod title;
mod words;

use ids::People;
use title::Titles;

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

/// The data set of a size and a seed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Imdb {
    titles: Titles,
    people: People,
    seed: u64,
}

impl Imdb {
    /// So much of the public data set: at 1 as many titles and people as there.
    pub fn new(scale: f64, seed: u64) -> Self {
        let count = |file: File| ((file.public_rows() as f64 * scale).round() as u64).max(1);
        let titles = Titles::new(count(File::TitleBasics));
        Self { titles, people: People::new(count(File::NameBasics)), seed }
    }

    /// How many titles, or people, a file is about; they are numbered from 0.
    pub fn units(&self, file: File) -> u64 {
        match file {
            File::NameBasics => self.people.count(),
            _ => self.titles.count(),
        }
    }

    /// Appends the rows of one title or person, each with its line's end. Returns how many they are: none of a title without
    /// ratings, several of one with names in several languages.
    pub fn write(&self, file: File, unit: u64, out: &mut Vec<u8>) -> u64 {
        match file {
            File::NameBasics => person::write(self, unit, out),
            File::TitleAkas => tables::akas(self, unit, out),
            File::TitleBasics => tables::basics(self, unit, out),
            File::TitleCrew => tables::crew(self, unit, out),
            File::TitleEpisode => tables::episode(self, unit, out),
            File::TitlePrincipals => tables::principals(self, unit, out),
            File::TitleRatings => tables::ratings(self, unit, out),
        }
    }
}
