//! sysbench's OLTP tests on PostgreSQL: the legacy transaction, and the scripts of 1.0.20.
//!
//! The tables are `sbtest1`, `sbtest2`, … with `id`, `k`, `c` and `pad`. Statements, their order and how their values are
//! drawn are those of the scripts that come with sysbench 1.0.20 (Debian, read 2026-11).

mod event;
mod plan;

pub(crate) use event::Event;
pub(crate) use plan::Plan;

use crate::keys::SysbenchKeys;

/// One test and its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sysbench {
    /// Which test.
    pub test: SysbenchTest,
    /// How many tables.
    pub tables: u32,
    /// How many rows each table has.
    pub table_size: i64,
    /// How ids and `k` are drawn.
    pub keys: SysbenchKeys,
    /// How many clients there are in all: two tests give each its part of the table.
    pub clients: u32,
    /// Point queries in a transaction.
    pub point_selects: u32,
    /// Queries of each of the four kinds of ranges in a transaction.
    pub ranges: u32,
    /// Rows in a range.
    pub range_size: i64,
    /// Changes of each kind in a transaction: of `k`, of `c`, and of a row that goes and comes again.
    pub changes: u32,
    /// Whether to leave out BEGIN and COMMIT.
    pub skip_transaction: bool,
}

/// The tests. Their names are those of sysbench's scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SysbenchTest {
    /// The `oltp.lua` of sysbench 0.5 and of `oltp_legacy` in 1.0: 18 statements between BEGIN and COMMIT, all on one
    /// table. It sends simple queries.
    Legacy,
    /// `oltp_read_write`: the same statements, with the table drawn anew for each group of them.
    ReadWrite,
    /// `oltp_read_only`: its queries.
    ReadOnly,
    /// `oltp_write_only`: its changes.
    WriteOnly,
    /// `oltp_point_select`: one row by its id, without a transaction block.
    PointSelect,
    /// `oltp_insert`: one row with an id from the table's sequence (`--auto-inc` on).
    Insert,
    /// `oltp_delete`: one row by its id; with time fewer and fewer are there.
    Delete,
    /// `oltp_update_index`: `k` of one row.
    UpdateIndex,
    /// `oltp_update_non_index`: `c` of one row.
    UpdateNonIndex,
    /// `select_random_points`: ten values of `k`.
    RandomPoints,
    /// `select_random_ranges`: ten ranges of `k`.
    RandomRanges,
}

impl SysbenchTest {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Legacy,
        Self::ReadWrite,
        Self::ReadOnly,
        Self::WriteOnly,
        Self::PointSelect,
        Self::Insert,
        Self::Delete,
        Self::UpdateIndex,
        Self::UpdateNonIndex,
        Self::RandomPoints,
        Self::RandomRanges,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Legacy => "oltp_legacy",
            Self::ReadWrite => "oltp_read_write",
            Self::ReadOnly => "oltp_read_only",
            Self::WriteOnly => "oltp_write_only",
            Self::PointSelect => "oltp_point_select",
            Self::Insert => "oltp_insert",
            Self::Delete => "oltp_delete",
            Self::UpdateIndex => "oltp_update_index",
            Self::UpdateNonIndex => "oltp_update_non_index",
            Self::RandomPoints => "select_random_points",
            Self::RandomRanges => "select_random_ranges",
        }
    }

    /// The test of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|test| test.name() == name)
    }
}

impl Sysbench {
    /// A test with sysbench's defaults: one table of 10,000 rows, the `special` distribution.
    pub fn new(test: SysbenchTest, clients: u32) -> Self {
        Self {
            test,
            tables: 1,
            table_size: 10_000,
            keys: SysbenchKeys::Special,
            clients,
            point_selects: if test == SysbenchTest::PointSelect { 1 } else { 10 },
            ranges: 1,
            range_size: 100,
            changes: 1,
            skip_transaction: false,
        }
    }
}
