//! The loop: wait for a deadline, read everything, write one line.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};

use pgdyno_clock::{SECOND_NS, monotonic_ns, process_cpu_ns};
use pgdyno_host::{Context, Result};

use crate::disk::DiskReader;
use crate::host::HostReader;
use crate::role::RoleReader;
use crate::sample::{Cpu, Gap, Memory, Sample, Stamped};
use crate::spec::{ProbeSpec, RoleSpec};
use crate::stop::{Turn, Waiter};
use crate::volume::VolumeReader;

/// Role that this process is counted in.
const SELF: &str = "probe";

/// See [`crate::run`].
pub(crate) fn run(spec: &ProbeSpec) -> Result<()> {
    spec.check()?;
    let failed = || format!("samples cannot be written to {}", spec.out.display());
    let remedy = "free some space, or name another file";
    let mut out = OpenOptions::new().create(true).append(true).open(&spec.out).context(failed, remedy)?;
    let mut readers = Readers::new(spec);
    let interval_ns = spec.interval_ms.saturating_mul(1_000_000);
    let first_ns = monotonic_ns();
    let mut waiter = Waiter::new(first_ns + interval_ns, interval_ns, true)?;
    let mut line = Vec::with_capacity(16 * 1024);
    let first = readers.sample(first_ns, 0);
    write_line(&mut out, &mut line, &first).context(failed, remedy)?;
    println!("{{\"ready\":{{}}}}");
    let mut deadlines: u64 = 0;
    loop {
        let turn = waiter.wait()?;
        let (due_ns, missed) = match turn {
            Turn::Due(passed) => {
                deadlines += passed;
                (first_ns + deadlines * interval_ns, passed - 1)
            }
            Turn::Stop => (monotonic_ns(), 0),
        };
        let sample = readers.sample(due_ns, missed);
        write_line(&mut out, &mut line, &sample).context(failed, remedy)?;
        if turn == Turn::Stop {
            return Ok(());
        }
    }
}

/// One `write` a sample: a reader of the file finds whole lines, even after this process was killed.
fn write_line(out: &mut File, line: &mut Vec<u8>, sample: &Sample) -> io::Result<()> {
    line.clear();
    serde_json::to_writer(&mut *line, sample)?;
    line.push(b'\n');
    out.write_all(line)
}

struct Readers {
    disks: Vec<DiskReader>,
    volumes: Vec<VolumeReader>,
    roles: Vec<RoleReader>,
    host: HostReader,
    tick_ns: u64,
}

impl Readers {
    fn new(spec: &ProbeSpec) -> Self {
        let mut roles: Vec<_> = spec.roles.iter().map(|(name, role)| RoleReader::new(name, role)).collect();
        if !spec.roles.contains_key(SELF) {
            roles.push(RoleReader::new(SELF, &RoleSpec::default()));
        }
        Self {
            disks: spec.devices.iter().map(DiskReader::new).collect(),
            volumes: spec.volumes.iter().map(VolumeReader::new).collect(),
            roles,
            host: HostReader::new(),
            tick_ns: SECOND_NS / rustix::param::clock_ticks_per_second(),
        }
    }

    fn sample(&mut self, due_ns: u64, missed: u64) -> Sample {
        let t_begin_ns = monotonic_ns();
        let mut gaps = Vec::new();
        let mut disks = Vec::with_capacity(self.disks.len());
        for reader in &mut self.disks {
            let begin_ns = monotonic_ns();
            keep(&mut disks, &mut gaps, begin_ns, reader.read(), &reader.what);
        }
        let mut volumes = Vec::with_capacity(self.volumes.len());
        for reader in &mut self.volumes {
            let begin_ns = monotonic_ns();
            keep(&mut volumes, &mut gaps, begin_ns, reader.read(), &reader.what);
        }
        let cpu = self.cpu(&mut gaps);
        let memory = self.memory(&mut gaps);
        Sample { due_ns, t_begin_ns, t_end_ns: monotonic_ns(), missed, disks, volumes, cpu, memory, gaps }
    }

    fn cpu(&mut self, gaps: &mut Vec<Gap>) -> Stamped<Cpu> {
        let begin_ns = monotonic_ns();
        let mut cpu = Cpu::default();
        for role in &mut self.roles {
            let mut used_ns = role.cpu_ns(self.tick_ns, gaps);
            if role.name() == SELF {
                used_ns += process_cpu_ns();
            }
            cpu.cpu_ns.insert(role.name().to_owned(), used_ns);
        }
        match self.host.read_ticks() {
            Ok(ticks) => {
                for (name, count) in [("busy", ticks.busy), ("steal", ticks.steal), ("idle", ticks.idle)] {
                    cpu.cpu_ns.insert(format!("host_{name}"), count * self.tick_ns);
                }
            }
            Err(error) => gaps.push(Gap::new("host.cpu", &error)),
        }
        Stamped { t_ns: middle_ns(begin_ns), value: cpu }
    }

    fn memory(&mut self, gaps: &mut Vec<Gap>) -> Stamped<Memory> {
        let begin_ns = monotonic_ns();
        let mut memory = Memory::default();
        for role in &mut self.roles {
            let bytes = role.memory(gaps);
            if !bytes.is_empty() {
                memory.bytes.insert(role.name().to_owned(), bytes);
            }
        }
        let host = memory.bytes.entry("host".to_owned()).or_default();
        if let Err(error) = self.host.read_memory(host) {
            gaps.push(Gap::new("host.memory", &error));
        }
        Stamped { t_ns: middle_ns(begin_ns), value: memory }
    }
}

/// Puts what was read with its instant into `kept`, or the reason why it was not into `gaps`.
fn keep<T>(kept: &mut Vec<Stamped<T>>, gaps: &mut Vec<Gap>, begin_ns: u64, read: io::Result<T>, what: &str) {
    match read {
        Ok(value) => kept.push(Stamped { t_ns: middle_ns(begin_ns), value }),
        Err(error) => gaps.push(Gap::new(what, &error)),
    }
}

/// The instant halfway between `begin_ns` and now.
fn middle_ns(begin_ns: u64) -> u64 {
    begin_ns + (monotonic_ns() - begin_ns) / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::DeviceSpec;
    use std::collections::BTreeMap;

    fn spec(devices: &[(&str, &str)]) -> ProbeSpec {
        let device = |&(volume, block_device): &(&str, &str)| DeviceSpec {
            volume: volume.to_owned(),
            block_device: block_device.to_owned(),
        };
        let own = RoleSpec { pids: vec![std::process::id()], ..RoleSpec::default() };
        ProbeSpec {
            interval_ms: 1000,
            out: "/dev/null".into(),
            devices: devices.iter().map(device).collect(),
            volumes: Vec::new(),
            roles: BTreeMap::from([("driver".to_owned(), own)]),
        }
    }

    #[test]
    fn a_sample_is_one_line_with_every_role_and_no_gap() {
        let sample = Readers::new(&spec(&[])).sample(1, 0);
        assert!(sample.t_begin_ns <= sample.cpu.t_ns && sample.cpu.t_ns <= sample.memory.t_ns);
        assert!(sample.memory.t_ns <= sample.t_end_ns);
        let text = serde_json::to_string(&sample).unwrap();
        assert!(!text.contains('\n') && !text.contains("gaps"), "{text}");
        let document: serde_json::Value = serde_json::from_str(&text).unwrap();
        for role in ["driver", "probe", "host_busy", "host_steal", "host_idle"] {
            assert!(document["cpu"]["cpu_ns"][role].is_u64(), "{role} in {text}");
        }
        assert!(document["memory"]["bytes"]["host"]["available"].as_u64().unwrap() > 0);
    }

    #[test]
    fn a_device_that_does_not_exist_is_a_gap() {
        let sample = Readers::new(&spec(&[("data", "no-such-device"), ("wal", "/dev/none")])).sample(1, 0);
        assert!(sample.disks.is_empty());
        let missing: Vec<_> = sample.gaps.iter().map(|gap| gap.what.as_str()).collect();
        assert_eq!(missing, ["disk.data", "disk.wal"]);
    }

    #[test]
    fn a_volume_that_is_named_twice_is_refused() {
        let twice = spec(&[("data", "loop0"), ("data", "loop1")]);
        assert_eq!(run(&twice).unwrap_err().message, "the volume data is named twice");
    }

    #[test]
    fn deadlines_that_pass_are_counted() {
        let first_ns = monotonic_ns() - 35_000_000;
        let mut waiter = Waiter::new(first_ns, 10_000_000, false).unwrap();
        let Ok(Turn::Due(passed)) = waiter.wait() else { panic!("nobody asked it to stop") };
        assert!(passed >= 4, "{passed}");
    }

    #[test]
    fn an_interval_that_would_never_rest_is_refused() {
        let spec = ProbeSpec { interval_ms: 0, ..spec(&[]) };
        assert!(run(&spec).unwrap_err().message.contains("interval_ms is 0"));
    }
}
