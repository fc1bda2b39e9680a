//! The state directory: one private folder for each attached volume.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use pgdyno_host::{Context, Fault, Result};
use serde_json::Value;

/// The folder of one volume.
#[derive(Debug)]
pub(crate) struct VolumeDir(PathBuf);

impl VolumeDir {
    pub(crate) fn of(state_dir: &Path, name: &str) -> Result<Self> {
        require_name(name, "a volume")?;
        Ok(Self(state_dir.join("volumes").join(name)))
    }

    /// Creates the folder, readable by its owner only. A volume of that name must not exist.
    pub(crate) fn create(&self) -> Result<()> {
        let remedy = "check that the state directory is writable";
        let above = self.0.parent().expect("a volume's folder has a parent");
        let mut builder = fs::DirBuilder::new();
        builder.mode(0o700);
        builder.recursive(true).create(above).context(|| format!("cannot create {}", above.display()), remedy)?;
        fs::set_permissions(above, fs::Permissions::from_mode(0o700))
            .context(|| format!("cannot make {} private", above.display()), remedy)?;
        if self.0.exists() {
            return Err(Fault::new(
                format!("there is already a volume in {}", self.0.display()),
                "choose another --name, detach it, or run `pgdyno doctor --clean` if its daemon is gone",
            ));
        }
        let fuse = self.fuse();
        builder.create(&fuse).context(|| format!("cannot create {}", fuse.display()), remedy)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Where the daemon's file system is mounted.
    pub(crate) fn fuse(&self) -> PathBuf {
        self.0.join("fuse")
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.0.join("control.sock")
    }

    pub(crate) fn facts(&self) -> PathBuf {
        self.0.join("volume.json")
    }

    /// Where the writable layer of a volume in memory is, and of one on a disk.
    pub(crate) fn layer(&self, store: &str) -> PathBuf {
        let name = self.0.file_name().unwrap_or_default();
        let above = if store == "memory" { image_dir().join("layers") } else { PathBuf::from(store) };
        // Two state directories may use the same name at the same time.
        above.join(format!("{}-{}", name.to_string_lossy(), std::process::id()))
    }
}

/// What can be the name of a folder and be typed.
pub(crate) fn require_name(name: &str, what: &str) -> Result<()> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    if name.is_empty() || name.len() > 40 || !name.chars().all(plain) {
        return Err(Fault::new(
            format!("{name:?} is not a valid name for {what}"),
            "use up to 40 lower-case letters, digits, '-' and '_'",
        ));
    }
    Ok(())
}

/// Where images and layers in memory are kept.
pub(crate) fn image_dir() -> PathBuf {
    std::env::var_os("PGDYNO_IMAGE_DIR").map_or_else(|| PathBuf::from("/dev/shm/pgdyno/images"), PathBuf::from)
}

/// Facts of every volume in a state directory, by name.
pub(crate) fn all_facts(state_dir: &Path) -> Vec<Value> {
    let mut folders: Vec<PathBuf> =
        fs::read_dir(state_dir.join("volumes")).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    folders.sort();
    folders.into_iter().filter_map(|folder| read_facts(&folder.join("volume.json"))).collect()
}

/// Facts that a daemon wrote.
pub(crate) fn read_facts(file: &Path) -> Option<Value> {
    serde_json::from_slice(&fs::read(file).ok()?).ok()
}

/// When a process started, in clock ticks since boot: with the pid it names a process for good. `None` when it is dead,
/// also while its parent has not heard of it.
pub(crate) fn start_ticks(pid: u32) -> Option<u64> {
    state_and_start(pid).map(|(_, ticks)| ticks)
}

/// The kernel's letter for what a process does (`R`, `S`, `D`, `T` ...), and when it started. `None` when it is dead.
fn state_and_start(pid: u32) -> Option<(char, u64)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut columns = stat.rsplit_once(')')?.1.split_whitespace();
    let state = columns.next()?.chars().next()?;
    if matches!(state, 'Z' | 'X') { None } else { Some((state, columns.nth(18)?.parse().ok()?)) }
}

/// The daemon of a volume, as its facts name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Daemon {
    /// It can be asked.
    Running(u32),
    /// Stopped by a signal or a debugger: it answers when it is continued.
    Stopped(u32),
    Dead,
}

/// What the daemon of these facts is now.
pub(crate) fn daemon(facts: &Value) -> Daemon {
    let pid = facts["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).unwrap_or(0);
    match state_and_start(pid) {
        Some((state, ticks)) if Some(ticks) == facts["pid_start_ticks"].as_u64() => {
            if matches!(state, 'T' | 't') {
                Daemon::Stopped(pid)
            } else {
                Daemon::Running(pid)
            }
        }
        _ => Daemon::Dead,
    }
}
