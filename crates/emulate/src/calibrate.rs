//! Measures the path: requests of one at a time through the block device, with a known delay in the daemon.
//!
//! What the application measures beyond the delay is the path. The median is taken, so that a host stall does not count,
//! and of several rounds one that another confirms, so that a host busy with something else for a while does not either.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use pgdyno_clock::monotonic_ns;
use pgdyno_host::{Context, Result};
use pgdyno_volume::Op;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::follow::DeviceAccount;
use crate::lane::Mode;
use crate::overhead::{BaseOverhead, PathCost};
use crate::pipeline::Pipeline;
use crate::precautions::run_helper;
use crate::store::AlignedBuffer;
use crate::wait::wait_until;

/// About an EBS volume's service time, so that the machine sleeps as it will during a run.
const DELAY_NS: u64 = 500_000;
/// Requests of a round: enough for a median that stands within 2 us on a quiet host.
const SAMPLES: usize = 51;
/// Medians of two rounds that are this near to each other confirm each other.
const CONFIRMED_NS: u64 = 3_000;
/// A host that is not quiet in this number of rounds (a quarter of a second) is as it is.
const MAX_ROUNDS: usize = 8;
/// More than this is not the path but a machine that does something else just now: a release moved forward by it would come
/// far too early. What is really missing is found while the volume is in use (`follow`).
const MAX_PATH_NS: u64 = 250_000;
/// Of the machine, whatever the state directory; it goes with the boot.
const LOCK: &str = "/run/pgdyno/calibration.lock";
/// More than ten volumes take one after the other on a busy machine.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);
const SMALL_BYTES: usize = 8 << 10;
const LARGE_BYTES: usize = 128 << 10;

/// So many that the device's account, which is in milliseconds, is good for 4 us a request.
const BESIDE_SAMPLES: u64 = 250;
/// What that account can do, and a little of the host.
const BESIDE_CONFIRMED_NS: u64 = 6_000;

/// Confirmed medians in nanoseconds of [`SAMPLES`] requests: reads and writes, small and large.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Medians {
    read: [u64; 2],
    write: [u64; 2],
    /// Confirmed mean time of a request that the device does not account for.
    beside_ns: u64,
    /// Whether two rounds agreed on each of them; else the host was never quiet, and they are too high.
    confirmed: bool,
}

/// Measures reads and writes of two sizes, in a process of its own.
///
/// A process that waits for the device waits for this daemon. Were it this process, and were it killed there, its files would
/// stay open as long as it waits, the kernel would not know that no process answers, and the wait would have no end.
/// Returns the path, and whether the host was quiet enough for a figure that stands.
pub(crate) fn calibrate(pipeline: &Pipeline, device: &Path) -> Result<(BaseOverhead, bool)> {
    let _alone = alone();
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
    // It is a part of the path.
    let beside_ns = medians.beside_ns.min(read.ns(SMALL_BYTES as u64));
    Ok((BaseOverhead { read, write, beside_ns }, medians.confirmed))
}

/// Keeps other daemons from calibrating as long as the file is open: they would measure each other. Where there can be no lock, or another
/// one is held for too long, it is done without.
fn alone() -> Option<File> {
    let lock = Path::new(LOCK);
    std::fs::create_dir_all(lock.parent()?).ok()?;
    let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(lock).ok()?;
    let taken = || rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive).is_ok();
    wait_until(LOCK_TIMEOUT, taken).then_some(file)
}

/// The helper's side of the calibration: what requests to `device` take, as JSON. Writes put back what was read, so an
/// image keeps its content.
pub fn measure_path(device: &Path) -> Result<Value> {
    let measured = DeviceAccount::open(device).and_then(|account| medians(device, &account));
    let remedy = "only the daemon runs this command";
    measured.map(|medians| json!(medians)).context(|| format!("cannot measure {}", device.display()), remedy)
}

fn medians(device: &Path, account: &DeviceAccount) -> io::Result<Medians> {
    let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_DIRECT).open(device)?;
    let mut buffer = AlignedBuffer::new(LARGE_BYTES);
    file.read_exact_at(&mut buffer, 0)?;
    let mut confirmed = true;
    let mut each = |(ns, stands): (u64, bool)| {
        confirmed &= stands;
        ns
    };
    let mut one = |op, bytes| confirmed_ns(CONFIRMED_NS, || median_ns(&file, op, &mut buffer[..bytes])).map(&mut each);
    let read = [one(Op::Read, SMALL_BYTES)?, one(Op::Read, LARGE_BYTES)?];
    let write = [one(Op::Write, SMALL_BYTES)?, one(Op::Write, LARGE_BYTES)?];
    let beside = || beside_ns(&file, account, &mut buffer[..SMALL_BYTES]);
    let beside_ns = confirmed_ns(BESIDE_CONFIRMED_NS, beside).map(each)?;
    Ok(Medians { read, write, beside_ns, confirmed })
}

/// The least that two rounds agree on within `near_ns`, or the least but one of [`MAX_ROUNDS`]; and whether two agreed.
///
/// A neighbour makes rounds longer and never shorter. What came out too long would make every release too early for as long
/// as the volume is attached, where one that is a little short is found and corrected while it is in use (`follow`).
fn confirmed_ns(near_ns: u64, mut round: impl FnMut() -> io::Result<u64>) -> io::Result<(u64, bool)> {
    let mut rounds = vec![round()?];
    loop {
        rounds.push(round()?);
        rounds.sort_unstable();
        let agree = rounds[1] - rounds[0] <= near_ns;
        if agree || rounds.len() == MAX_ROUNDS {
            return Ok((rounds[1], agree));
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes of rounds that take so long, in microseconds, whether two agreed, and how many it needs.
    fn confirmed(us: &[u64]) -> (u64, bool, usize) {
        let mut asked = 0;
        let round = || {
            asked += 1;
            Ok(us[asked - 1] * 1_000)
        };
        let (ns, agree) = confirmed_ns(CONFIRMED_NS, round).expect("no round fails");
        (ns / 1_000, agree, asked)
    }

    #[test]
    fn two_rounds_that_agree_are_enough() {
        assert_eq!(confirmed(&[545, 543]), (545, true, 2));
    }

    #[test]
    fn rounds_that_a_neighbour_made_longer_do_not_count() {
        assert_eq!(confirmed(&[594, 580, 545, 570, 546]), (546, true, 5));
    }

    #[test]
    fn a_host_that_is_never_quiet_is_asked_only_so_often() {
        assert_eq!(confirmed(&[600, 610, 620, 630, 640, 650, 660, 670]), (610, false, MAX_ROUNDS));
    }
}
