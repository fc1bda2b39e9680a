//! Whose definitions the tables have, and the schema that they are in.

use serde::Deserialize;

/// The schema of the tables, and of the views that queries make.
pub(super) const SCHEMA: &str = "pgdyno_tpch";

/// Whose columns, keys and indexes the tables have. The rows are dbgen's in both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// Those of HammerDB's TPROC-H 6.0.
    #[default]
    Hammerdb,
    /// Those of TPC-H 3.0.
    Spec,
}
