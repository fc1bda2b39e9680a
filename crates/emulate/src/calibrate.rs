//! Measures the path: requests of one at a time through the block device, with a known delay in the daemon.
//!
//! What the application measures beyond the delay is the path. The median is taken, so that a host stall does not count.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use pgdyno_volume::Op;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::clock::monotonic_ns;
use crate::error::{Context, Result};
use crate::overhead::{BaseOverhead, PathCost};
use crate::pipeline::{Mode, Pipeline};
use crate::precautions::run_helper;
use crate::store::AlignedBuffer;

/// Of the order of an EBS volume's service time, so that the machine sleeps as it will during a run.
const DELAY_NS: u64 = 500_000;
const SAMPLES: usize = 101;
const SMALL_BYTES: usize = 8 << 10;
const LARGE_BYTES: usize = 128 << 10;

/// Medians in nanoseconds of [`SAMPLES`] requests: reads and writes, small and large.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Medians {
    read: [u64; 2],
    write: [u64; 2],
}

/// Measures reads and writes of two sizes, in a process of its own.
///
/// Whoever waits for the device waits for this daemon. Were it this process, and were it killed there, its files would
/// stay open as long as it waits, the kernel would not know that nobody answers, and the wait would have no end.
pub(crate) fn calibrate(pipeline: &Pipeline, device: &Path) -> Result<BaseOverhead> {
    pipeline.set_mode(Mode::Fixed(DELAY_NS));
    let measured = run_helper(&[OsStr::new("measure-path"), device.as_os_str()]);
    pipeline.set_mode(Mode::Bypass);
    let tried = || format!("cannot calibrate {}", device.display());
    let remedy = "see the daemon's log and attach again";
    let medians: Medians = serde_json::from_slice(&measured?).map_err(io::Error::from).context(tried, remedy)?;
    let path = |[small, large]: [u64; 2]| {
        let beyond = |ns: u64| ns.saturating_sub(DELAY_NS);
        PathCost::through((SMALL_BYTES as u64, beyond(small)), (LARGE_BYTES as u64, beyond(large)))
    };
    Ok(BaseOverhead { read: path(medians.read), write: path(medians.write) })
}

/// The helper's side of the calibration: what requests to `device` take, as JSON. Writes put back what was read, so an
/// image keeps its content.
pub fn measure_path(device: &Path) -> Result<Value> {
    let measured = medians(device);
    let remedy = "this command is the daemon's own";
    measured.map(|medians| json!(medians)).context(|| format!("cannot measure {}", device.display()), remedy)
}

fn medians(device: &Path) -> io::Result<Medians> {
    let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_DIRECT).open(device)?;
    let mut buffer = AlignedBuffer::new(LARGE_BYTES);
    file.read_exact_at(&mut buffer, 0)?;
    let mut both = |op| -> io::Result<[u64; 2]> {
        Ok([median_ns(&file, op, &mut buffer[..SMALL_BYTES])?, median_ns(&file, op, &mut buffer[..LARGE_BYTES])?])
    };
    Ok(Medians { read: both(Op::Read)?, write: both(Op::Write)? })
}

fn median_ns(file: &File, op: Op, buffer: &mut [u8]) -> io::Result<u64> {
    let mut took_ns = Vec::with_capacity(SAMPLES);
    for _ in 0..SAMPLES {
        let begin = monotonic_ns();
        match op {
            Op::Read => file.read_exact_at(buffer, 0)?,
            Op::Write => file.write_all_at(buffer, 0)?,
        }
        took_ns.push(monotonic_ns() - begin);
    }
    took_ns.sort_unstable();
    Ok(took_ns[SAMPLES / 2])
}
