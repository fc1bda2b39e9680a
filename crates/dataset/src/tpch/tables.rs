//! The eight tables derived from TPC-H in a schema of their own, with dbgen's rows.

use pgdyno_workload::Refusal;
use serde::Deserialize;

use super::profile::{Profile, SCHEMA};
use super::scale::Scale;
use super::{batches, definitions};
use crate::table::{Batches, DataSet, Table};

/// The tables with their keys.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TpchTables {
    /// dbgen's scale factor: 0.001 to 1,000 in thousandths.
    pub scale_factor: f64,
    /// Whose definitions.
    #[serde(default)]
    pub profile: Profile,
}

impl TpchTables {
    fn scale(&self) -> Result<Scale, Refusal> {
        Scale::new(self.scale_factor)
    }

    /// What the schema's comment says of the tables in it.
    fn comment(&self) -> String {
        let profile = match self.profile {
            Profile::Hammerdb => "hammerdb",
            Profile::Spec => "spec",
        };
        format!("pgdyno: derived from TPC-H; profile {profile}, scale factor {}", self.scale_factor)
    }
}

impl DataSet for TpchTables {
    fn check(&self) -> Result<(), Refusal> {
        if self.scale()?.repeats_suppliers() {
            let what = format!("scale factor {}: dbgen gives some parts one supplier twice", self.scale_factor);
            return Err(Refusal::new(format!("{what}, so that partsupp has no primary key"), "take 0.01 or more"));
        }
        Ok(())
    }

    fn before(&self) -> Vec<String> {
        vec![format!("CREATE SCHEMA {SCHEMA}")]
    }

    /// dbgen's seeds are fixed, so that no other seed changes a row.
    fn tables(&self, _seed: u64) -> Vec<Table> {
        // What cannot be made was refused.
        self.scale().map(|scale| definitions::tables(self.profile, scale)).unwrap_or_default()
    }

    fn batches(&self) -> Option<Batches> {
        // What cannot be made was refused.
        self.scale().ok().map(batches::batches)
    }

    fn after(&self) -> Vec<String> {
        vec![format!("COMMENT ON SCHEMA {SCHEMA} IS '{}'", self.comment())]
    }

    /// One order, so that the schema goes last; it stays, with an error, where it holds anything else.
    fn drops(&self) -> Vec<String> {
        let tables: Vec<String> = definitions::NAMES.iter().map(|name| format!("{SCHEMA}.{name}")).collect();
        vec![format!("DROP TABLE IF EXISTS {}; DROP SCHEMA IF EXISTS {SCHEMA}", tables.join(", "))]
    }
}
