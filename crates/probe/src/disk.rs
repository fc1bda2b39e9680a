//! One block device's counters: `/sys/class/block/NAME/stat`, which is its line of `/proc/diskstats` without the rest.

use std::io;

use crate::kept::{KeptFile, unexpected};
use crate::sample::Disk;
use crate::spec::DeviceSpec;

/// The kernel counts sectors of 512 bytes, whatever the device's own are.
const SECTOR_BYTES: u64 = 512;

/// Reads one device.
pub(crate) struct DiskReader {
    /// Its name among the gaps.
    pub(crate) what: String,
    volume: String,
    file: KeptFile,
}

impl DiskReader {
    pub(crate) fn new(spec: &DeviceSpec) -> Self {
        let name = spec.block_device.strip_prefix("/dev/").unwrap_or(&spec.block_device);
        Self {
            what: format!("disk.{}", spec.volume),
            volume: spec.volume.clone(),
            file: KeptFile::new(format!("/sys/class/block/{name}/stat")),
        }
    }

    pub(crate) fn read(&mut self) -> io::Result<Disk> {
        parse(&self.volume, self.file.read(true)?).ok_or_else(|| unexpected("a block device's statistics"))
    }
}

/// Fields as the kernel's `Documentation/block/stat.rst` lists them; discards and flushes may follow.
fn parse(volume: &str, text: &str) -> Option<Disk> {
    let mut fields = text.split_ascii_whitespace().map(str::parse::<u64>);
    let mut next = || fields.next()?.ok();
    let (reads, _merged, read_sectors, read_time_ms) = (next()?, next()?, next()?, next()?);
    let (writes, _merged, write_sectors, write_time_ms) = (next()?, next()?, next()?, next()?);
    let (in_flight, io_time_ms, weighted_time_ms) = (next()?, next()?, next()?);
    Some(Disk {
        volume: volume.to_owned(),
        reads,
        writes,
        read_bytes: read_sectors * SECTOR_BYTES,
        write_bytes: write_sectors * SECTOR_BYTES,
        read_time_ms,
        write_time_ms,
        in_flight,
        io_time_ms,
        weighted_time_ms,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_are_in_the_kernels_order() {
        let disk = parse(
            "data",
            "     100        7     2048       31      50        3     4096       77        2       90      108      0        0        0        0       12        5\n",
        );
        let expected = Disk {
            volume: "data".into(),
            reads: 100,
            writes: 50,
            read_bytes: 2048 * 512,
            write_bytes: 4096 * 512,
            read_time_ms: 31,
            write_time_ms: 77,
            in_flight: 2,
            io_time_ms: 90,
            weighted_time_ms: 108,
        };
        assert_eq!(disk, Some(expected));
    }

    #[test]
    fn a_short_line_is_refused() {
        assert_eq!(parse("data", "1 2 3"), None);
        assert_eq!(parse("data", ""), None);
    }
}
