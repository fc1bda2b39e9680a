//! The loop device on the exported file, and the proofs that it is what was asked for.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pgdyno_crash::Cache;
use pgdyno_host::{Context, Fault, Result};
use serde::Serialize;
use serde_json::json;

use crate::precautions::{run, tool};
use crate::store::BLOCK_BYTES;
use crate::wait::wait_until;

/// Requests that a device keeps in flight: the loop module's own default, and half of a volume's slots.
const IN_FLIGHT: u64 = 128;
const LOOP_CTL_GET_FREE: libc::c_ulong = 0x4C82;
const LOOP_CONFIGURE: libc::c_ulong = 0x4C0A;
const LO_FLAGS_AUTOCLEAR: u32 = 4;
const LO_FLAGS_DIRECT_IO: u32 = 16;
const LOOP_MAJOR: u32 = 7;
/// Another process may take the free device between the question and the answer.
const TRIES: usize = 16;

/// `struct loop_info64` of `linux/loop.h`.
#[repr(C)]
struct LoopInfo64 {
    numbers: [u64; 5],
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

/// `struct loop_config` of `linux/loop.h`.
#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    info: LoopInfo64,
    reserved: [u64; 8],
}

/// A descriptor that is lower than every one that is opened later, for a volume's device. Reserve it before the volume's /dev/fuse is
/// opened.
///
/// The kernel closes a killed process's files from the highest descriptor down (`close_files` and `task_work_run` in Linux). Who closes a block
/// device last waits until what programs wrote to it is there. Were /dev/fuse still open then, a daemon that is killed while mkfs writes would
/// wait for its own answer, for ever, and every `sync` of the machine with it.
#[derive(Debug)]
pub(crate) struct LowPlace(OwnedFd);

impl LowPlace {
    pub(crate) fn reserve() -> Result<Self> {
        let opened = File::open("/dev/null");
        Ok(Self(opened.context(|| "cannot open /dev/null".to_owned(), "see `pgdyno doctor`")?.into()))
    }

    fn take(self, device: &File) -> io::Result<File> {
        let Self(mut place) = self;
        rustix::io::dup3(device, &mut place, rustix::io::DupFlags::CLOEXEC)?;
        Ok(place.into())
    }
}

/// An attached loop device. It detaches itself when neither this process nor a mount holds it open.
#[derive(Debug)]
pub(crate) struct LoopDevice {
    pub(crate) path: PathBuf,
    name: String,
    _open: File,
}

/// What was read back from the kernel after the set-up; a run starts from these.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Proofs {
    /// `statfs` of the folder that must be our FUSE mount.
    pub(crate) fuse_magic: String,
    pub(crate) backing_file: String,
    pub(crate) dio: String,
    pub(crate) scheduler: String,
    pub(crate) wbt_lat_usec: String,
    pub(crate) max_sectors_kb: String,
    pub(crate) write_cache: String,
    pub(crate) logical_block_size: String,
    /// Requests in flight at most.
    pub(crate) nr_requests: String,
}

impl LoopDevice {
    pub(crate) fn attach(file: &Path, place: LowPlace) -> Result<Self> {
        let remedy = "check that the loop module is loaded (`modprobe loop`) and that /dev/loop-control exists";
        let backing = OpenOptions::new()
            .read(true)
            .write(true)
            .open(file)
            .context(|| format!("cannot open {}", file.display()), "see the daemon's log")?;
        let control = File::open("/dev/loop-control").context(|| "cannot open /dev/loop-control".to_owned(), remedy)?;
        for _ in 0..TRIES {
            // SAFETY: this request takes no argument.
            let number = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE) };
            let number = u32::try_from(number)
                .map_err(|_| io::Error::last_os_error())
                .context(|| "there is no free loop device".to_owned(), remedy)?;
            let path = PathBuf::from(format!("/dev/loop{number}"));
            make_node(&path, number).context(|| format!("cannot create {}", path.display()), remedy)?;
            let device = OpenOptions::new()
                .read(true)
                .write(true)
                .open(&path)
                .context(|| format!("cannot open {}", path.display()), remedy)?;
            match configure(&device, &backing) {
                Ok(()) => {
                    let open = place.take(&device).context(|| format!("cannot hold {}", path.display()), remedy)?;
                    return Ok(Self { path, name: format!("loop{number}"), _open: open });
                }
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {}
                Err(error) => {
                    return Err(error).context(
                        || format!("cannot attach {} with direct I/O", path.display()),
                        "use Linux 5.8 or later; older kernels have no LOOP_CONFIGURE",
                    );
                }
            }
        }
        Err(Fault::new("other processes took every free loop device", "try again"))
    }

    /// Refuses a device that is mounted, or on which another is built. Who claims it can be seen after `timeout`; a mount
    /// that nobody has any more is one that the kernel has yet to let go of, and is given `patience` on a busy machine.
    pub(crate) fn require_unclaimed(&self, timeout: Duration, patience: Duration) -> Result<()> {
        let claimed = || {
            let opened = OpenOptions::new().read(true).custom_flags(libc::O_EXCL).open(&self.path);
            // A descriptor that is not to be had does not say that nobody has the device.
            let unknown = [libc::EBUSY, libc::EMFILE, libc::ENFILE, libc::ENOMEM, libc::EINTR];
            opened.is_err_and(|error| error.raw_os_error().is_some_and(|errno| unknown.contains(&errno)))
        };
        let begun = Instant::now();
        if wait_until(patience, || !claimed() || (begun.elapsed() > timeout && self.is_used())) && !claimed() {
            return Ok(());
        }
        Err(Fault::new(
            format!("{} is mounted, or part of another device", self.path.display()),
            "unmount it (`lsblk` on the device says where), and detach again",
        )
        .coded("volume.detach.claimed", json!({"device": self.path})))
    }

    /// Whether a mount of this process's namespace, or a device that is built on it, is there to be seen.
    fn is_used(&self) -> bool {
        let holders = fs::read_dir(format!("/sys/block/{}/holders", self.name));
        if holders.is_ok_and(|mut found| found.next().is_some()) {
            return true;
        }
        // By name: the device number that btrfs shows is not the disk's. Another mount's path need not be UTF-8.
        let mounts = fs::read("/proc/self/mountinfo").unwrap_or_default();
        let source =
            |line: &str| line.split_once(" - ")?.1.split(' ').nth(1).map(|source| Path::new(source) == self.path);
        String::from_utf8_lossy(&mounts).lines().any(|line| source(line) == Some(true))
    }

    /// Lets go of the device and waits until the kernel has detached it. Another program may take the free device at
    /// once, so what counts is that it is not ours any more.
    pub(crate) fn detach(self, timeout: Duration) -> Result<()> {
        let Self { path, name, _open } = self;
        let backing = PathBuf::from(format!("/sys/block/{name}/loop/backing_file"));
        let ours = fs::read_to_string(&backing).ok();
        drop(_open);
        if wait_until(timeout, || fs::read_to_string(&backing).ok().is_none_or(|now| Some(now) != ours)) {
            return Ok(());
        }
        Err(Fault::new(
            format!("{} is still in use", path.display()),
            "close what holds it open (`fuser -v` on the device names it), then run `pgdyno doctor --clean`",
        )
        .coded("volume.detach.device_in_use", json!({"device": path})))
    }

    /// Sets the queue up as a cloud volume's and reads everything back.
    pub(crate) fn prove(&self, file: &Path, fuse_magic: u64, unit_kib: u64, cache: Cache) -> Result<Proofs> {
        let queue = |name: &str| PathBuf::from(format!("/sys/block/{}/queue/{name}", self.name));
        for (name, value) in [
            ("scheduler", "none".to_owned()),
            ("wbt_lat_usec", "0".to_owned()),
            ("max_sectors_kb", unit_kib.to_string()),
            ("write_cache", write_cache(cache).to_owned()),
            ("rotational", "0".to_owned()),
            ("add_random", "0".to_owned()),
            // A loop module with another `hw_queue_depth` would have as many.
            ("nr_requests", IN_FLIGHT.to_string()),
            // The account that the release follows.
            ("iostats", "1".to_owned()),
        ] {
            // What a kernel does not offer it cannot do wrong; what matters is read back below.
            if queue(name).exists() {
                set(&queue(name), &value)?;
            }
        }
        let read =
            |path: PathBuf| fs::read_to_string(path).map_or_else(|_| "absent".to_owned(), |s| s.trim().to_owned());
        let device = |name: &str| PathBuf::from(format!("/sys/block/{}/loop/{name}", self.name));
        let proofs = Proofs {
            fuse_magic: format!("{fuse_magic:#x}"),
            backing_file: read(device("backing_file")),
            dio: read(device("dio")),
            scheduler: read(queue("scheduler")),
            wbt_lat_usec: read(queue("wbt_lat_usec")),
            max_sectors_kb: read(queue("max_sectors_kb")),
            write_cache: read(queue("write_cache")),
            logical_block_size: read(queue("logical_block_size")),
            nr_requests: read(queue("nr_requests")),
        };
        proofs.check(file, unit_kib, cache)?;
        Ok(proofs)
    }
}

impl Proofs {
    fn check(&self, file: &Path, unit_kib: u64, cache: Cache) -> Result<()> {
        let expected = [
            ("backing_file", &self.backing_file, file.display().to_string()),
            ("dio", &self.dio, "1".to_owned()),
            ("max_sectors_kb", &self.max_sectors_kb, unit_kib.to_string()),
            ("write_cache", &self.write_cache, write_cache(cache).to_owned()),
            ("logical_block_size", &self.logical_block_size, BLOCK_BYTES.to_string()),
        ];
        for (name, found, wanted) in expected {
            if *found != wanted {
                return Err(wrong(name, found, &wanted));
            }
        }
        if self.nr_requests.parse().is_ok_and(|most: u64| most > IN_FLIGHT) {
            return Err(wrong("nr_requests", &self.nr_requests, &format!("at most {IN_FLIGHT}")));
        }
        if self.scheduler != "absent" && !self.scheduler.contains("[none]") && self.scheduler != "none" {
            return Err(wrong("scheduler", &self.scheduler, "none"));
        }
        if self.wbt_lat_usec != "absent" && self.wbt_lat_usec != "0" {
            return Err(wrong("wbt_lat_usec", &self.wbt_lat_usec, "0"));
        }
        Ok(())
    }
}

/// The kernel's words: with `write back` it sends flushes.
fn write_cache(cache: Cache) -> &'static str {
    match cache {
        Cache::None => "write through",
        Cache::Volatile => "write back",
    }
}

fn wrong(name: &str, found: &str, wanted: &str) -> Fault {
    Fault::new(
        format!("the device is not set up as required: {name} is {found:?}, not {wanted:?}"),
        "run `pgdyno doctor --clean` and attach again; if that does not help, this kernel does not support emulated volumes",
    )
    .coded("volume.device.not_as_required", json!({"attribute": name, "is": found, "required": wanted}))
}

/// Writes a queue's attribute through a process of its own: the kernel first waits for the device's requests, which this
/// process answers (see `calibrate`).
fn set(attribute: &Path, value: &str) -> Result<()> {
    let script = r#"printf %s "$2" > "$1""#;
    run(tool("/bin/sh").args(["-c", script, "set"]).arg(attribute).arg(value), "mount /sys writable").map(drop)
}

fn configure(device: &File, backing: &File) -> io::Result<()> {
    // SAFETY: all-zero bytes are a valid value of these plain structures.
    let mut config: LoopConfig = unsafe { std::mem::zeroed() };
    config.fd = u32::try_from(backing.as_raw_fd()).map_err(io::Error::other)?;
    config.block_size = BLOCK_BYTES as u32;
    config.info.flags = LO_FLAGS_DIRECT_IO | LO_FLAGS_AUTOCLEAR;
    // SAFETY: `config` is the structure that this request reads, and outlives the call.
    let result = unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE, &raw const config) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// In a container without devtmpfs the node of a new device does not appear by itself.
fn make_node(path: &Path, number: u32) -> io::Result<()> {
    if path.exists() {
        return Ok(());
    }
    let device = rustix::fs::makedev(LOOP_MAJOR, number);
    let made = rustix::fs::mknodat(
        rustix::fs::CWD,
        path,
        rustix::fs::FileType::BlockDevice,
        rustix::fs::Mode::from_raw_mode(0o660),
        device,
    );
    match made {
        Err(error) if error != rustix::io::Errno::EXIST => Err(error.into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proofs(nr_requests: &str, logical_block_size: &str, dio: &str) -> Proofs {
        let [fuse_magic, backing_file, scheduler] = ["0x65735546", "/x/volume", "[none]"].map(str::to_owned);
        let [wbt_lat_usec, max_sectors_kb, write_cache] = ["0", "256", "write through"].map(str::to_owned);
        let [nr_requests, logical_block_size, dio] = [nr_requests, logical_block_size, dio].map(str::to_owned);
        Proofs {
            fuse_magic,
            backing_file,
            dio,
            scheduler,
            wbt_lat_usec,
            max_sectors_kb,
            write_cache,
            logical_block_size,
            nr_requests,
        }
    }

    #[test]
    fn a_device_that_is_not_what_the_code_relies_on_is_refused_by_name() {
        let check = |proofs: Proofs| proofs.check(Path::new("/x/volume"), 256, Cache::None);
        for depth in ["128", "64", "absent"] {
            check(proofs(depth, "4096", "1")).expect("as it must be");
        }
        for (wrong, attribute) in [
            (proofs("512", "4096", "1"), "nr_requests"),
            (proofs("128", "512", "1"), "logical_block_size"),
            (proofs("128", "4096", "0"), "dio"),
        ] {
            let fault = check(wrong).expect_err(attribute);
            assert_eq!(fault.code, "volume.device.not_as_required");
            assert_eq!(fault.data["attribute"], attribute);
        }
    }
}
