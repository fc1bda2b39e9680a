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
use crate::core::Mode;
use crate::error::{Context, Result};
use crate::follow::DeviceAccount;
use crate::overhead::{BaseOverhead, PathCost};
use crate::pipeline::Pipeline;
use crate::precautions::run_helper;
use crate::store::AlignedBuffer;

/// Of the order of an EBS volume's service time, so that the machine sleeps as it will during a run.
const DELAY_NS: u64 = 500_000;
const SAMPLES: usize = 101;
/// More than this is no path but a machine that does something else just now: a release moved forward by it would come
/// far too early. What is really missing is found while the volume is in use (`follow`).
const MAX_PATH_NS: u64 = 250_000;
const SMALL_BYTES: usize = 8 << 10;
const LARGE_BYTES: usize = 128 << 10;

/// So many that the device's account, which is in milliseconds, is good for 2 us a request.
const BESIDE_SAMPLES: u64 = 500;

/// Medians in nanoseconds of [`SAMPLES`] requests: reads and writes, small and large.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Medians {
    read: [u64; 2],
    write: [u64; 2],
    /// Mean time of a request that the device does not account for.
    beside_ns: u64,
}

/// Measures reads and writes of two sizes, in a process of its own.
///
/// Whoever waits for the device waits for this daemon. Were it this process, and were it killed there, its files would
/// stay open as long as it waits, the kernel would not know that nobody answers, and the wait would have no end.
pub(crate) fn calibrate(pipeline: &Pipeline, device: &Path) -> Result<BaseOverhead> {
    pipeline.set_mode(Mode::Fixed(pipeline.core.clock.model_ns(DELAY_NS)));
    let measured = run_helper(&[OsStr::new("measure-path"), device.as_os_str()]);
    pipeline.set_mode(Mode::Bypass);
    let tried = || format!("cannot calibrate {}", device.display());
    let remedy = "see the daemon's log and attach again";
    let medians: Medians = serde_json::from_slice(&measured?).map_err(io::Error::from).context(tried, remedy)?;
    let path = |[small, large]: [u64; 2]| {
        let beyond = |ns: u64| ns.saturating_sub(DELAY_NS).min(MAX_PATH_NS);
        PathCost::through((SMALL_BYTES as u64, beyond(small)), (LARGE_BYTES as u64, beyond(large)))
    };
    let (read, write) = (path(medians.read), path(medians.write));
    // It is a part of the path; a stall of the host makes a mean larger, and hardly a median.
    let beside_ns = medians.beside_ns.min(read.ns(SMALL_BYTES as u64));
    Ok(BaseOverhead { read, write, beside_ns })
}

/// The helper's side of the calibration: what requests to `device` take, as JSON. Writes put back what was read, so an
/// image keeps its content.
pub fn measure_path(device: &Path) -> Result<Value> {
    let measured = DeviceAccount::open(device).and_then(|account| medians(device, &account));
    let remedy = "this command is the daemon's own";
    measured.map(|medians| json!(medians)).context(|| format!("cannot measure {}", device.display()), remedy)
}

fn medians(device: &Path, account: &DeviceAccount) -> io::Result<Medians> {
    let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_DIRECT).open(device)?;
    let mut buffer = AlignedBuffer::new(LARGE_BYTES);
    file.read_exact_at(&mut buffer, 0)?;
    let mut both = |op| -> io::Result<[u64; 2]> {
        Ok([median_ns(&file, op, &mut buffer[..SMALL_BYTES])?, median_ns(&file, op, &mut buffer[..LARGE_BYTES])?])
    };
    let (read, write) = (both(Op::Read)?, both(Op::Write)?);
    Ok(Medians { read, write, beside_ns: beside_ns(&file, account, &mut buffer[..SMALL_BYTES])? })
}

/// What a request takes beyond the device's own account of it: the way from the call to the block layer, and from there
/// back to a process that sleeps.
fn beside_ns(file: &File, account: &DeviceAccount, buffer: &mut [u8]) -> io::Result<u64> {
    let before = account.read()?;
    let begin = monotonic_ns();
    for _ in 0..BESIDE_SAMPLES {
        file.read_exact_at(buffer, 0)?;
    }
    let took_ns = monotonic_ns() - begin;
    let device_ns = account.read()?.ns[0] - before.ns[0];
    Ok(took_ns.saturating_sub(device_ns) / BESIDE_SAMPLES)
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
