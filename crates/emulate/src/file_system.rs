//! The file system on the device: made, mounted and unmounted by the system's own tools.

use std::fs;
use std::path::Path;

use crate::error::{Context, EmulateError, Result};
use crate::precautions::{run, tool};

/// A mount point is an empty folder: what is in it would be hidden.
pub(crate) fn check_mount_point(target: Option<&Path>) -> Result<()> {
    let Some(target) = target else { return Ok(()) };
    let shown = target.display();
    let mut entries = fs::read_dir(target)
        .context(|| format!("cannot read the mount point {shown}"), "create the folder first: `mkdir -p`")?;
    if entries.next().is_some() {
        return Err(EmulateError::new(
            format!("the mount point {shown} is not empty"),
            "name an empty folder; what is in this one would be hidden",
        ));
    }
    Ok(())
}

/// No lazy initialisation: it would write in the background of a measurement.
pub(crate) fn format(device: &Path) -> Result<()> {
    let options = "nodiscard,lazy_itable_init=0,lazy_journal_init=0";
    run(tool("mkfs.ext4").args(["-q", "-F", "-E", options]).arg(device), "install e2fsprogs").map(drop)
}

/// Mounts it with `options`, as `mount -o` takes them.
pub(crate) fn mount(device: &Path, target: &Path, options: &str) -> Result<()> {
    let mut command = tool("mount");
    command.args(["-t", "ext4"]);
    if !options.is_empty() {
        command.args(["-o", options]);
    }
    run(command.arg(device).arg(target), "check the mount options, and that the kernel knows ext4").map(drop)
}

/// Unmounts through a process of its own. An unmount waits for the file system's last requests, which this process
/// answers: if it were killed inside that call, its files would stay open, and whoever waits would wait for ever.
pub(crate) fn unmount(target: &Path) -> Result<()> {
    let remedy = "close what uses it (`fuser -vm` on the folder names it) and detach again";
    run(tool("umount").arg(target), remedy).map(drop)
}

/// Takes a mount that is in use out of sight.
pub(crate) fn unmount_lazily(target: &Path) {
    let _ = run(tool("umount").arg("--lazy").arg(target), "");
}

/// Whether something is mounted exactly there, by the kernel's own list: a look at the folder itself could hang.
pub(crate) fn is_mount_point(target: &Path) -> bool {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let wanted = target.to_string_lossy();
    mounts.lines().filter_map(|line| line.split(' ').nth(4)).any(|place| place.replace("\\040", " ") == wanted)
}
