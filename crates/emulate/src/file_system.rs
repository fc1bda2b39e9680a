//! The file system on the device: made, mounted and unmounted by the system's own tools.

use std::fs;
use std::io::Read;
use std::path::Path;

use pgdyno_catalog::{ArrayFacts, Storage};
use pgdyno_host::{Context, Fault, Result};
use serde::{Deserialize, Serialize};

use crate::precautions::{run, tool};

/// Where the superblock of ext4 has its magic number, in bytes (linux/magic.h, ext4's on-disk format).
const EXT4_MAGIC_AT: usize = 1024 + 56;

/// A mount point is an empty folder: what is in it would be hidden.
pub(crate) fn check_mount_point(target: Option<&Path>) -> Result<()> {
    let Some(target) = target else { return Ok(()) };
    let shown = target.display();
    let mut entries = fs::read_dir(target)
        .context(|| format!("cannot read the mount point {shown}"), "create the folder first: `mkdir -p`")?;
    if entries.next().is_some() {
        return Err(Fault::new(
            format!("the mount point {shown} is not empty"),
            "name an empty folder; what is in this one would be hidden",
        ));
    }
    Ok(())
}

/// A kind of file system that a volume can carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileSystem {
    /// ext4.
    Ext4,
    /// XFS.
    Xfs,
}

impl FileSystem {
    fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
        }
    }

    /// The smallest volume that it is made on, and what says so.
    fn least_bytes(self) -> u64 {
        match self {
            // Its journal and its tables fit; below 1 MiB the catalogue has nothing.
            Self::Ext4 => 1 << 20,
            // mkfs.xfs(8), -b: "The minimum size of a filesystem is 300 MB" (since xfsprogs 5.19).
            Self::Xfs => 300 << 20,
        }
    }

    /// The largest volume that it is made on here. mkfs.ext4 goes through every group of blocks: 64 TiB took 105 s on a busy
    /// machine of two cores (e2fsprogs 1.47). mkfs.xfs took 17 s for 256 TiB; beyond 512 TiB the map of a volume's blocks is
    /// larger than 16 GiB.
    fn most_bytes(self) -> u64 {
        match self {
            Self::Ext4 => 128 << 40,
            Self::Xfs => 512 << 40,
        }
    }

    /// Refuses a volume that this file system is not made on, before anything is started for it.
    pub(crate) fn require_formattable(self, storage: &Storage) -> Result<()> {
        self.require_size(storage.total.size_bytes)?;
        match storage.stripes() {
            Some(array) if self == Self::Xfs => require_xfs_stripes(storage.total.size_bytes, array),
            _ => Ok(()),
        }
    }

    fn require_size(self, bytes: u64) -> Result<()> {
        let (name, least, most) = (self.name(), self.least_bytes(), self.most_bytes());
        if bytes < least {
            return Err(Fault::new(
                format!("{name} needs a volume of at least {} MiB, and this one has {} MiB", least >> 20, bytes >> 20),
                match self {
                    Self::Ext4 => format!("use size={}MiB or more", least >> 20),
                    Self::Xfs => format!("use size={}MiB or more, or --file-system ext4", least >> 20),
                },
            ));
        }
        if bytes > most {
            return Err(Fault::new(
                format!(
                    "{name} is supported on volumes of up to {} TiB, and this one has {} TiB",
                    most >> 40,
                    bytes >> 40
                ),
                match self {
                    Self::Ext4 => {
                        format!("use --file-system xfs (up to {} TiB), or a smaller size", Self::Xfs.most_bytes() >> 40)
                    }
                    Self::Xfs => "use fewer or smaller volumes".to_owned(),
                },
            ));
        }
        Ok(())
    }

    /// The program that makes it as large as its device while it is mounted.
    fn grower(self) -> &'static str {
        match self {
            Self::Ext4 => "resize2fs",
            Self::Xfs => "xfs_growfs",
        }
    }

    /// The argument of that program: ext4 by its device, XFS by its mount.
    fn grown_by<'a>(self, device: &'a Path, target: &'a Path) -> &'a Path {
        match self {
            Self::Ext4 => device,
            Self::Xfs => target,
        }
    }

    /// The command that makes it as large as its device, for people.
    pub(crate) fn growth(self, device: &Path, target: &Path) -> String {
        format!("`{} {}`", self.grower(), self.grown_by(device, target).display())
    }

    /// The package that brings `mkfs` for it, as Debian calls it.
    fn package(self) -> &'static str {
        match self {
            Self::Ext4 => "e2fsprogs",
            Self::Xfs => "xfsprogs",
        }
    }

    /// What is on a device, by the magic numbers of its superblock; `None` for any other.
    fn of_device(device: &Path) -> Result<Option<Self>> {
        let mut start = [0; EXT4_MAGIC_AT + 2];
        let read = fs::File::open(device).and_then(|mut file| file.read_exact(&mut start));
        read.context(|| format!("cannot read {}", device.display()), "run `pgdyno doctor`")?;
        Ok(match (&start[..4], &start[EXT4_MAGIC_AT..]) {
            (b"XFSB", _) => Some(Self::Xfs),
            (_, [0x53, 0xef]) => Some(Self::Ext4),
            _ => None,
        })
    }
}

/// The smallest array on which mkfs.xfs lays stripes out: below 520 MiB it refuses most of them (tried with xfsprogs 6.1, 2 to 128
/// columns of chunks up to 4 MiB), because its log of 64 MiB must fit into one of eight groups.
const XFS_STRIPED_BYTES_MIN: u64 = 640 << 20;
/// "stripe width is too large" (mkfs.xfs 6.1): it is an `int` of bytes.
const XFS_STRIPE_WIDTH_KIB_MAX: u64 = (1 << 31 >> 10) - 1;

fn require_xfs_stripes(bytes: u64, array: &ArrayFacts) -> Result<()> {
    let (columns, chunk_kib) = (u64::from(array.columns), array.chunk_kib);
    if bytes < XFS_STRIPED_BYTES_MIN {
        let least = XFS_STRIPED_BYTES_MIN >> 20;
        return Err(Fault::new(
            format!("xfs needs an array of at least {least} MiB, and this one has {} MiB", bytes >> 20),
            format!("use size={}MiB or more for each of the volumes, or --file-system ext4", least.div_ceil(columns)),
        ));
    }
    if columns * chunk_kib > XFS_STRIPE_WIDTH_KIB_MAX {
        return Err(Fault::new(
            format!("xfs takes stripes below 2 GiB, and these are {columns} chunks of {} MiB", chunk_kib >> 10),
            "use a smaller chunk, or --file-system ext4",
        ));
    }
    Ok(())
}

/// Makes a file system that leaves nothing to do in the background of a measurement, and discards nothing first.
///
/// ext4 writes its inode tables and its journal now. XFS makes inodes as they are needed and has nothing to write
/// later. It is told the stripe unit and width that mkfs.xfs finds by itself on an array of md, and none on a single
/// volume, whatever sizes the loop device announces.
pub(crate) fn format(device: &Path, kind: FileSystem, array: Option<&ArrayFacts>) -> Result<FileSystem> {
    let mut command = tool(&format!("mkfs.{}", kind.name()));
    match kind {
        FileSystem::Ext4 => command.args(["-q", "-F", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"]),
        FileSystem::Xfs => command.args(["-q", "-f", "-K", "-d", &xfs_alignment(array)]),
    };
    run(command.arg(device), &format!("use a larger volume, or install {}", kind.package())).map(|_| kind)
}

/// What `mkfs.xfs -d` is told of the stripes. Where the unit is larger than 256 KiB, mkfs gives the log one of 32 KiB.
fn xfs_alignment(array: Option<&ArrayFacts>) -> String {
    array.map_or_else(|| "noalign".to_owned(), |array| format!("su={}k,sw={}", array.chunk_kib, array.columns))
}

/// What is on a cloned device. An image of another kind than `wanted` is refused, not taken as it is.
pub(crate) fn found(device: &Path, wanted: Option<FileSystem>) -> Result<Option<FileSystem>> {
    match (FileSystem::of_device(device)?, wanted) {
        (found, Some(wanted)) if found != Some(wanted) => Err(Fault::new(
            format!(
                "the image holds {}, not {}",
                found.map_or("no known file system", FileSystem::name),
                wanted.name()
            ),
            "omit the file system: an image has its own",
        )),
        (found, _) => Ok(found),
    }
}

/// Mounts it with `options`, as `mount -o` takes them.
pub(crate) fn mount(device: &Path, target: &Path, kind: Option<FileSystem>, options: &str) -> Result<()> {
    let nothing = || Fault::new("the image holds neither ext4 nor xfs", "attach it with --no-mount");
    let kind = kind.ok_or_else(nothing)?;
    let mut options: Vec<&str> = options.split(',').filter(|option| !option.is_empty()).collect();
    if kind == FileSystem::Xfs {
        // A clone has the identity of its image, and XFS mounts each identity once.
        options.push("nouuid");
    }
    let mut command = tool("mount");
    command.args(["-t", kind.name()]);
    if !options.is_empty() {
        command.arg("-o").arg(options.join(","));
    }
    let remedy = format!("check the mount options, and that the kernel supports {}", kind.name());
    run(command.arg(device).arg(target), &remedy).map(drop)
}

/// Growing a mounted ext4 needs this (`ext4_resize_begin` in the kernel); containers often lack it.
const CAP_SYS_RESOURCE: u32 = 24;

/// Whether a mounted file system of this kind can be made larger here.
pub(crate) fn require_growable(kind: FileSystem) -> Result<()> {
    if kind == FileSystem::Ext4 && !has_capability(CAP_SYS_RESOURCE) {
        return Err(Fault::new(
            "a mounted ext4 file system grows only with CAP_SYS_RESOURCE, which this process does not have",
            "attach the volume with --file-system xfs, or keep its size",
        ));
    }
    require_installed(kind.grower(), kind.package())
}

fn require_installed(program: &str, package: &str) -> Result<()> {
    // Where a program that this process starts is looked for, and where the C library looks without it.
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    if std::env::split_paths(&path).any(|folder| folder.join(program).is_file()) {
        return Ok(());
    }
    Err(Fault::new(
        format!("growing a mounted file system of this kind needs {program}, which is not installed"),
        format!("install {package}, or keep the volume's size"),
    ))
}

fn has_capability(number: u32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = effective.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    bits.is_some_and(|bits| bits >> number & 1 == 1)
}

/// Makes a mounted file system as large as its device.
pub(crate) fn grow_file_system(kind: FileSystem, device: &Path, target: &Path) -> Result<()> {
    let growth = kind.growth(device, target);
    let remedy = format!("the device has grown and its file system has not: remove the cause, then run {growth}");
    run(tool(kind.grower()).arg(kind.grown_by(device, target)), &remedy).map(drop)
}

/// Unmounts through a process of its own. An unmount waits for the file system's last requests, which this process
/// answers: if it were killed inside that call, its files would stay open, and the waiting process would never end.
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
    // Another mount's path need not be UTF-8.
    let mounts = fs::read("/proc/self/mountinfo").unwrap_or_default();
    let (mounts, wanted) = (String::from_utf8_lossy(&mounts), target.to_string_lossy());
    mounts.lines().filter_map(|line| line.split(' ').nth(4)).any(|place| unescaped(place) == wanted)
}

/// A path as it is, from a list whose columns spaces part (`proc(5)`, mountinfo).
pub(crate) fn unescaped(text: &str) -> String {
    let escapes = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    escapes.iter().fold(text.to_owned(), |text, (escape, meant)| text.replace(escape, meant))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_there_is_said_before_anything_grows() {
        require_installed("sh", "dash").expect("every system has it");
        let error = require_installed("pgdyno-no-such-program", "nothing").expect_err("nobody has it");
        assert!(error.message.contains("pgdyno-no-such-program") && error.remedy.contains("install nothing"));
        let [device, target] = ["/dev/loop3", "/mnt/data"].map(Path::new);
        assert_eq!(FileSystem::Ext4.growth(device, target), "`resize2fs /dev/loop3`");
        assert_eq!(FileSystem::Xfs.growth(device, target), "`xfs_growfs /mnt/data`");
    }

    #[test]
    fn xfs_is_told_the_stripes_of_an_array_and_refuses_what_mkfs_would() {
        let said = |spec: &str| {
            let storage = Storage::parse(spec).expect("legal");
            let refused = FileSystem::Xfs.require_formattable(&storage).err().map(|error| error.message);
            (xfs_alignment(storage.stripes()), refused)
        };
        assert_eq!(said("gp3:size=1GiB"), ("noalign".to_owned(), None));
        assert_eq!(said("gp3:size=1GiB,multi_az=1ms"), ("noalign".to_owned(), None));
        assert_eq!(said("4xgp3:size=1GiB"), ("su=512k,sw=4".to_owned(), None));
        assert_eq!(said("raid10:6xgp3:size=1GiB,chunk=64KiB"), ("su=64k,sw=3".to_owned(), None));
        let small = "xfs needs an array of at least 640 MiB, and this one has 636 MiB";
        assert_eq!(said("4xnull:size=159MiB").1.as_deref(), Some(small));
        let wide = "xfs takes stripes below 2 GiB, and these are 32 chunks of 64 MiB";
        assert_eq!(said("32xgp3:size=1GiB,chunk=64MiB").1.as_deref(), Some(wide));
        assert_eq!(said("31xgp3:size=1GiB,chunk=64MiB").1, None);
        let ext4 = Storage::parse("4xnull:size=10MiB").expect("legal");
        FileSystem::Ext4.require_formattable(&ext4).expect("it is told no stripes");
    }

    #[test]
    fn a_place_in_the_list_of_mounts_is_read_as_it_was_named() {
        assert_eq!(unescaped("/mnt/my\\040data\\011of\\012two"), "/mnt/my data\tof\ntwo");
        assert_eq!(unescaped("/mnt/\\134040"), "/mnt/\\040", "a backslash that was one");
        assert!(is_mount_point(Path::new("/proc")));
        assert!(!is_mount_point(Path::new("/proc/self")));
    }
}
