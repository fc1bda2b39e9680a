//! The tables that benchmarks begin with: how they are defined, and their rows as text for COPY.
//!
//! A row is a function of its table, its number and the seed. So a table may be written in parts, in any order and by
//! several sessions, and is the same.

mod pgbench;
mod sysbench;

pub use pgbench::PgbenchTables;
pub use sysbench::SysbenchTables;
pub(crate) use sysbench::{C_GROUPS, PAD_GROUPS, write_groups};

use crate::template::write_integer;

/// All tables of a benchmark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataSet {
    /// Those of `pgbench -i`.
    Pgbench(PgbenchTables),
    /// Those of sysbench's OLTP tests.
    Sysbench(SysbenchTables),
}

impl DataSet {
    /// Each table, the largest first.
    pub fn tables(&self) -> Vec<Table> {
        match self {
            Self::Pgbench(asked) => pgbench::tables(asked),
            Self::Sysbench(asked) => sysbench::tables(asked),
        }
    }

    /// Statements that remove the tables, whether they are there or not. They do not depend on each other.
    pub fn drops(&self) -> Vec<String> {
        match self {
            Self::Pgbench(_) => vec![pgbench::drop_all()],
            Self::Sysbench(asked) => sysbench::drops(asked),
        }
    }
}

/// One table: statements that make it, and its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name, which needs no quotes.
    pub name: String,
    /// Creates it, without keys and indexes: these are made faster when the rows are there.
    pub create: String,
    /// How many rows it begins with.
    pub rows: u64,
    /// What is to be done once the rows are there, in the same transaction or later.
    pub after_rows: Vec<String>,
    /// Adds the primary key.
    pub primary_key: Option<String>,
    /// Create the other indexes.
    pub indexes: Vec<String>,
    /// Add the foreign keys. The primary keys of all tables have to be there.
    pub foreign_keys: Vec<String>,
    source: Source,
}

/// Where rows come from.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    /// A table that begins empty.
    Nothing,
    Pgbench(pgbench::Kind),
    Sysbench(sysbench::Rows),
}

impl Table {
    /// Appends a row, by its number from 0, as a line of COPY's text format.
    ///
    /// # Panics
    /// When the table has no such row.
    pub fn write_row(&self, row: u64, out: &mut Vec<u8>) {
        assert!(row < self.rows, "{} has {} rows, none is number {row}", self.name, self.rows);
        match &self.source {
            Source::Nothing => {}
            Source::Pgbench(kind) => kind.write_row(row, out),
            Source::Sysbench(rows) => rows.write_row(row, out),
        }
    }
}

/// A number that counts something, in decimal digits.
fn write_count(value: u64, out: &mut Vec<u8>) {
    write_integer(i64::try_from(value).unwrap_or(i64::MAX), out);
}

/// A name as an identifier, whatever is in it.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
