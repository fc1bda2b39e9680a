//! The tables of sysbench's OLTP tests, as `prepare` of 1.0.20 makes them for PostgreSQL (oltp_common.lua; those of the
//! legacy script are the same, always with a sequence).
//!
//! Values are drawn from sysbench's distributions and not in its sequence: that depends on how its threads take turns.

use super::{Source, Table, write_count};
use crate::keys::SysbenchKeys;
use crate::random::{Purpose, Random};
use crate::template::write_integer;

/// Groups of eleven digits in `c`, with dashes between them: 119 characters.
pub(crate) const C_GROUPS: u32 = 10;
/// The same in `pad`: 59 characters.
pub(crate) const PAD_GROUPS: u32 = 5;
const GROUP_DIGITS: usize = 11;

/// What sysbench's `prepare` is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SysbenchTables {
    /// How many tables (`--tables`).
    pub tables: u32,
    /// Rows of each (`--table-size`).
    pub rows: u64,
    /// Whether ids come from a sequence (`--auto-inc`), as in the legacy script.
    pub auto_inc: bool,
    /// Whether there is an index on `k` (`--create-secondary`).
    pub secondary_index: bool,
    /// How `k` is drawn (`--rand-type`).
    pub keys: SysbenchKeys,
    /// From which the values derive.
    pub seed: u64,
}

/// The rows of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rows {
    table: u32,
    count: u64,
    keys: SysbenchKeys,
    seed: u64,
}

impl Rows {
    pub(super) fn write_row(&self, row: u64, out: &mut Vec<u8>) {
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
    }
}

/// Appends groups of eleven random digits with dashes between them.
pub(crate) fn write_groups(random: &mut Random, groups: u32, out: &mut Vec<u8>) {
    for group in 0..groups {
        if group > 0 {
            out.push(b'-');
        }
        let mut rest = random.up_to(99_999_999_999);
        let begin = out.len();
        out.resize(begin + GROUP_DIGITS, b'0');
        for digit in out[begin..].iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
    }
}

pub(super) fn drops(asked: &SysbenchTables) -> Vec<String> {
    (1..=asked.tables).map(|number| format!("DROP TABLE IF EXISTS sbtest{number}")).collect()
}

pub(super) fn tables(asked: &SysbenchTables) -> Vec<Table> {
    (1..=asked.tables).map(|number| table(asked, number)).collect()
}

fn table(asked: &SysbenchTables, number: u32) -> Table {
    let name = format!("sbtest{number}");
    let id = if asked.auto_inc { "SERIAL" } else { "INTEGER NOT NULL" };
    // The ids are written, not drawn from the sequence, which therefore has to be told how far they go.
    let sequence =
        (asked.auto_inc && asked.rows > 0).then(|| format!("SELECT setval('{name}_id_seq', {})", asked.rows));
    let index = asked.secondary_index.then(|| format!("CREATE INDEX k_{number} ON {name}(k)"));
    Table {
        create: format!(
            "CREATE TABLE {name} (id {id}, k INTEGER DEFAULT '0' NOT NULL, c CHAR(120) DEFAULT '' NOT NULL, \
             pad CHAR(60) DEFAULT '' NOT NULL)"
        ),
        rows: asked.rows,
        after_rows: sequence.into_iter().collect(),
        primary_key: Some(format!("ALTER TABLE {name} ADD PRIMARY KEY (id)")),
        indexes: index.into_iter().collect(),
        foreign_keys: Vec::new(),
        source: Source::Sysbench(Rows { table: number, count: asked.rows, keys: asked.keys, seed: asked.seed }),
        name,
    }
}
