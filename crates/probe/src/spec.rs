//! What to sample: one JSON document on standard input.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

use crate::error::ProbeError;

/// What to sample, how often, and where to write.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeSpec {
    /// Between the deadlines of two samples.
    #[serde(default = "second")]
    pub interval_ms: u64,
    /// File of samples, one JSON document a line; appended to.
    pub out: PathBuf,
    /// `loop3` or `/dev/loop3`.
    #[serde(default)]
    pub block_device: Option<String>,
    /// The emulated volume to ask for its counters.
    #[serde(default)]
    pub volume: Option<VolumeSpec>,
    /// Who uses CPU and memory, by name of the role; the role `probe` always has this process in it.
    #[serde(default)]
    pub roles: BTreeMap<String, RoleSpec>,
}

/// An emulated volume, by its name and where the daemons keep their state.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VolumeSpec {
    /// Name of the volume.
    pub name: String,
    /// State directory.
    pub state_dir: PathBuf,
}

/// Where one role's use is counted. CPU of the cgroup and of the processes is added, so name each process once.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoleSpec {
    /// Directory of a cgroup: of v1's `cpuacct`, or of v2.
    #[serde(default)]
    pub cgroup_cpu: Option<PathBuf>,
    /// Directory of a cgroup: of v1's `memory`, or of v2.
    #[serde(default)]
    pub cgroup_memory: Option<PathBuf>,
    /// Processes, with all their threads; a child process has its own id.
    #[serde(default)]
    pub pids: Vec<u32>,
}

fn second() -> u64 {
    1000
}

impl ProbeSpec {
    /// Refuses an interval that would sample all the time.
    pub(crate) fn check(&self) -> Result<(), ProbeError> {
        if (10..=3_600_000).contains(&self.interval_ms) {
            return Ok(());
        }
        Err(ProbeError::Spec(format!("interval_ms is {}, it must be from 10 to 3600000", self.interval_ms)))
    }
}
