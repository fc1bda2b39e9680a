//! What to fill a server with: one JSON document on standard input.

use std::collections::BTreeMap;

use pgdyno_workload::data::{DataSet, PgbenchTables, SysbenchTables};
use pgdyno_workload::keys::SysbenchKeys;
use serde::Deserialize;

use pgdyno_drive::DriveError;

/// pgbench's own limits of the fill factor, which are PostgreSQL's.
const FILLFACTORS: std::ops::RangeInclusive<u32> = 10..=100;
/// An id of sysbench's tables is an integer.
const ROWS_MAX: u64 = i32::MAX as u64;

/// An order to fill a server. It holds no password: those come by libpq's environment and files.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FillSpec {
    /// The connection, in libpq's keywords; the environment and a service file say the rest.
    #[serde(default)]
    pub server: BTreeMap<String, String>,
    /// Which tables.
    pub tables: TablesSpec,
    /// What to do with them.
    #[serde(default)]
    pub action: Action,
    /// How many sessions work at a time, at most.
    #[serde(default = "one")]
    pub connections: u32,
    /// Whether several sessions write parts of one large table when there are fewer tables than sessions. Its rows are
    /// then not frozen as they are written, but by a vacuum afterwards.
    #[serde(default)]
    pub split: bool,
    /// Whether tables of these names that are there already are dropped first; otherwise they are an error.
    #[serde(default = "yes")]
    pub replace: bool,
    /// How often to say how far it is.
    #[serde(default = "second_ms")]
    pub interval_ms: u64,
    /// From which all that is random derives.
    #[serde(default = "one_seed")]
    pub seed: u64,
}

/// Which tables.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum TablesSpec {
    /// Those of `pgbench -i`.
    Pgbench {
        /// 100,000 accounts each.
        scale: u32,
        /// Of the tables, in per cent.
        #[serde(default = "hundred")]
        fillfactor: u32,
        /// Whether to add foreign keys.
        #[serde(default)]
        foreign_keys: bool,
        /// Where the tables lie.
        #[serde(default)]
        tablespace: Option<String>,
        /// Where the primary keys lie.
        #[serde(default)]
        index_tablespace: Option<String>,
    },
    /// Those of sysbench's `prepare`.
    Sysbench {
        /// How many.
        tables: u32,
        /// Rows of each.
        rows: u64,
        /// Whether ids have a sequence; always so in the legacy script.
        #[serde(default = "yes")]
        auto_inc: bool,
        /// Whether there is an index on `k`.
        #[serde(default = "yes")]
        secondary_index: bool,
        /// How `k` is drawn.
        #[serde(default)]
        keys: KeysSpec,
    },
}

/// What to do with the tables.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Make them.
    #[default]
    Fill,
    /// Remove them.
    Drop,
}

/// How `k` is drawn: sysbench's `--rand-type`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeysSpec {
    /// 1.0.20's default: most draws in a narrow band at the middle.
    #[default]
    Special,
    /// All alike.
    Uniform,
    /// A bell.
    Gaussian,
    /// Most draws at the beginning.
    Pareto,
}

fn one() -> u32 {
    1
}

fn one_seed() -> u64 {
    1
}

fn hundred() -> u32 {
    100
}

fn yes() -> bool {
    true
}

fn second_ms() -> u64 {
    1000
}

impl FillSpec {
    /// Refuses what cannot be made.
    pub(crate) fn check(&self) -> Result<(), DriveError> {
        let refuse = |what: String, remedy: &str| Err(DriveError::new(what, remedy));
        if self.connections == 0 || self.interval_ms == 0 {
            return refuse("connections or interval_ms is zero".to_owned(), "give at least 1 of each");
        }
        match self.tables {
            TablesSpec::Pgbench { scale: 0, .. } => {
                refuse("the scale factor is zero".to_owned(), "give a scale factor of at least 1")
            }
            TablesSpec::Pgbench { fillfactor, .. } if !FILLFACTORS.contains(&fillfactor) => {
                refuse(format!("the fill factor is {fillfactor}"), "give one from 10 to 100")
            }
            TablesSpec::Sysbench { tables: 0, .. } => {
                refuse("there are no tables".to_owned(), "give at least one table")
            }
            TablesSpec::Sysbench { rows, .. } if rows > ROWS_MAX => {
                refuse(format!("{rows} rows do not fit a table: its id is an integer"), "take more tables")
            }
            _ => Ok(()),
        }
    }

    /// The tables as the workload defines them.
    pub(crate) fn data_set(&self) -> DataSet {
        match &self.tables {
            TablesSpec::Pgbench { scale, fillfactor, foreign_keys, tablespace, index_tablespace } => {
                DataSet::Pgbench(PgbenchTables {
                    scale: *scale,
                    fillfactor: *fillfactor,
                    foreign_keys: *foreign_keys,
                    tablespace: tablespace.clone(),
                    index_tablespace: index_tablespace.clone(),
                })
            }
            TablesSpec::Sysbench { tables, rows, auto_inc, secondary_index, keys } => {
                DataSet::Sysbench(SysbenchTables {
                    tables: *tables,
                    rows: *rows,
                    auto_inc: *auto_inc,
                    secondary_index: *secondary_index,
                    keys: match keys {
                        KeysSpec::Special => SysbenchKeys::Special,
                        KeysSpec::Uniform => SysbenchKeys::Uniform,
                        KeysSpec::Gaussian => SysbenchKeys::Gaussian,
                        KeysSpec::Pareto => SysbenchKeys::Pareto,
                    },
                    seed: self.seed,
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(tables: &str) -> FillSpec {
        serde_json::from_str(&format!("{{\"tables\": {tables}}}")).expect("it can be read")
    }

    #[test]
    fn what_is_left_open_is_as_the_originals_have_it() {
        let pgbench = spec("{\"pgbench\": {\"scale\": 3}}");
        assert!(pgbench.check().is_ok() && pgbench.replace && !pgbench.split);
        assert_eq!(pgbench.data_set().tables()[0].rows, 300_000);
        let sysbench = spec("{\"sysbench\": {\"tables\": 2, \"rows\": 5}}");
        let tables = sysbench.data_set().tables();
        assert!(tables[0].create.contains("SERIAL") && tables[1].indexes.len() == 1);
    }

    #[test]
    fn what_cannot_be_made_is_refused() {
        for tables in [
            "{\"pgbench\": {\"scale\": 0}}",
            "{\"pgbench\": {\"scale\": 1, \"fillfactor\": 9}}",
            "{\"sysbench\": {\"tables\": 0, \"rows\": 1}}",
            "{\"sysbench\": {\"tables\": 1, \"rows\": 2147483648}}",
        ] {
            assert!(spec(tables).check().is_err(), "{tables}");
        }
        let unknown = serde_json::from_str::<FillSpec>("{\"tables\": {\"pgbench\": {\"scale\": 1, \"size\": 2}}}");
        assert!(unknown.is_err());
    }
}
