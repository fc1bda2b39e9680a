//! The one thing that every data set does: it writes rows, unit by unit.

use std::fmt::Debug;
use std::ops::Range;

/// The rows of a table or of a file. They are made by units: a row, an order with its lines, a title with its names.
///
/// What a unit writes depends on its number and on nothing else, so units may be written in parts, in any order and on
/// several threads, and the rows are the same.
pub trait Rows: Debug + Send + Sync {
    /// How many units there are, numbered from 0.
    fn units(&self) -> u64;

    /// Appends the rows of one unit, each a line of COPY's text format with its end. Returns how many, which may be none.
    fn write(&self, unit: u64, out: &mut Vec<u8>) -> u64;

    /// How many rows all units have. Where a unit has any number of rows this is an estimate, for progress bars.
    fn rows_expected(&self) -> u64 {
        self.units()
    }

    /// The columns of a row in their order, where a table may have them in another; `None`: as the table has them.
    fn columns(&self) -> Option<&str> {
        None
    }

    /// Takes units off the front of `units` and writes them until `out` has `bytes` or more, or no unit is left. Returns the
    /// number of rows.
    fn write_until(&self, bytes: usize, units: &mut Range<u64>, out: &mut Vec<u8>) -> u64 {
        let mut rows = 0;
        while out.len() < bytes
            && let Some(unit) = units.next()
        {
            rows += self.write(unit, out);
        }
        rows
    }
}

/// No rows: a table that begins empty.
#[derive(Debug)]
pub(crate) struct NoRows;

impl Rows for NoRows {
    fn units(&self) -> u64 {
        0
    }

    fn write(&self, _unit: u64, _out: &mut Vec<u8>) -> u64 {
        0
    }
}
