//! Which of sysbench's tests, and its options.

use crate::keys::{SysbenchKeys, SysbenchShape};

/// One test and its options, each by the name that it has there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sysbench {
    /// Which test.
    pub test: SysbenchTest,
    /// How many tables.
    pub tables: u32,
    /// How many rows each table has.
    pub table_size: i64,
    /// How ids and `k` are drawn (`rand_type`).
    pub keys: SysbenchKeys,
    /// The settings of that (`rand_spec_iter` and the like).
    pub shape: SysbenchShape,
    /// How many clients there are in all: two tests give each its part of the table.
    pub clients: u32,
    /// Point queries in a transaction.
    pub point_selects: u32,
    /// Queries of a range's rows in a transaction.
    pub simple_ranges: u32,
    /// Queries of a range's sum in a transaction.
    pub sum_ranges: u32,
    /// Queries of a range's rows in order in a transaction.
    pub order_ranges: u32,
    /// Queries of a range's distinct rows in a transaction.
    pub distinct_ranges: u32,
    /// Rows in a range.
    pub range_size: i64,
    /// Changes of `k` in a transaction.
    pub index_updates: u32,
    /// Changes of `c` in a transaction.
    pub non_index_updates: u32,
    /// Rows that go and come again in a transaction.
    pub delete_inserts: u32,
    /// Values of `k` that `select_random_points` asks for.
    pub random_points: u32,
    /// Ranges of `k` that `select_random_ranges` asks for.
    pub number_of_ranges: u32,
    /// How far such a range goes beyond its first value.
    pub delta: i64,
    /// Whether to leave out BEGIN and COMMIT.
    pub skip_trx: bool,
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
    /// `oltp_insert`: one row with an id from the table's sequence (`--auto-inc` on). It sends simple queries.
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
            Self::Legacy => "legacy",
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

    /// Whether its script sends text with the values in it, whatever `--db-ps-mode` is.
    pub fn sends_text(self) -> bool {
        matches!(self, Self::Legacy | Self::Insert)
    }

    /// Whether it asks for values of `k`: such a test has one table, and each client a part of it.
    pub fn is_on_k(self) -> bool {
        matches!(self, Self::RandomPoints | Self::RandomRanges)
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
            shape: SysbenchShape::DEFAULT,
            clients,
            point_selects: 10,
            simple_ranges: 1,
            sum_ranges: 1,
            order_ranges: 1,
            distinct_ranges: 1,
            range_size: 100,
            index_updates: 1,
            non_index_updates: 1,
            delete_inserts: 1,
            random_points: 10,
            number_of_ranges: 10,
            delta: 5,
            skip_trx: false,
        }
    }
}
