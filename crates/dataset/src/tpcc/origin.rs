//! What rows are made of.

use pgdyno_workload::tpcc::Profile;

/// What the rows of a table derive from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub warehouses: u64,
    pub profile: Profile,
    pub seed: u64,
}
