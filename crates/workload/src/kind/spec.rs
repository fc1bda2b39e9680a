//! The list of all kinds, by the names under which they are asked for.

use serde::Deserialize;

use super::idle::Idle;
use super::pgbench::PgbenchSpec;
use super::sysbench::SysbenchSpec;
use super::tpcc::TpccSpec;
use crate::error::Refusal;
use crate::workload::{Kind, Workload};

/// What clients ask for.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum WorkloadSpec {
    /// Nothing: transactions begin on time and are over, so that the driver measures itself. Connects to nothing.
    Idle,
    /// Scripts of pgbench.
    Pgbench(PgbenchSpec),
    /// A test of sysbench 1.0.20.
    Sysbench(SysbenchSpec),
    /// Transactions derived from TPC-C.
    Tpcc(TpccSpec),
}

impl WorkloadSpec {
    /// The workload, for so many clients in all, in a world that is `dilation` times slower.
    ///
    /// # Errors
    /// What cannot be driven; what is wrong with a script is said with line and column.
    pub fn workload(&self, clients: u32, dilation: u32) -> Result<Workload, Refusal> {
        let kind: Box<dyn Kind> = match self {
            Self::Idle => Box::new(Idle),
            Self::Pgbench(asked) => Box::new(asked.scripts(dilation)?),
            Self::Sysbench(asked) => Box::new(asked.oltp(clients)?),
            Self::Tpcc(asked) => Box::new(asked.tpcc(clients)?),
        };
        Ok(Workload::new(kind, dilation))
    }
}
