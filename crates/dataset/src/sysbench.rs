//! The tables of sysbench's OLTP tests, as `prepare` of 1.0.20 makes them for PostgreSQL (oltp_common.lua; those of the
//! legacy script are the same, always with a sequence).
//!
//! Values are drawn from sysbench's distributions and not in its sequence: that depends on how its threads take turns.

use std::sync::Arc;

use pgdyno_workload::keys::SysbenchKeys;
use pgdyno_workload::{C_GROUPS, PAD_GROUPS, Purpose, Random, Refusal, write_groups, write_integer};
use serde::Deserialize;

use crate::rows::Rows;
use crate::table::{DataSet, Table, write_count};

/// An id is an integer.
const ROWS_MAX: u64 = i32::MAX as u64;

/// What sysbench's `prepare` is told.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SysbenchTables {
    /// How many tables (`--tables`).
    pub tables: u32,
    /// Rows of each (`--table-size`).
    pub rows: u64,
    /// Whether ids come from a sequence (`--auto-inc`), as in the legacy script.
    #[serde(default = "yes")]
    pub auto_inc: bool,
    /// Whether there is an index on `k` (`--create-secondary`).
    #[serde(default = "yes")]
    pub secondary_index: bool,
    /// How `k` is drawn (`--rand-type`).
    #[serde(default)]
    pub keys: SysbenchKeys,
}

fn yes() -> bool {
    true
}

/// The rows of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SysbenchRows {
    table: u32,
    count: u64,
    keys: SysbenchKeys,
    seed: u64,
}

impl Rows for SysbenchRows {
    fn units(&self) -> u64 {
        self.count
    }

    fn write(&self, row: u64, out: &mut Vec<u8>) -> u64 {
        let mut random = Random::derived(self.seed, Purpose::Rows, self.table, row);
        let last = i64::try_from(self.count).unwrap_or(i64::MAX);
        write_count(row + 1, out);
        out.push(b'\t');
        write_integer(self.keys.draw(&mut random, 1, last), out);
        out.push(b'\t');
        write_groups(&mut random, C_GROUPS, out);
        out.push(b'\t');
        write_groups(&mut random, PAD_GROUPS, out);
        out.push(b'\n');
        1
    }
}

impl DataSet for SysbenchTables {
    fn check(&self) -> Result<(), Refusal> {
        if self.tables == 0 {
            return Err(Refusal::new("there are no tables", "give at least one table"));
        }
        if self.rows > ROWS_MAX {
            let what = format!("{} rows do not fit a table: its id is an integer", self.rows);
            return Err(Refusal::new(what, "take more tables"));
        }
        Ok(())
    }

    fn tables(&self, seed: u64) -> Vec<Table> {
        (1..=self.tables).map(|number| table(self, number, seed)).collect()
    }

    fn drops(&self) -> Vec<String> {
        (1..=self.tables).map(|number| format!("DROP TABLE IF EXISTS sbtest{number}")).collect()
    }
}

fn table(asked: &SysbenchTables, number: u32, seed: u64) -> Table {
    let name = format!("sbtest{number}");
    let id = if asked.auto_inc { "SERIAL" } else { "INTEGER NOT NULL" };
    // The ids are written, not drawn from the sequence, which therefore has to be told how far they go.
    let sequence =
        (asked.auto_inc && asked.rows > 0).then(|| format!("SELECT setval('{name}_id_seq', {})", asked.rows));
    let index = asked.secondary_index.then(|| format!("CREATE INDEX k_{number} ON {name}(k)"));
    let rows = SysbenchRows { table: number, count: asked.rows, keys: asked.keys, seed };
    Table {
        create: format!(
            "CREATE TABLE {name} (id {id}, k INTEGER DEFAULT '0' NOT NULL, c CHAR(120) DEFAULT '' NOT NULL, \
             pad CHAR(60) DEFAULT '' NOT NULL)"
        ),
        rows: Arc::new(rows),
        after_rows: sequence.into_iter().collect(),
        primary_key: Some(format!("ALTER TABLE {name} ADD PRIMARY KEY (id)")),
        indexes: index.into_iter().collect(),
        foreign_keys: Vec::new(),
        name,
    }
}
