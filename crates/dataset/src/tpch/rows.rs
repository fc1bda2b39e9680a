//! The files and their rows, in parts that are made alone.

use std::fmt::Display;
use std::hint;
use std::io::Write;
use std::sync::Arc;

use pgdyno_workload::Refusal;
use tpchgen::generators::{
    Customer, CustomerGenerator, LineItem, LineItemGenerator, Nation, NationGenerator, Order, OrderGenerator, Part,
    PartGenerator, PartSupp, PartSuppGenerator, Region, RegionGenerator, Supplier, SupplierGenerator,
};

use super::file::{Ending, TableFile};
use super::line;
use super::scale::Scale;
use crate::file::DataFile;
use crate::rows::Rows;

/// Driving rows of a part where each makes one row: about 128 KiB, beside which it costs nothing to seek the begin of a part.
const PART_ROWS: u64 = 1000;
/// Where each makes four, as orders and parts do.
const PART_ROWS_OF_SEVERAL: u64 = 250;
/// Rows whose comments are looked at together, before they are written. Comments lie anywhere in 300 MiB, so each is a miss of all
/// caches: one after another they take more than half of the time, and looked at together memory brings many at a time.
const BATCH_ROWS: usize = 64;

/// The eight files at a scale: at 1 six million lines of orders, 1.1 GB in all.
///
/// # Errors
/// A scale that dbgen cannot have ([`Scale::new`]).
pub fn files(scale: f64, ending: Ending) -> Result<Vec<DataFile>, Refusal> {
    let scale = Scale::new(scale)?;
    Ok(TableFile::ALL
        .into_iter()
        .map(|table| DataFile {
            name: table.name(),
            suffix: "tbl".into(),
            head: None,
            bytes_per_row: table.bytes_per_row(),
            rows: Arc::new(TableRows::new(table, scale, ending)),
        })
        .collect())
}

/// The rows of one table. A unit is one of dbgen's parts: equally many driving rows, and in the last what is left.
#[derive(Debug)]
pub(super) struct TableRows {
    table: TableFile,
    scale: Scale,
    ending: Ending,
    parts: i32,
}

impl TableRows {
    pub(super) fn new(table: TableFile, scale: Scale, ending: Ending) -> Self {
        let of_part = match table {
            TableFile::Lineitem | TableFile::Partsupp => PART_ROWS_OF_SEVERAL,
            _ => PART_ROWS,
        };
        let parts = (table.driving_rows(scale) / of_part).max(1);
        Self { table, scale, ending, parts: i32::try_from(parts).expect("six million at scale 1,000") }
    }

    /// Appends rows, each with its end.
    fn write_all<R: Commented>(&self, mut rows: impl Iterator<Item = R>, out: &mut Vec<u8>) -> u64 {
        let (mut batch, mut count) = (Vec::with_capacity(BATCH_ROWS), 0);
        loop {
            batch.clear();
            batch.extend(rows.by_ref().take(BATCH_ROWS));
            if batch.is_empty() {
                return count;
            }
            hint::black_box(batch.iter().fold(0, |seen, row| seen ^ ends(row.comment())));
            batch.iter().for_each(|row| row.write(self.ending, out));
            count += batch.len() as u64;
        }
    }
}

/// A row whose comment is somewhere in dbgen's text.
trait Commented: Display + Sized {
    fn comment(&self) -> &str;

    /// Appends it with its end.
    fn write(&self, ending: Ending, out: &mut Vec<u8>) {
        write_row(self, ending, out);
    }
}

macro_rules! commented {
    ($($row:ident.$comment:ident),*) => {
        $(impl Commented for $row<'_> {
            fn comment(&self) -> &str {
                self.$comment
            }
        })*
    };
}

commented!(
    Customer.c_comment,
    Nation.n_comment,
    Order.o_comment,
    Part.p_comment,
    PartSupp.ps_comment,
    Region.r_comment
);

impl Commented for Supplier {
    fn comment(&self) -> &str {
        &self.s_comment
    }
}

impl Commented for LineItem<'_> {
    fn comment(&self) -> &str {
        self.l_comment
    }

    /// Two rows of three are of this table, so they are written without `Display`, which takes three times as long.
    fn write(&self, ending: Ending, out: &mut Vec<u8>) {
        line::write(self, ending, out);
    }
}

/// The first and the last byte of a text.
fn ends(text: &str) -> u8 {
    let bytes = text.as_bytes();
    bytes.first().zip(bytes.last()).map_or(0, |(first, last)| first ^ last)
}

/// Appends a row with its end.
pub(super) fn write_row(row: &impl Display, ending: Ending, out: &mut Vec<u8>) {
    let first = out.len();
    write!(out, "{row}").expect("memory takes all that is written");
    if ending != Ending::Separator {
        let last = out.pop();
        debug_assert_eq!(last, Some(b'|'), "each value has a separator behind it");
    }
    if ending == Ending::Copy {
        // Its texts have neither a separator nor anything that COPY takes for something else.
        out[first..].iter_mut().filter(|byte| **byte == b'|').for_each(|byte| *byte = b'\t');
    }
    out.push(b'\n');
}

impl Rows for TableRows {
    fn units(&self) -> u64 {
        self.parts.unsigned_abs().into()
    }

    fn write(&self, unit: u64, out: &mut Vec<u8>) -> u64 {
        let part = i32::try_from(unit).expect("units are dbgen's parts") + 1;
        let (scale, parts) = (self.scale.factor(), self.parts);
        match self.table {
            TableFile::Customer => self.write_all(CustomerGenerator::new(scale, part, parts).iter(), out),
            TableFile::Lineitem => self.write_all(LineItemGenerator::new(scale, part, parts).iter(), out),
            TableFile::Nation => self.write_all(NationGenerator::new(scale, part, parts).iter(), out),
            TableFile::Orders => self.write_all(OrderGenerator::new(scale, part, parts).iter(), out),
            TableFile::Part => self.write_all(PartGenerator::new(scale, part, parts).iter(), out),
            TableFile::Partsupp => self.write_all(PartSuppGenerator::new(scale, part, parts).iter(), out),
            TableFile::Region => self.write_all(RegionGenerator::new(scale, part, parts).iter(), out),
            TableFile::Supplier => self.write_all(SupplierGenerator::new(scale, part, parts).iter(), out),
        }
    }

    fn rows_expected(&self) -> u64 {
        self.table.rows(self.scale)
    }

    fn columns(&self) -> Option<&str> {
        Some(self.table.columns())
    }
}
