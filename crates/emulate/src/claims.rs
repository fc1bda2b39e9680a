//! Who uses a volume: programs that have its device or a file of it open, mounts in any namespace, devices that are built on it.
//!
//! Only links and lists in /proc and /sys are read, which ask the kernel's names and never a file system: that may be stuck.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use pgdyno_host::Fault;
use serde::Serialize;
use serde_json::{Value, json};

use crate::file_system::unescaped;

/// What an error names at most.
const NAMED: usize = 5;

/// A process that has the device or a file of the volume open, or works in a folder of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Holder {
    pid: u32,
    command: String,
}

/// A mount of the volume that does not go with its own, and a process that sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Seen {
    path: String,
    pid: u32,
}

/// What uses a volume.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Claims {
    processes: Vec<Holder>,
    mounts: Vec<Seen>,
    /// Devices that are built on its device.
    devices: Vec<String>,
}

impl Claims {
    /// Of a device, whose file system is mounted on `mount` and is about to be unmounted there.
    pub(crate) fn of(device: &Path, mount: Option<&Path>) -> Self {
        let name = device.file_name().unwrap_or_default().to_string_lossy();
        let above = fs::read_dir(format!("/sys/block/{name}/holders")).into_iter().flatten().flatten();
        let devices = above.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        let mut namespaces = BTreeMap::new();
        let mut processes = Vec::new();
        for pid in pids() {
            if let Ok(namespace) = fs::read_link(format!("/proc/{pid}/ns/mnt")) {
                namespaces.entry(namespace).or_insert(pid);
            }
            if pid != std::process::id() && holds(pid, device, mount) {
                let command = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
                processes.push(Holder { pid, command: String::from_utf8_lossy(&command).trim().to_owned() });
            }
        }
        let own = fs::read_link("/proc/self/ns/mnt").unwrap_or_default();
        namespaces.insert(own.clone(), std::process::id());
        let lists = namespaces.into_iter().map(|(namespace, pid)| {
            let text = fs::read(format!("/proc/{pid}/mountinfo")).unwrap_or_default();
            (namespace == own, pid, String::from_utf8_lossy(&text).lines().filter_map(Mount::parse).collect())
        });
        let number = fs::read_to_string(format!("/sys/block/{name}/dev")).unwrap_or_default();
        let mounts = other_mounts(&lists.collect::<Vec<_>>(), device, number.trim(), mount);
        Self { processes, mounts, devices }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.processes.is_empty() && self.mounts.is_empty() && self.devices.is_empty()
    }

    /// Why the volume cannot be detached now.
    pub(crate) fn refusal(&self, device: &Path) -> Fault {
        let processes = self.processes.iter().map(|one| format!("{} (process {})", one.command, one.pid));
        let processes: Vec<String> = processes.take(NAMED).collect();
        let mounts = self.mounts.iter().map(|one| match one.pid == std::process::id() {
            true => one.path.clone(),
            false => format!("{} in the mount namespace of process {}", one.path, one.pid),
        });
        let mounts: Vec<String> = mounts.take(NAMED).collect();
        let (mut why, mut how) = (Vec::new(), Vec::new());
        if !processes.is_empty() {
            why.push(format!("{} use it", processes.join(", ")));
            how.push("end these programs");
        }
        if !mounts.is_empty() {
            why.push(format!("it is mounted on {}", mounts.join(", ")));
            how.push("unmount it there");
        }
        if !self.devices.is_empty() {
            why.push(format!("{} is built on it", self.devices.join(", ")));
            how.push("remove what is built on it (`dmsetup remove`, `mdadm --stop`)");
        }
        Fault::new(
            format!("{} is in use: {}; nothing was changed", device.display(), why.join(", and ")),
            format!("{}, and detach again", how.join(", ")),
        )
        .coded("volume.detach.in_use", self.data(device))
    }

    fn data(&self, device: &Path) -> Value {
        json!({"device": device, "processes": self.processes, "mounts": self.mounts, "devices": self.devices})
    }
}

fn pids() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Whether a process has the device open, or a file below the mount, or works there.
fn holds(pid: u32, device: &Path, mount: Option<&Path>) -> bool {
    let named = ["cwd", "root", "exe"].map(|name| PathBuf::from(format!("/proc/{pid}/{name}")));
    let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten().map(|entry| entry.path());
    named
        .into_iter()
        .chain(open)
        .filter_map(|link| fs::read_link(link).ok())
        .any(|target| target == device || mount.is_some_and(|mount| target.starts_with(mount)))
}

/// A line of mountinfo (`proc(5)`).
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mount {
    id: u64,
    parent: u64,
    number: String,
    /// The folder of its file system that it shows, and where.
    root: String,
    point: String,
    /// The groups in which it gives mounts on, and from which it gets them.
    shared: Option<u64>,
    master: Option<u64>,
    source: String,
}

impl Mount {
    fn parse(line: &str) -> Option<Self> {
        let (left, right) = line.split_once(" - ")?;
        let mut columns = left.split(' ');
        let (id, parent) = (columns.next()?.parse().ok()?, columns.next()?.parse().ok()?);
        let number = columns.next()?.to_owned();
        let (root, point) = (unescaped(columns.next()?), unescaped(columns.next()?));
        let tags: Vec<&str> = columns.skip(1).collect();
        let tag = |name: &str| tags.iter().find_map(|tag| tag.strip_prefix(name)?.parse().ok());
        let source = unescaped(right.split(' ').nth(1)?);
        Some(Self { id, parent, number, root, point, shared: tag("shared:"), master: tag("master:"), source })
    }
}

/// Mounts of the device that stay when it is unmounted on `mount` of the own namespace. The lists: whether it is the own one, a
/// process that has it, the mounts.
fn other_mounts(lists: &[(bool, u32, Vec<Mount>)], device: &Path, number: &str, mount: Option<&Path>) -> Vec<Seen> {
    let is_of_it = |one: &Mount| Path::new(&one.source) == device || one.number == number;
    let is_its_own = |own: bool, one: &Mount| own && mount.is_some_and(|mount| Path::new(&one.point) == mount);
    // The kernel takes a mount away where it had given it on to: below mounts of the same group, and those that follow it.
    let own = lists.iter().find(|(own, ..)| *own).map(|(.., mounts)| mounts.as_slice()).unwrap_or_default();
    let its_own = own.iter().rfind(|one| is_of_it(one) && is_its_own(true, one));
    let its_place = its_own.and_then(|one| place(one, own));
    let parent = its_own.map(|one| one.parent);
    let mut groups: BTreeSet<u64> =
        own.iter().filter(|one| Some(one.id) == parent).filter_map(|one| one.shared).collect();
    loop {
        let all = lists.iter().flat_map(|(.., mounts)| mounts);
        let follow = all.filter(|one| one.master.is_some_and(|group| groups.contains(&group)));
        let more: Vec<u64> = follow.filter_map(|one| one.shared).filter(|group| !groups.contains(group)).collect();
        if more.is_empty() {
            break;
        }
        groups.extend(more);
    }
    let mut seen = Vec::new();
    let mut is_first = true;
    for (own, pid, mounts) in lists {
        for one in mounts.iter().filter(|one| is_of_it(one)) {
            if is_its_own(*own, one) && std::mem::take(&mut is_first) {
                continue;
            }
            let above = mounts.iter().find(|other| other.id == one.parent);
            let groups_above = above.map_or([None; 2], |above| [above.shared, above.master]);
            let goes = groups_above.iter().flatten().any(|group| groups.contains(group));
            if !goes || place(one, mounts) != its_place {
                seen.push(Seen { path: one.point.clone(), pid: *pid });
            }
        }
    }
    seen
}

/// Where a mount lies in the file system below it.
fn place(one: &Mount, mounts: &[Mount]) -> Option<PathBuf> {
    let above = mounts.iter().find(|other| other.id == one.parent)?;
    Some(Path::new(&above.root).join(Path::new(&one.point).strip_prefix(&above.point).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Vec<Mount> {
        text.lines().map(|line| Mount::parse(line.trim()).expect("a line of mountinfo")).collect()
    }

    /// The mounts of /dev/loop3 that an unmount of /mnt/data in the first namespace leaves.
    fn left(own: &str, other: &str) -> Vec<(String, u32)> {
        let lists = [(true, 1, list(own)), (false, 2, list(other))];
        let seen = other_mounts(&lists, Path::new("/dev/loop3"), "7:3", Some(Path::new("/mnt/data")));
        seen.into_iter().map(|one| (one.path, one.pid)).collect()
    }

    const OWN: &str =
        "20 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n30 20 7:3 / /mnt/data rw shared:9 - ext4 /dev/loop3 rw";

    #[test]
    fn a_copy_in_another_namespace_stays_unless_the_kernel_takes_it_along() {
        let private = "50 1 8:1 / / rw - ext4 /dev/sda1 rw\n51 50 7:3 / /mnt/data rw - ext4 /dev/loop3 rw";
        assert_eq!(left(OWN, private), [("/mnt/data".to_owned(), 2)]);
        for tag in ["shared:1", "master:1", "shared:5 master:1"] {
            assert_eq!(left(OWN, &private.replacen("rw -", &format!("rw {tag} -"), 1)), [], "{tag}");
        }
        let later =
            "49 1 8:1 / /x rw shared:5 master:1 - ext4 /dev/sda1 rw\n50 1 8:1 / / rw master:5 - ext4 /dev/sda1 rw
            51 50 7:3 / /mnt/data rw - ext4 /dev/loop3 rw";
        assert_eq!(left(OWN, later), [], "one that follows a follower");
    }

    #[test]
    fn another_mount_of_the_device_stays_whatever_its_source_is_called() {
        let twice = format!("{OWN}\n31 20 7:3 / /mnt/other\\040place rw - ext4 /dev/block/7:3 rw");
        for text in [twice.replace("shared:1 ", ""), twice] {
            assert_eq!(left(&text, ""), [("/mnt/other place".to_owned(), 1)]);
        }
    }

    #[test]
    fn an_error_says_what_uses_the_volume_as_data_too() {
        let holder = Holder { pid: 7, command: "dd".to_owned() };
        let claims = Claims { processes: vec![holder], ..Claims::default() };
        let fault = claims.refusal(Path::new("/dev/loop3"));
        assert_eq!(fault.code, "volume.detach.in_use");
        assert_eq!(fault.data["processes"], json!([{"pid": 7, "command": "dd"}]));
        assert!(Claims::default().is_empty());
    }
}
