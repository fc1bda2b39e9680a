//! A named instance: a private folder that says which process serves it, and the socket over which volumes join.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pgdyno_host::{Context, Fault, Result};
use rustix::fs::FlockOperation;
use serde_json::{Value, json};

use crate::ask::ask;
use crate::spec::ServeSpec;
use crate::state_dir::{Daemon, daemon, read_facts, require_name, start_ticks};
use crate::wait::wait_until;

/// Formatting a large volume and calibrating it take seconds; this is for a machine that does much else.
const JOIN_TIMEOUT: Duration = Duration::from_secs(110);
/// A daemon listens right after it has claimed the folder.
const OWNER_TIMEOUT: Duration = Duration::from_secs(2);
/// The process that has the lock makes or removes a folder.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// A daemon that ends just when a volume joins is followed by a new one.
const TRIES: usize = 5;

/// The folder of an instance that this process serves; removed when dropped.
#[derive(Debug)]
pub(crate) struct InstanceDir(PathBuf);

/// How an instance was entered.
#[derive(Debug)]
pub(crate) enum Entered {
    /// No process serves it: this one has to.
    First(InstanceDir),
    /// It is served, and the volume has joined; its facts.
    Joined(Value),
}

impl InstanceDir {
    /// Joins the instance if it is served, else becomes the one who serves it.
    pub(crate) fn enter(state_dir: &Path, name: &str, spec: &ServeSpec) -> Result<Entered> {
        require_name(name, "an instance")?;
        let folder = state_dir.join("instances").join(name);
        for _ in 0..TRIES {
            if let Some(place) = Self::claim(&folder)? {
                return Ok(Entered::First(place));
            }
            if let Some(facts) = join(&folder, spec)? {
                return Ok(Entered::Joined(facts));
            }
        }
        let remedy = "run `pgdyno doctor --clean`, then attach again";
        Err(Fault::new(format!("the instance {name:?} does not answer"), remedy))
    }

    /// Takes the folder, unless the process that has it lives.
    fn claim(folder: &Path) -> Result<Option<Self>> {
        let remedy = "check that the state directory is writable";
        let failed = || format!("cannot create {}", folder.display());
        let above = folder.parent().expect("an instance's folder has a parent");
        let mut builder = fs::DirBuilder::new();
        builder.mode(0o700);
        builder.recursive(true).create(above).context(failed, remedy)?;
        builder.recursive(false);
        let _alone = lock(above).context(failed, remedy)?;
        match builder.create(folder) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if is_served(folder) {
                    return Ok(None);
                }
                fs::remove_dir_all(folder).and_then(|()| builder.create(folder)).context(failed, remedy)?;
            }
            Err(error) => return Err(error).context(failed, remedy),
        }
        let place = Self(folder.to_owned());
        let pid = std::process::id();
        let owner = json!({"pid": pid, "pid_start_ticks": start_ticks(pid)}).to_string();
        let unfinished = folder.join("owner.new");
        let written = fs::write(&unfinished, owner).and_then(|()| fs::rename(&unfinished, owner_file(folder)));
        written.context(failed, remedy)?;
        Ok(Some(place))
    }

    pub(crate) fn socket(&self) -> PathBuf {
        socket(&self.0)
    }
}

impl Drop for InstanceDir {
    fn drop(&mut self) {
        let above = self.0.parent().unwrap_or(&self.0);
        // Without the lock another process that claims the folder would see it half removed, and take it meanwhile.
        let _alone = lock(above);
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Only one process at a time claims or gives up a folder in `above`. Ends with the file, or with its process.
fn lock(above: &Path) -> io::Result<File> {
    let folder = File::open(above)?;
    let locked = || rustix::fs::flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok();
    if wait_until(LOCK_TIMEOUT, locked) { Ok(folder) } else { Err(io::ErrorKind::TimedOut.into()) }
}

fn owner_file(folder: &Path) -> PathBuf {
    folder.join("owner.json")
}

fn socket(folder: &Path) -> PathBuf {
    folder.join("control.sock")
}

/// Whether the process that made the folder lives.
fn is_served(folder: &Path) -> bool {
    read_facts(&owner_file(folder)).is_some_and(|owner| daemon(&owner) != Daemon::Dead)
}

/// Asks the daemon to attach one more volume; `None` if it ended before it answered.
fn join(folder: &Path, spec: &ServeSpec) -> Result<Option<Value>> {
    wait_until(OWNER_TIMEOUT, || socket(folder).exists() || !is_served(folder));
    let Ok(stream) = UnixStream::connect(socket(folder)) else { return Ok(None) };
    let failed = || "the instance's daemon did not answer".to_owned();
    let remedy = "see `pgdyno volume list`, and the log of the instance's first volume";
    match ask(&stream, &json!(spec), JOIN_TIMEOUT) {
        Ok(answer) => Ok(Some(answer?["ready"].clone())),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error).context(failed, remedy),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When several processes find a dead daemon's folder at the same time, one takes it; two would be two daemons of one instance.
    #[test]
    fn the_folder_of_a_dead_daemon_is_taken_by_one() {
        let above = std::env::temp_dir().join(format!("pgdyno-instances-{}", std::process::id()));
        for round in 0..100 {
            let folder = above.join(format!("i{round}"));
            fs::create_dir_all(&folder).expect("a folder");
            fs::write(owner_file(&folder), r#"{"pid": 1, "pid_start_ticks": 1}"#).expect("a file");
            let claim = || InstanceDir::claim(&folder).expect("it can be claimed");
            let claimed: Vec<_> = std::thread::scope(|scope| {
                let claiming: Vec<_> = (0..4).map(|_| scope.spawn(claim)).collect();
                claiming.into_iter().filter_map(|thread| thread.join().expect("no panic")).collect()
            });
            assert_eq!(claimed.len(), 1, "round {round}");
            assert!(is_served(&folder));
        }
        fs::remove_dir_all(above).expect("it is ours");
    }
}
