//! What to sample: one JSON document on standard input.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use pgdyno_host::{Fault, Result};
use serde::Deserialize;

/// What refuses a specification is a mistake in pgdyno, or of a person who writes one by hand.
const REMEDY: &str = "this is a bug in pgdyno, unless the probe was started by hand";

/// What to sample, how often, and where to write.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeSpec {
    /// Between the deadlines of two samples.
    #[serde(default = "second")]
    pub interval_ms: u64,
    /// File of samples, one JSON document a line; appended to.
    pub out: PathBuf,
    /// Block devices to sample.
    #[serde(default)]
    pub devices: Vec<DeviceSpec>,
    /// Emulated volumes to ask for their counters.
    #[serde(default)]
    pub volumes: Vec<VolumeSpec>,
    /// Who uses CPU and memory, by name of the role; the role `probe` always has this process in it.
    #[serde(default)]
    pub roles: BTreeMap<String, RoleSpec>,
}

/// The block device of one of the server's volumes.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceSpec {
    /// What the volume is to the server: `data`, `wal`, ...
    pub volume: String,
    /// `loop3` or `/dev/loop3`; a partition counts as a device.
    pub block_device: String,
}

/// An emulated volume, by its name and where the daemons keep their state.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VolumeSpec {
    /// What the volume is to the server: `data`, `wal`, ...
    pub volume: String,
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
    /// Processes with their children, those that begin and end meanwhile too: a server without a cgroup of its own.
    #[serde(default)]
    pub parents: Vec<u32>,
}

fn second() -> u64 {
    1000
}

impl ProbeSpec {
    /// Refuses an interval that would sample all the time, and a volume that is named twice.
    pub(crate) fn check(&self) -> Result<()> {
        if !(10..=3_600_000).contains(&self.interval_ms) {
            let refused = format!("interval_ms is {}, it must be from 10 to 3600000", self.interval_ms);
            return Err(Fault::new(refused, REMEDY));
        }
        once(self.devices.iter().map(|device| &device.volume))?;
        once(self.volumes.iter().map(|volume| &volume.volume))
    }
}

/// Two rows of one volume at one instant would be added up by their readers.
fn once<'a>(names: impl Iterator<Item = &'a String>) -> Result<()> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(Fault::new(format!("the volume {name} is named twice"), REMEDY));
        }
    }
    Ok(())
}
