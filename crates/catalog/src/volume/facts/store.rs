//! The local storage of instance types: what it holds and how many reads and writes of 4 KiB it does in a second.

use serde::{Deserialize, Serialize};

use crate::fact::{Fact, Origin};
use crate::units::MIB;

/// The instance types whose store can be asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoreFacts {
    /// Which one it is unless another is asked for.
    pub default: Fact<String>,
    pub bucket_depth_ms: Fact<u64>,
    pub types: Vec<InstanceStore>,
}

/// All devices of one instance type together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct InstanceStore {
    /// The instance type.
    pub name: String,
    /// What the provider calls its size: decimal.
    pub size_gb: Fact<u64>,
    /// Reads and writes per second.
    pub read_write_iops: Fact<[u64; 2]>,
}

impl StoreFacts {
    /// The store of an instance type.
    pub fn named(&self, name: &str) -> Option<&InstanceStore> {
        self.types.iter().find(|store| store.name.eq_ignore_ascii_case(name))
    }

    pub fn check(&self) -> Result<(), String> {
        if self.named(&self.default.value).is_none() {
            return Err(format!("instance_store: the default {:?} is not in the list", self.default.value));
        }
        match self.types.iter().find(|store| store.size_gb.value == 0 || store.read_write_iops.value.contains(&0)) {
            Some(store) => Err(format!("instance_store: {}: size and IOPS must be above zero", store.name)),
            None => Ok(()),
        }
    }

    pub fn origins(&self) -> Vec<Origin<'_>> {
        let mut all = vec![self.default.origin(), self.bucket_depth_ms.origin()];
        for store in &self.types {
            all.push(store.size_gb.origin());
            all.push(store.read_write_iops.origin());
        }
        all
    }
}

impl InstanceStore {
    /// Its size in bytes, a multiple of 1 MiB.
    pub fn size_bytes(&self) -> u64 {
        self.size_gb.value * 1_000_000_000 / MIB * MIB
    }
}
