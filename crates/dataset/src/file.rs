//! One file of a data set.

use std::borrow::Cow;
use std::sync::Arc;

use crate::rows::Rows;

/// A file of lines: a head with the columns' names if it has one, then rows.
#[derive(Clone, Debug)]
pub struct DataFile {
    /// Its name without the suffix.
    pub name: &'static str,
    /// What follows its name and a dot: `tsv`, `tbl`, `tbl.u1`.
    pub suffix: Cow<'static, str>,
    /// The names of its columns, which its first line has with tabs between them; none in a file that begins with a row.
    pub head: Option<&'static [&'static str]>,
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
