//! A data set of tables: the statements that make each, and its rows.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use pgdyno_workload::{Refusal, write_integer};

use crate::rows::Rows;

/// One table: statements that make it, and its rows.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its name, which needs no quotes.
    pub name: String,
    /// Creates it, without keys and indexes: these are made faster when the rows are there.
    pub create: String,
    /// The rows that it begins with.
    pub rows: Arc<dyn Rows>,
    /// Statements to run once the rows are there, in the same transaction or later.
    pub after_rows: Vec<String>,
    /// Adds the primary key.
    pub primary_key: Option<String>,
    /// Create the other indexes.
    pub indexes: Vec<String>,
    /// Add the foreign keys. The primary keys of all tables have to be there.
    pub foreign_keys: Vec<String>,
}

/// Rows that one statement writes, with a commit of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Of which table, by its place in [`DataSet::tables`].
    pub table: usize,
    /// Which units.
    pub units: Range<u64>,
}

/// The batches of a part of the rows.
pub trait PartBatches: Debug + Send + Sync {
    /// Those of a phase, in their order.
    fn of(&self, phase: u32, part: u64) -> Vec<Batch>;
}

/// The batches in which a program loads. Sessions take contiguous shares of the parts, and do a phase of all theirs before the next.
#[derive(Clone, Debug)]
pub struct Batches {
    /// Whether the tables have their primary keys before the rows come.
    pub keys_first: bool,
    /// Whether a batch is one INSERT of all its rows, and not a COPY.
    pub inserts: bool,
    /// By one session, before all others.
    pub first: Vec<Batch>,
    /// How many parts there are.
    pub parts: u64,
    /// How many phases a part has.
    pub phases: u32,
    /// The batches of each part.
    pub of: Arc<dyn PartBatches>,
}

/// A data set that is filled into a server.
pub trait DataSet: Debug {
    /// Refuses what cannot be made.
    fn check(&self) -> Result<(), Refusal>;

    /// Statements that make what the tables stand in. What they make is there by them alone: one that finds it there fails.
    fn before(&self) -> Vec<String> {
        Vec::new()
    }

    /// Each table, the largest first. All that is random in them derives from `seed`.
    fn tables(&self, seed: u64) -> Vec<Table>;

    /// How the original program loads, where that is in small batches; `None` where `fill` knows no such way.
    fn batches(&self) -> Option<Batches> {
        None
    }

    /// Statements to run when all tables are there with their keys.
    fn after(&self) -> Vec<String> {
        Vec::new()
    }

    /// Statements that remove the tables, whether they are there or not. They do not depend on each other.
    fn drops(&self) -> Vec<String>;
}

/// Appends a number in decimal digits.
pub(crate) fn write_count(value: u64, out: &mut Vec<u8>) {
    write_integer(i64::try_from(value).unwrap_or(i64::MAX), out);
}

/// A name as a quoted SQL identifier.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
