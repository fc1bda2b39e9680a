//! CPU time and memory of a cgroup, version 1 or 2: the files that are there say which it is.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use crate::kept::{KeptFile, unexpected};

/// v1 writes this (rounded down to a page) where v2 writes `max`.
const NO_LIMIT_BYTES: u64 = 1 << 62;

/// CPU time of a cgroup.
pub(crate) enum CpuReader {
    /// `cpuacct.usage`: nanoseconds.
    V1(KeptFile),
    /// `cpu.stat`: microseconds in `usage_usec`.
    V2(KeptFile),
}

impl CpuReader {
    pub(crate) fn new(directory: &Path) -> Self {
        let v2 = directory.join("cpu.stat");
        let v1 = directory.join("cpuacct.usage");
        // v1's cpu controller, often mounted with cpuacct, has a cpu.stat too: without usage_usec.
        if v2.exists() && !v1.exists() { Self::V2(KeptFile::new(v2)) } else { Self::V1(KeptFile::new(v1)) }
    }

    pub(crate) fn read_ns(&mut self) -> io::Result<u64> {
        match self {
            Self::V1(file) => file.read(true)?.trim().parse().map_err(|_| unexpected("a number of nanoseconds")),
            Self::V2(file) => {
                let usage_us = keyed(file.read(true)?, "usage_usec").ok_or_else(|| unexpected("usage_usec"))?;
                Ok(usage_us * 1000)
            }
        }
    }
}

/// Memory of a cgroup with its children.
pub(crate) struct MemoryReader {
    stat: KeptFile,
    limit: KeptFile,
    names: &'static [(&'static str, &'static str)],
}

/// (name in a sample, name in `memory.stat`).
const V1_NAMES: &[(&str, &str)] =
    &[("cache", "total_cache"), ("rss", "total_rss"), ("dirty", "total_dirty"), ("writeback", "total_writeback")];
const V2_NAMES: &[(&str, &str)] =
    &[("cache", "file"), ("rss", "anon"), ("dirty", "file_dirty"), ("writeback", "file_writeback")];

impl MemoryReader {
    pub(crate) fn new(directory: &Path) -> Self {
        let v2 = directory.join("memory.max");
        let is_v2 = v2.exists();
        let limit = if is_v2 { v2 } else { directory.join("memory.limit_in_bytes") };
        Self {
            stat: KeptFile::new(directory.join("memory.stat")),
            limit: KeptFile::new(limit),
            names: if is_v2 { V2_NAMES } else { V1_NAMES },
        }
    }

    /// Adds cache, rss, dirty, writeback and, when there is one, limit.
    pub(crate) fn read(&mut self, bytes: &mut BTreeMap<&'static str, u64>) -> io::Result<()> {
        let text = self.stat.read(true)?;
        for &(name, key) in self.names {
            bytes.insert(name, keyed(text, key).ok_or_else(|| unexpected(key))?);
        }
        if let Some(limit) = limit(self.limit.read(true)?) {
            bytes.insert("limit", limit);
        }
        Ok(())
    }
}

fn limit(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|&bytes| bytes < NO_LIMIT_BYTES)
}

/// The number on the line that begins with `key` and a space.
fn keyed(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn directory(name: &str, files: &[(&str, &str)]) -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("pgdyno-probe-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        for (file, text) in files {
            fs::write(path.join(file), text).unwrap();
        }
        path
    }

    #[test]
    fn version_1_is_read() {
        let stat = "cache 1\nrss 2\ndirty 3\nwriteback 4\nhierarchical_memory_limit 5\ntotal_cache 4096\ntotal_rss 8192\ntotal_dirty 12\ntotal_writeback 0\n";
        let files = [
            ("cpuacct.usage", "123456789\n"),
            ("cpu.stat", "nr_periods 0\n"),
            ("memory.stat", stat),
            ("memory.limit_in_bytes", "536870912\n"),
        ];
        let path = directory("v1", &files);
        assert_eq!(CpuReader::new(&path).read_ns().unwrap(), 123_456_789);
        let mut bytes = BTreeMap::new();
        MemoryReader::new(&path).read(&mut bytes).unwrap();
        let expected = [("cache", 4096), ("rss", 8192), ("dirty", 12), ("writeback", 0), ("limit", 536_870_912)];
        assert_eq!(bytes, BTreeMap::from(expected));
        fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn version_2_is_read() {
        let files = [
            ("cpu.stat", "usage_usec 1500\nuser_usec 1000\nsystem_usec 500\n"),
            ("memory.stat", "anon 10\nfile 20\nfile_mapped 99\nfile_dirty 30\nfile_writeback 40\n"),
            ("memory.max", "max\n"),
        ];
        let path = directory("v2", &files);
        assert_eq!(CpuReader::new(&path).read_ns().unwrap(), 1_500_000);
        let mut bytes = BTreeMap::new();
        MemoryReader::new(&path).read(&mut bytes).unwrap();
        assert_eq!(bytes, BTreeMap::from([("cache", 20), ("rss", 10), ("dirty", 30), ("writeback", 40)]));
        fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn no_limit_is_not_a_number() {
        assert_eq!(limit("9223372036854771712\n"), None);
        assert_eq!(limit("max\n"), None);
        assert_eq!(limit("1024\n"), Some(1024));
    }

    #[test]
    fn a_cgroup_that_is_gone_is_an_error_and_may_come_back() {
        let path = directory("gone", &[("cpuacct.usage", "1\n")]);
        let mut reader = CpuReader::new(&path.join("nowhere"));
        assert!(reader.read_ns().is_err());
        fs::create_dir_all(path.join("nowhere")).unwrap();
        fs::write(path.join("nowhere/cpuacct.usage"), "7\n").unwrap();
        assert_eq!(reader.read_ns().unwrap(), 7);
        fs::remove_dir_all(path).unwrap();
    }
}
