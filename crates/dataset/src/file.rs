//! One file of a data set.

use std::sync::Arc;

use crate::rows::Rows;

/// A file of lines: a head with the columns' names, then rows, all with tabs between their fields.
#[derive(Clone, Debug)]
pub struct DataFile {
    /// Its name without the suffix.
    pub name: &'static str,
    /// The names of its columns.
    pub columns: &'static [&'static str],
    /// How many bytes a row has, about.
    pub bytes_per_row: u64,
    /// Its rows.
    pub rows: Arc<dyn Rows>,
}

impl DataFile {
    /// How many bytes it will have, about: for progress bars, and to begin with the largest.
    pub fn bytes_expected(&self) -> u64 {
        self.rows.rows_expected() * self.bytes_per_row
    }
}
