//! What the daemon spends on a request either way on this machine, and when it answers: two volumes that nothing else uses, in turn.
//!
//! A request of an emulated volume waits for its instant, and how many wait together decides who wakes whom how often. So both
//! are measured with a delay: one request at a time, and 32.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use io_uring::types::Fd;
use io_uring::{IoUring, opcode as operation};
use pgdyno_clock::{SECOND_NS, monotonic_ns};
use pgdyno_host::{Context, Fault, Result};
use pgdyno_volume::Instance;
use serde_json::{Value, json};

use crate::attached::Attached;
use crate::clock::Dilation;
use crate::command::Command;
use crate::core::Core;
use crate::host::private_mounts;
use crate::lane::Mode;
use crate::precautions::{self, run_helper};
use crate::release;
use crate::spec::ServeSpec;
use crate::store::AlignedBuffer;
use crate::transport::Transport;

/// About an EBS volume's service time.
const DELAY_NS: u64 = 500_000;
const DEPTHS: [u64; 2] = [1, 32];
/// So often the delay of each depth: a round of both takes 60 ms.
const DELAYS: u64 = 30;
const ROUNDS: usize = 4;
const BLOCK_BYTES: u64 = 4096;
/// Further apart than requests are merged.
const STRIDE_BYTES: u64 = 64 << 10;
const DEVICE_BYTES: u64 = 1 << 30;
const REMEDY: &str = "only an attach runs this command";

/// Puts up a volume for each way, and measures them. What is mounted for it no other process sees, and it ends with this one.
/// `at` is where its state is.
///
/// # Errors
/// What the kernel refuses; that it has no FUSE over io_uring.
pub fn measure_transports(at: &Path) -> Result<Value> {
    private_mounts()?;
    precautions::protect_process();
    let failed = || "cannot measure the ways of requests".to_owned();
    let dilation = Dilation::new(1)?;
    let core = Arc::new(Core::new(Instance::new(0), dilation).context(failed, REMEDY)?);
    let shared = core.clone();
    let release = std::thread::Builder::new().name("release".to_owned()).spawn(move || release::run(&shared));
    let release = release.context(failed, REMEDY)?;
    let (commands, _inbox) = channel();
    let mut volumes = Vec::new();
    let measured = measured(&core, at, &commands, &mut volumes);
    precautions::ordinary_priority();
    let ended: Vec<Result<()>> = volumes.into_iter().map(|volume: Attached| volume.take_down(None)).collect();
    core.stop();
    let _ = release.join();
    let rounds = measured?;
    ended.into_iter().collect::<Result<()>>()?;
    serde_json::from_slice(&rounds).map_err(io::Error::from).context(failed, REMEDY)
}

fn measured(core: &Arc<Core>, at: &Path, commands: &Sender<Command>, volumes: &mut Vec<Attached>) -> Result<Vec<u8>> {
    let mut devices = Vec::new();
    for transport in [Transport::Classic, Transport::Uring] {
        let spec = scratch(at, transport);
        let storage = spec.storage()?;
        let mut volume = Attached::start(core, &spec, &storage, commands)?;
        let is_it = volume.chosen().used == transport;
        let reason = volume.chosen().reason.clone();
        let device = volume.bring_up_bare(&spec, &storage, Mode::Fixed(core.clock.model_ns(DELAY_NS)));
        volumes.push(volume);
        if !is_it {
            return Err(Fault::of_host(reason.unwrap_or_default(), "use PGDYNO_TRANSPORT=classic"));
        }
        devices.push(device?);
    }
    let arguments: Vec<&OsStr> =
        std::iter::once(OsStr::new("drive-devices")).chain(devices.iter().map(|device| device.as_os_str())).collect();
    run_helper(&arguments)
}

fn scratch(at: &Path, transport: Transport) -> ServeSpec {
    let way = if transport == Transport::Uring { "uring" } else { "classic" };
    let name = format!("transport-{way}-{}", std::process::id());
    serde_json::from_value(json!({"name": name, "spec": "null:size=1GiB", "state_dir": at, "transport": transport}))
        .expect("a specification of our own")
}

/// The helper's side: at each depth of each round, what the parent process spends on a request to each device and how long
/// that takes, in nanoseconds. In a process of its own, as the calibration is.
///
/// # Errors
/// A device cannot be read.
pub fn drive_devices(devices: &[PathBuf]) -> Result<Value> {
    let rounds = (0..ROUNDS).map(|round| one_round(devices, round)).collect::<io::Result<Vec<Value>>>();
    rounds.map(|rounds| json!({"depths": DEPTHS, "rounds": rounds})).context(|| "cannot read".to_owned(), REMEDY)
}

/// Every second round has them in the other order.
fn one_round(devices: &[PathBuf], round: usize) -> io::Result<Value> {
    let mut cpu_ns = vec![[0; DEPTHS.len()]; devices.len()];
    let mut took_ns = cpu_ns.clone();
    for turn in 0..devices.len() {
        let which = if round.is_multiple_of(2) { turn } else { devices.len() - 1 - turn };
        let device = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(&devices[which])?;
        for (at, depth) in DEPTHS.into_iter().enumerate() {
            let (spent_ns, begin_ns) = (parents_cpu_ns()?, monotonic_ns());
            read(&device, depth, DELAYS * depth)?;
            // There are always so many on the way.
            took_ns[which][at] = (monotonic_ns() - begin_ns) / DELAYS;
            cpu_ns[which][at] = (parents_cpu_ns()? - spent_ns) / (DELAYS * depth);
        }
    }
    Ok(json!({"cpu_ns": cpu_ns, "took_ns": took_ns}))
}

/// Reads `count` blocks, `depth` at a time. Nobody looks at them, so they share their memory.
fn read(device: &File, depth: u64, count: u64) -> io::Result<()> {
    let mut ring = IoUring::new(depth as u32)?;
    let mut block = AlignedBuffer::new(BLOCK_BYTES as usize);
    let (mut asked, mut done) = (0, 0);
    while done < count {
        while asked < count && asked - done < depth {
            let offset = asked * STRIDE_BYTES % DEVICE_BYTES;
            let entry = operation::Read::new(Fd(device.as_raw_fd()), block.as_mut_ptr(), BLOCK_BYTES as u32);
            // SAFETY: the block lives until all reads are done, and an error ends this process.
            unsafe { ring.submission().push(&entry.offset(offset).build()) }.expect("there is room for the depth");
            asked += 1;
        }
        ring.submit_and_wait(1)?;
        for told in ring.completion() {
            if told.result() < 0 {
                return Err(io::Error::from_raw_os_error(-told.result()));
            }
            done += 1;
        }
    }
    Ok(())
}

/// CPU time of the process that started this one.
fn parents_cpu_ns() -> io::Result<u64> {
    let mut clock = 0;
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: both places outlive the calls, and the time is read only where the second call has set it.
    let time = unsafe {
        let error = libc::clock_getcpuclockid(libc::getppid(), &raw mut clock);
        if error != 0 {
            return Err(io::Error::from_raw_os_error(error));
        }
        if libc::clock_gettime(clock, time.as_mut_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
        time.assume_init()
    };
    Ok(u64::try_from(time.tv_sec).unwrap_or(0) * SECOND_NS + u64::try_from(time.tv_nsec).unwrap_or(0))
}
