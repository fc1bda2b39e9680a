//! A data set: its titles, its people, its seed.

use super::file::File;
use super::ids::People;
use super::title::Titles;

/// The data set of a size and a seed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Imdb {
    pub(super) titles: Titles,
    pub(super) people: People,
    pub(super) seed: u64,
}

impl Imdb {
    /// So much of the public data set: at 1 as many titles and people as there.
    pub fn new(scale: f64, seed: u64) -> Self {
        let count = |file: File| ((file.public_rows() as f64 * scale).round() as u64).max(1);
        let titles = Titles::new(count(File::TitleBasics));
        Self { titles, people: People::new(count(File::NameBasics)), seed }
    }
}
