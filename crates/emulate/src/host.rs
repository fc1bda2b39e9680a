//! Whether the kernel lets this process mount: asked by mounting, where no other process sees it.

use std::ffi::CStr;
use std::fs::OpenOptions;
use std::io;
use std::os::fd::AsRawFd;

use pgdyno_host::{Fault, Result};

/// A directory that every machine has; what is mounted over it here is seen by this process alone.
const PLACE: &CStr = c"/dev";
const REMEDY: &str = "run as root on the host itself; in a container pass \
    `--device /dev/fuse --cap-add SYS_ADMIN --security-opt apparmor=unconfined`, or `--privileged`";
const ROOT_REMEDY: &str =
    "run it on the host itself, or make the root directory a mount: `mount --bind DIR DIR` before `chroot DIR`";

/// Mounts a FUSE file system in a mount namespace of this process's own, which ends with it: nothing is changed on the
/// machine. For a process that does nothing else afterwards.
///
/// # Errors
/// The step that the kernel refuses, and what it says.
pub fn check_host() -> Result<()> {
    let fuse = OpenOptions::new().read(true).write(true).open("/dev/fuse");
    let fuse = fuse.map_err(|error| refused("/dev/fuse cannot be opened", error))?;
    private_mounts()?;
    let options = format!("fd={},rootmode=40000,user_id=0,group_id=0\0", fuse.as_raw_fd());
    let options = CStr::from_bytes_with_nul(options.as_bytes()).expect("the one NUL is at the end");
    mount(c"pgdyno", PLACE, Some(c"fuse"), libc::MS_NOSUID | libc::MS_NODEV, options)
        .map_err(|error| refused("the kernel refuses to mount FUSE", error))
}

/// From here on what this process and its children mount is seen by them alone, and ends with them. Before any thread is
/// started.
///
/// # Errors
/// The step that the kernel refuses, and what it says.
pub(crate) fn private_mounts() -> Result<()> {
    // SAFETY: no memory is passed.
    let namespace = checked(unsafe { libc::unshare(libc::CLONE_NEWNS) });
    namespace.map_err(|error| refused("the kernel refuses to mount", error))?;
    mount(c"none", c"/", None, libc::MS_REC | libc::MS_PRIVATE, c"").map_err(|error| match error.raw_os_error() {
        Some(libc::EINVAL) => Fault::of_host("the root directory of this chroot is not a mount", ROOT_REMEDY),
        _ => refused("the kernel refuses to make mounts private", error),
    })
}

fn refused(what: &str, error: io::Error) -> Fault {
    let needs = if error.raw_os_error() == Some(libc::EPERM) { " (it needs CAP_SYS_ADMIN)" } else { "" };
    Fault::of_host(format!("{what}: {error}{needs}"), REMEDY)
}

fn mount(source: &CStr, target: &CStr, kind: Option<&CStr>, flags: libc::c_ulong, options: &CStr) -> io::Result<()> {
    let kind = kind.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: every string ends with NUL and outlives the call; a kind is not needed to change flags.
    checked(unsafe { libc::mount(source.as_ptr(), target.as_ptr(), kind, flags, options.as_ptr().cast()) })
}

fn checked(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
