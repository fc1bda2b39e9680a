//! CPU and memory of one role: the server, the driver, the volume's daemon, the probe.

use std::collections::BTreeMap;

use crate::cgroup::{CpuReader, MemoryReader};
use crate::family::FamilyReader;
use crate::process::ProcessReader;
use crate::sample::Gap;
use crate::spec::RoleSpec;

/// Reads what belongs to one role.
pub(crate) struct RoleReader {
    name: String,
    cgroup_cpu: Option<CpuReader>,
    cgroup_memory: Option<MemoryReader>,
    processes: Vec<ProcessReader>,
    families: Vec<FamilyReader>,
    last_cgroup_ns: u64,
}

impl RoleReader {
    pub(crate) fn new(name: &str, spec: &RoleSpec) -> Self {
        Self {
            name: name.to_owned(),
            cgroup_cpu: spec.cgroup_cpu.as_deref().map(CpuReader::new),
            cgroup_memory: spec.cgroup_memory.as_deref().map(MemoryReader::new),
            processes: spec.pids.iter().copied().map(ProcessReader::new).collect(),
            families: spec.parents.iter().copied().map(FamilyReader::new).collect(),
            last_cgroup_ns: 0,
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// CPU time of all that belongs to it. What was lost keeps its last value, so that the sum never goes back.
    pub(crate) fn cpu_ns(&mut self, tick_ns: u64, gaps: &mut Vec<Gap>) -> u64 {
        if let Some(cgroup) = &mut self.cgroup_cpu {
            match cgroup.read_ns() {
                Ok(usage_ns) => self.last_cgroup_ns = usage_ns,
                Err(error) => gaps.push(Gap::new(format!("{}.cgroup_cpu", self.name), &error)),
            }
        }
        let mut sum_ns = self.last_cgroup_ns;
        for process in &mut self.processes {
            let (used_ns, error) = process.read_ns(tick_ns);
            sum_ns += used_ns;
            if let Some(error) = error {
                gaps.push(Gap::new(format!("{}.pid.{}", self.name, process.pid), &error));
            }
        }
        for family in &mut self.families {
            let (used_ns, error) = family.read_ns(tick_ns);
            sum_ns += used_ns;
            if let Some(error) = error {
                gaps.push(Gap::new(format!("{}.parent.{}", self.name, family.pid()), &error));
            }
        }
        sum_ns
    }

    /// Memory of its cgroup; empty when it has none.
    pub(crate) fn memory(&mut self, gaps: &mut Vec<Gap>) -> BTreeMap<&'static str, u64> {
        let mut bytes = BTreeMap::new();
        if let Some(cgroup) = &mut self.cgroup_memory
            && let Err(error) = cgroup.read(&mut bytes)
        {
            gaps.push(Gap::new(format!("{}.cgroup_memory", self.name), &error));
            bytes.clear();
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_process_is_a_gap_and_no_crash() {
        let pids = vec![std::process::id(), u32::MAX];
        let spec = RoleSpec { pids, parents: vec![u32::MAX - 1], ..RoleSpec::default() };
        let mut role = RoleReader::new("driver", &spec);
        let mut gaps = Vec::new();
        role.cpu_ns(10_000_000, &mut gaps);
        let missing: Vec<_> = gaps.iter().map(|gap| gap.what.as_str()).collect();
        assert_eq!(missing, ["driver.pid.4294967295", "driver.parent.4294967294"]);
        assert!(role.memory(&mut gaps).is_empty());
    }
}
