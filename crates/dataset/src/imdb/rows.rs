//! The files and their rows.

use std::sync::Arc;

use pgdyno_workload::Refusal;

use super::data::Imdb;
use super::file::File;
use super::{person, tables};
use crate::file::DataFile;
use crate::rows::Rows;

/// Ten times the public data set is about 90 GB; more would be a mistake.
const SCALE_MAX: f64 = 10.0;

/// The seven files at a scale: at 1 as many titles and people as in the public data set.
///
/// # Errors
/// A scale that is not above 0 and at most 10.
pub fn files(scale: f64, seed: u64) -> Result<Vec<DataFile>, Refusal> {
    if !(scale > 0.0 && scale <= SCALE_MAX) {
        return Err(Refusal::new(format!("the scale is {scale}"), "give one above 0 and up to 10, as 0.01"));
    }
    let data = Imdb::new(scale, seed);
    Ok(File::ALL.into_iter().map(|file| data.file(file)).collect())
}

impl Imdb {
    /// One of its files.
    pub fn file(self, file: File) -> DataFile {
        DataFile {
            name: file.name(),
            suffix: "tsv".into(),
            head: Some(file.columns()),
            bytes_per_row: file.public_bytes_per_row(),
            rows: Arc::new(FileRows { data: self, file }),
        }
    }
}

/// The rows of one file. A unit is a title, or a person: it has no row without ratings, several with names in several languages.
#[derive(Debug)]
struct FileRows {
    data: Imdb,
    file: File,
}

impl Rows for FileRows {
    fn units(&self) -> u64 {
        match self.file {
            File::NameBasics => self.data.people.count(),
            _ => self.data.titles.count(),
        }
    }

    fn write(&self, unit: u64, out: &mut Vec<u8>) -> u64 {
        let data = &self.data;
        match self.file {
            File::NameBasics => person::write(data, unit, out),
            File::TitleAkas => tables::akas(data, unit, out),
            File::TitleBasics => tables::basics(data, unit, out),
            File::TitleCrew => tables::crew(data, unit, out),
            File::TitleEpisode => tables::episode(data, unit, out),
            File::TitlePrincipals => tables::principals(data, unit, out),
            File::TitleRatings => tables::ratings(data, unit, out),
        }
    }

    /// As many for a title or a person as in the public files.
    fn rows_expected(&self) -> u64 {
        let of_public = if self.file == File::NameBasics { File::NameBasics } else { File::TitleBasics };
        let rows_per_unit = self.file.public_rows() as f64 / of_public.public_rows() as f64;
        (self.units() as f64 * rows_per_unit).round() as u64
    }
}
