//! Planted bugs of a server: a library that is loaded before its own (`LD_PRELOAD`), and then `fsync` and `fdatasync` of one class of
//! files in one kind of process do nothing and say that they did it.
//!
//! `UNSYNCED` names both, as `wal backend`, or `any` for either. Only the benches of power cuts load it, into servers of their own.

use std::ffi::c_int;
use std::path::Path;
use std::sync::OnceLock;

/// What is named by `UNSYNCED`.
const VARIABLE: &str = "UNSYNCED";
/// Either class, or either kind.
const ANY: &str = "any";

/// Which syncs are skipped.
#[derive(Debug, PartialEq, Eq)]
struct Skipped {
    files: String,
    process: String,
}

impl Skipped {
    /// From `FILES PROCESS`; `None` when it is not that.
    fn parse(text: &str) -> Option<Self> {
        let (files, process) = text.split_once(' ')?;
        Some(Self { files: files.to_owned(), process: process.to_owned() })
    }

    /// Whether a sync of a file is one of them. `title` is what the process calls itself.
    fn covers(&self, path: &Path, is_directory: bool, title: &str) -> bool {
        (self.files == ANY || self.files == class(path, is_directory))
            && (self.process == ANY || self.process == kind(title))
    }
}

/// The class of a file of a server.
fn class(path: &Path, is_directory: bool) -> &'static str {
    let has = |name: &str| path.components().any(|part| part.as_os_str() == name);
    match () {
        () if is_directory => "directory",
        () if has("pg_wal") => "wal",
        () if path.ends_with("global/pg_control") => "pg_control",
        () if has("pg_xact") => "pg_xact",
        () if has("pg_twophase") => "pg_twophase",
        () if has("base") || has("global") => "table",
        () => "other",
    }
}

/// The kind of a process, from the title that PostgreSQL gives it (`src/backend/utils/misc/ps_status.c`).
fn kind(title: &str) -> &'static str {
    match title.strip_prefix("postgres: ") {
        Some(title) if title.starts_with("checkpointer") => "checkpointer",
        Some(title) if title.starts_with("walwriter") => "walwriter",
        Some(title) if title.contains("[local]") => "backend",
        _ => "other",
    }
}

/// Whether the sync of a descriptor is skipped. What cannot be known is synced.
fn is_skipped(fd: c_int) -> bool {
    static SKIPPED: OnceLock<Option<Skipped>> = OnceLock::new();
    let wanted = SKIPPED.get_or_init(|| std::env::var(VARIABLE).ok().as_deref().and_then(Skipped::parse));
    let Some(wanted) = wanted else { return false };
    let Ok(path) = std::fs::read_link(format!("/proc/self/fd/{fd}")) else { return false };
    let is_directory = std::fs::metadata(&path).is_ok_and(|facts| facts.is_dir());
    // The title is written over the arguments, and changes while the process lives.
    let Ok(title) = std::fs::read("/proc/self/cmdline") else { return false };
    wanted.covers(&path, is_directory, &String::from_utf8_lossy(&title))
}

/// In the place of libc's.
#[unsafe(no_mangle)]
pub extern "C" fn fsync(fd: c_int) -> c_int {
    // SAFETY: the call takes a descriptor, and no memory of ours.
    if is_skipped(fd) { 0 } else { unsafe { libc::syscall(libc::SYS_fsync, fd) as c_int } }
}

/// In the place of libc's.
#[unsafe(no_mangle)]
pub extern "C" fn fdatasync(fd: c_int) -> c_int {
    // SAFETY: the call takes a descriptor, and no memory of ours.
    if is_skipped(fd) { 0 } else { unsafe { libc::syscall(libc::SYS_fdatasync, fd) as c_int } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sync_is_skipped_for_one_class_of_files_in_one_kind_of_process() {
        let backend = "postgres: postgres postgres [local] COMMIT\0\0";
        let wal = Path::new("/mnt/wal/pg_wal/000000010000000000000001");
        let skipped = |text: &str, path: &Path, title: &str| {
            Skipped::parse(text).expect("two words").covers(path, path.ends_with("pg_wal"), title)
        };
        assert!(skipped("wal backend", wal, backend));
        assert!(skipped("any any", wal, ""));
        assert!(!skipped("wal backend", wal, "postgres: walwriter "));
        assert!(!skipped("table backend", wal, backend));
        assert!(!skipped("wal backend", Path::new("/mnt/wal/pg_wal"), backend), "a directory is a class of its own");
        assert_eq!(Skipped::parse("wal"), None);
    }

    #[test]
    fn files_of_a_server_have_a_class() {
        let found = |path: &str| class(Path::new(path), false);
        assert_eq!(found("/m/pgdata/base/5/16385"), "table");
        assert_eq!(found("/m/pgdata/global/1262"), "table");
        assert_eq!(found("/m/pgdata/global/pg_control"), "pg_control");
        assert_eq!(found("/m/pgdata/pg_xact/0000"), "pg_xact");
        assert_eq!(found("/m/pgdata/postmaster.pid"), "other");
    }

    #[test]
    fn a_sync_that_nobody_skips_is_the_kernels() {
        let file = std::fs::File::open("Cargo.toml").expect("the crate's own");
        let fd = std::os::fd::AsRawFd::as_raw_fd(&file);
        assert_eq!((fsync(fd), fdatasync(fd)), (0, 0));
        assert_eq!((fsync(-1), fdatasync(-1)), (-1, -1));
    }
}
