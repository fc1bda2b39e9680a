//! Tables derived from TPC-C: columns, keys and indexes as HammerDB's TPROC-C 6.0 has them, in a schema of their own.
//!
//! The profile `hammerdb` keeps that program's values, `spec` those of TPC-C 5.11, its key of `stock` and its references. Rows
//! begin with an instant that is always the same, so that a seed decides every byte of them.

mod batches;
mod customer;
mod definitions;
mod item;
mod line;
mod order;
mod origin;
mod routines;
mod warehouse;

use pgdyno_workload::Refusal;
use pgdyno_workload::tpcc::{Profile, Routines, SCHEMA, WAREHOUSES_MAX};
use serde::Deserialize;

use self::origin::Origin;
use crate::table::{Batches, DataSet, Table};

/// Tables with their routines.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TpccTables {
    /// How many warehouses there are.
    pub warehouses: u32,
    /// Whose laws the values follow.
    #[serde(default)]
    pub profile: Profile,
    /// What the routines are.
    #[serde(default)]
    pub routines: Routines,
}

impl TpccTables {
    /// What the schema's comment says of the tables in it.
    fn comment(&self) -> String {
        let profile = match self.profile {
            Profile::Hammerdb => "hammerdb",
            Profile::Spec => "spec",
        };
        let routines = match self.routines {
            Routines::Functions => "functions",
            Routines::Procedures => "procedures",
            Routines::Statements => "statements",
        };
        format!("pgdyno: derived from TPC-C; profile {profile}, {} warehouses, {routines}", self.warehouses)
    }
}

impl DataSet for TpccTables {
    fn check(&self) -> Result<(), Refusal> {
        if !(1..=WAREHOUSES_MAX).contains(&self.warehouses) {
            let what = format!("{} warehouses cannot be made", self.warehouses);
            return Err(Refusal::new(what, format!("take 1 to {WAREHOUSES_MAX}")));
        }
        if self.profile == Profile::Spec && self.routines == Routines::Procedures {
            return Err(Refusal::new("the profile spec has no procedures", "take functions"));
        }
        if self.profile == Profile::Hammerdb && self.routines == Routines::Statements {
            return Err(Refusal::new(
                "the profile hammerdb has its statements in routines",
                "take functions or procedures",
            ));
        }
        Ok(())
    }

    fn before(&self) -> Vec<String> {
        vec![format!("CREATE SCHEMA {SCHEMA}")]
    }

    fn tables(&self, seed: u64) -> Vec<Table> {
        let origin = Origin { warehouses: u64::from(self.warehouses), profile: self.profile, seed };
        definitions::tables(origin)
    }

    fn batches(&self) -> Option<Batches> {
        Some(batches::batches(u64::from(self.warehouses)))
    }

    fn after(&self) -> Vec<String> {
        let mut statements = routines::create(self.profile, self.routines);
        statements.push(format!("COMMENT ON SCHEMA {SCHEMA} IS '{}'", self.comment()));
        statements
    }

    /// One order, so that the schema goes last; it stays, with an error, where it holds anything else.
    fn drops(&self) -> Vec<String> {
        let tables: Vec<String> = definitions::NAMES.iter().map(|name| format!("{SCHEMA}.{name}")).collect();
        let mut all = vec![format!("DROP TABLE IF EXISTS {}", tables.join(", "))];
        all.extend(routines::NAMES.iter().map(|name| format!("DROP ROUTINE IF EXISTS {SCHEMA}.{name}")));
        all.push(format!("DROP SCHEMA IF EXISTS {SCHEMA}"));
        vec![all.join("; ")]
    }
}
