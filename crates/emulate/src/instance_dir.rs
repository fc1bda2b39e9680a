//! A named instance: a private folder that says which process serves it, and the socket over which volumes join.

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::control::reply;
use crate::error::{Context, EmulateError, Result};
use crate::serve::{ServeSpec, wait_until};
use crate::state_dir::{require_name, start_ticks};

/// Formatting a large volume and calibrating it take seconds; this is for a machine that does much else.
const JOIN_TIMEOUT: Duration = Duration::from_secs(110);
/// A process writes its number right after it made the folder.
const OWNER_TIMEOUT: Duration = Duration::from_secs(2);
/// A daemon that ends just when somebody joins is followed by a new one.
const TRIES: usize = 5;

/// The folder of an instance that this process serves; removed when dropped.
#[derive(Debug)]
pub(crate) struct InstanceDir(PathBuf);

/// How an instance was entered.
#[derive(Debug)]
pub(crate) enum Entered {
    /// Nobody serves it: this process has to.
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
        Err(EmulateError::new(format!("the instance {name:?} does not answer"), remedy))
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
        match builder.create(folder) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                wait_until(OWNER_TIMEOUT, || owner_file(folder).exists());
                if is_served(folder) {
                    return Ok(None);
                }
                // Of two who find it dead one removes it, and one of both makes it again.
                let _ = fs::remove_dir_all(folder);
                if let Err(error) = builder.create(folder) {
                    return if error.kind() == io::ErrorKind::AlreadyExists {
                        Ok(None)
                    } else {
                        Err(error).context(failed, remedy)
                    };
                }
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
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn owner_file(folder: &Path) -> PathBuf {
    folder.join("owner.json")
}

fn socket(folder: &Path) -> PathBuf {
    folder.join("control.sock")
}

/// Whether the process that made the folder lives.
fn is_served(folder: &Path) -> bool {
    let owner: Option<Value> = fs::read(owner_file(folder)).ok().and_then(|text| serde_json::from_slice(&text).ok());
    let Some(owner) = owner else { return false };
    let pid = owner["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
    pid.and_then(start_ticks).is_some_and(|ticks| Some(ticks) == owner["pid_start_ticks"].as_u64())
}

/// Asks the daemon to attach one more volume; `None` if it ended before it answered.
fn join(folder: &Path, spec: &ServeSpec) -> Result<Option<Value>> {
    wait_until(OWNER_TIMEOUT, || socket(folder).exists() || !is_served(folder));
    let Ok(stream) = UnixStream::connect(socket(folder)) else { return Ok(None) };
    let failed = || "the instance's daemon did not answer".to_owned();
    let remedy = "see `pgdyno volume list`, and the log of the instance's first volume";
    stream.set_read_timeout(Some(JOIN_TIMEOUT)).context(failed, remedy)?;
    reply(&stream, &json!(spec)).context(failed, remedy)?;
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line).context(failed, remedy)?;
    if line.is_empty() {
        return Ok(None);
    }
    let answer: Value = serde_json::from_str(&line).map_err(io::Error::from).context(failed, remedy)?;
    match answer.get("error") {
        Some(error) => {
            let text = |key: &str| error[key].as_str().unwrap_or_default().to_owned();
            Err(EmulateError::new(text("message"), text("remedy")))
        }
        None => Ok(Some(answer["ready"].clone())),
    }
}
