//! The state directory: one private folder for each attached volume.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::error::{Context, EmulateError, Result};

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
            return Err(EmulateError::new(
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
        return Err(EmulateError::new(
            format!("{name:?} is no name for {what}"),
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
    let read = |folder: PathBuf| serde_json::from_slice(&fs::read(folder.join("volume.json")).ok()?).ok();
    folders.into_iter().filter_map(read).collect()
}

/// When a process started, in clock ticks since boot: with the pid it names a process for good. `None` when it is dead,
/// also while its parent has not heard of it.
pub(crate) fn start_ticks(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut columns = stat.rsplit_once(')')?.1.split_whitespace();
    let state = columns.next()?;
    if matches!(state, "Z" | "X") { None } else { columns.nth(18)?.parse().ok() }
}
