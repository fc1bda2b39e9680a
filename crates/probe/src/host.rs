//! The whole host: CPU time from `/proc/stat`, memory from `/proc/meminfo`.

use std::collections::BTreeMap;
use std::io;

use crate::kept::{KeptFile, unexpected};

/// CPU time of all cores together, in ticks.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HostTicks {
    /// In user or kernel mode, interrupts included.
    pub(crate) busy: u64,
    /// Taken by the hypervisor.
    pub(crate) steal: u64,
    /// Idle, also while waiting for I/O.
    pub(crate) idle: u64,
}

/// Reads the host.
pub(crate) struct HostReader {
    stat: KeptFile,
    meminfo: KeptFile,
}

impl HostReader {
    pub(crate) fn new() -> Self {
        Self { stat: KeptFile::new("/proc/stat"), meminfo: KeptFile::new("/proc/meminfo") }
    }

    pub(crate) fn read_ticks(&mut self) -> io::Result<HostTicks> {
        parse_ticks(self.stat.read(true)?).ok_or_else(|| unexpected("the line cpu"))
    }

    pub(crate) fn read_memory(&mut self, bytes: &mut BTreeMap<&'static str, u64>) -> io::Result<()> {
        let text = self.meminfo.read(true)?;
        for (name, key) in [("available", "MemAvailable:"), ("dirty", "Dirty:"), ("writeback", "Writeback:")] {
            bytes.insert(name, parse_kib(text, key).ok_or_else(|| unexpected(key))? * 1024);
        }
        Ok(())
    }
}

/// `cpu user nice system idle iowait irq softirq steal guest guest_nice`; guests are counted in user and nice already.
fn parse_ticks(text: &str) -> Option<HostTicks> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let mut fields = line.split_ascii_whitespace().map(str::parse::<u64>);
    let mut next = || fields.next()?.ok();
    let (user, nice, system, idle, iowait, irq, softirq) =
        (next()?, next()?, next()?, next()?, next()?, next()?, next()?);
    let steal = next().unwrap_or(0);
    Some(HostTicks { busy: user + nice + system + irq + softirq, steal, idle: idle + iowait })
}

fn parse_kib(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(key)?.split_ascii_whitespace().next()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_not_added_to_their_sum() {
        let text = "cpu  100 10 50 1000 200 3 7 40 5 0\ncpu0 50 5 25 500 100 1 3 20 2 0\nintr 12345\n";
        assert_eq!(parse_ticks(text), Some(HostTicks { busy: 170, steal: 40, idle: 1200 }));
    }

    #[test]
    fn writeback_is_not_writebacktmp() {
        let text = "MemTotal: 100 kB\nMemAvailable:   23 kB\nDirty:  4 kB\nWritebackTmp: 9 kB\nWriteback:   5 kB\n";
        assert_eq!(parse_kib(text, "Writeback:"), Some(5));
        assert_eq!(parse_kib(text, "MemAvailable:"), Some(23));
        assert_eq!(parse_kib(text, "Absent:"), None);
    }
}
