//! What a workload derived from TPC-C is told.

use serde::Deserialize;

/// A warehouse's id is an integer, and an order's key begins with it; far below, its tables fill any disk.
pub const WAREHOUSES_MAX: u32 = 100_000;

/// Which laws hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// Those of HammerDB's TPROC-C 6.0.
    #[default]
    Hammerdb,
    /// Those of TPC-C 5.11.
    Spec,
}

/// Where a transaction's statements are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Routines {
    /// In functions of the server: a transaction is one statement.
    #[default]
    Functions,
    /// In procedures of the server.
    Procedures,
    /// In the client, which sends them one by one.
    Statements,
}

/// Whose tables and routines they are, by the schema that they are in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum Schema {
    /// Those that pgdyno has filled.
    #[default]
    #[serde(rename = "pgdyno_tpcc")]
    Own,
    /// Those that HammerDB has built.
    #[serde(rename = "public")]
    Public,
}

/// All of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub profile: Profile,
    pub routines: Routines,
    pub warehouses: i64,
    pub clients: i64,
    pub all_warehouses: bool,
    pub keying: bool,
    pub names_match: bool,
    /// Whether HammerDB has built them.
    pub built: bool,
}
