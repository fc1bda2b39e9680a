//! The list of all data sets that are tables, by the names under which they are asked for.

use serde::Deserialize;

use crate::pgbench::PgbenchTables;
use crate::sysbench::SysbenchTables;
use crate::table::DataSet;
use crate::tpcc::TpccTables;
use crate::tpch::TpchTables;

/// The tables of a workload, by its name. A further data set is a file, a variant and its line in `set`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Tables {
    /// Those of `pgbench -i`.
    Pgbench(PgbenchTables),
    /// Those of sysbench's `prepare`.
    Sysbench(SysbenchTables),
    /// Those derived from TPC-C.
    Tpcc(TpccTables),
    /// Those derived from TPC-H.
    Tpch(TpchTables),
}

impl Tables {
    /// The data set.
    pub fn set(&self) -> &dyn DataSet {
        match self {
            Self::Pgbench(asked) => asked,
            Self::Sysbench(asked) => asked,
            Self::Tpcc(asked) => asked,
            Self::Tpch(asked) => asked,
        }
    }
}
