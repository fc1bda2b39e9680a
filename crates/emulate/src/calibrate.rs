//! Measures the path: requests of one at a time through the block device, with a known delay in the daemon.
//!
//! What the application measures beyond the delay is the path. The median is taken, so that a host stall does not count.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use pgdyno_volume::Op;

use crate::clock::monotonic_ns;
use crate::error::{Context, Result};
use crate::overhead::{BaseOverhead, PathCost};
use crate::pipeline::{Mode, Pipeline};
use crate::store::AlignedBuffer;

/// Of the order of an EBS volume's service time, so that the machine sleeps as it will during a run.
const DELAY_NS: u64 = 500_000;
const SAMPLES: usize = 101;
const SMALL_BYTES: usize = 8 << 10;
const LARGE_BYTES: usize = 128 << 10;

/// Measures reads and writes of two sizes. Writes put back what was read, so an image keeps its content.
pub(crate) fn calibrate(pipeline: &Pipeline, device: &Path) -> Result<BaseOverhead> {
    let result = measure_all(pipeline, device);
    pipeline.set_mode(Mode::Bypass);
    result.context(|| format!("cannot calibrate {}", device.display()), "see the daemon's log and attach again")
}

fn measure_all(pipeline: &Pipeline, device: &Path) -> io::Result<BaseOverhead> {
    let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_DIRECT).open(device)?;
    let mut buffer = AlignedBuffer::new(LARGE_BYTES);
    file.read_exact_at(&mut buffer, 0)?;
    pipeline.set_mode(Mode::Fixed(DELAY_NS));
    let mut path = |op| -> io::Result<PathCost> {
        let small = median_beyond_delay(&file, op, &mut buffer[..SMALL_BYTES])?;
        let large = median_beyond_delay(&file, op, &mut buffer[..LARGE_BYTES])?;
        Ok(PathCost::through((SMALL_BYTES as u64, small), (LARGE_BYTES as u64, large)))
    };
    Ok(BaseOverhead { read: path(Op::Read)?, write: path(Op::Write)? })
}

fn median_beyond_delay(file: &File, op: Op, buffer: &mut [u8]) -> io::Result<u64> {
    let mut beyond = Vec::with_capacity(SAMPLES);
    for _ in 0..SAMPLES {
        let begin = monotonic_ns();
        match op {
            Op::Read => file.read_exact_at(buffer, 0)?,
            Op::Write => file.write_all_at(buffer, 0)?,
        }
        beyond.push((monotonic_ns() - begin).saturating_sub(DELAY_NS));
    }
    beyond.sort_unstable();
    Ok(beyond[SAMPLES / 2])
}
