//! What other processes ask the daemons of attached volumes.

use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use pgdyno_host::{Context, Fault, Result};
use serde_json::{Value, json};

use crate::ask::ask;
use crate::state_dir::{Daemon, VolumeDir, all_facts, daemon, read_facts};

/// A daemon that does not answer within this time is stuck: it answers from memory.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// A list of volumes waits no longer than this for those that are stuck.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(2);
/// A file system that grows or is unmounted writes, at the pace of the volume or of what keeps its content. In the volume's
/// own time: of one with dilation 10 it is ten times as long.
const WORK_TIMEOUT: Duration = Duration::from_secs(110);

/// How long the answer to a request may take, of a volume with this dilation.
fn patience(request: &Value, dilation: u32) -> Duration {
    match request["command"].as_str() {
        Some("modify" | "snapshot" | "detach") => WORK_TIMEOUT * dilation,
        Some("health") => HEALTH_TIMEOUT,
        _ => ANSWER_TIMEOUT,
    }
}

/// Asks a volume's daemon. `request` is one of `stats`, `minutes`, `credit`, `instance_credit`, `modify`, `fail`, `heal`,
/// `snapshot`, `detach` with its fields.
pub fn request(state_dir: &Path, name: &str, request: &Value) -> Result<Value> {
    let folder = VolumeDir::of(state_dir, name)?;
    let gone = || format!("the volume {name:?} does not answer");
    let remedy = "run `pgdyno volume list` to see the state of its daemon";
    if !folder.path().exists() {
        let names: Vec<String> = all_facts(state_dir).iter().map(|facts| facts["name"].to_string()).collect();
        let attached =
            if names.is_empty() { "none is attached".to_owned() } else { format!("attached: {}", names.join(", ")) };
        return Err(Fault::new(format!("there is no volume {name:?}; {attached}"), "see `pgdyno volume list`"));
    }
    let facts = read_facts(&folder.facts()).unwrap_or_default();
    let state = daemon(&facts);
    if let Daemon::Stopped(pid) = state {
        return Err(Fault::of_host(
            format!("the daemon of volume `{name}` (process {pid}) is stopped, so it cannot answer"),
            format!("resume it with `kill -CONT {pid}`; `kill -KILL {pid}` ends it, and its content is lost"),
        ));
    }
    let wait = patience(request, facts["dilation"].as_u64().and_then(|times| u32::try_from(times).ok()).unwrap_or(1));
    let stream = UnixStream::connect(folder.socket()).context(gone, remedy)?;
    let answer = ask(&stream, request, wait);
    if let (Err(error), Daemon::Running(pid)) = (&answer, state)
        && matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
    {
        return Err(Fault::of_host(
            format!("the daemon of volume `{name}` (process {pid}) gave no answer within {} s", wait.as_secs()),
            format!("try again when the machine has less to do; `kill -KILL {pid}` ends it, and its content is lost"),
        ));
    }
    answer.context(gone, remedy)?
}

/// Detaches a volume, keeping its content at `save_image` if given.
pub fn detach(state_dir: &Path, name: &str, save_image: Option<&Path>) -> Result<Value> {
    request(state_dir, name, &json!({"command": "detach", "save_image": save_image}))
}

/// Facts of every volume, each with `alive`: whether its daemon is still that process; `state`: `serving`, `stopped`,
/// `silent` (it does not answer in time) or `dead`; and `store_failure`: when its store began to fail, and why; `faults`: those
/// injected into it; `initialized_ppm`: how much it has of the snapshot that it was made from, if that comes little by little.
pub fn list(state_dir: &Path) -> Vec<Value> {
    let asked: Vec<_> = all_facts(state_dir)
        .into_iter()
        .map(|facts| {
            let state_dir = state_dir.to_owned();
            // One after the other, those that are stuck would add up.
            std::thread::spawn(move || with_health(&state_dir, facts))
        })
        .collect();
    asked.into_iter().filter_map(|thread| thread.join().ok()).collect()
}

fn with_health(state_dir: &Path, mut facts: Value) -> Value {
    let state = daemon(&facts);
    let name = facts["name"].as_str().unwrap_or_default();
    let health = match state {
        Daemon::Running(_) => request(state_dir, name, &json!({"command": "health"})).ok(),
        Daemon::Stopped(_) | Daemon::Dead => None,
    };
    let said = match (state, &health) {
        (Daemon::Running(_), Some(_)) => "serving",
        (Daemon::Running(_), None) => "silent",
        (Daemon::Stopped(_), _) => "stopped",
        (Daemon::Dead, _) => "dead",
    };
    facts["alive"] = json!(state != Daemon::Dead);
    facts["state"] = json!(said);
    let said = |key: &str| health.as_ref().map_or(Value::Null, |health| health[key].clone());
    facts["store_failure"] = said("store_failure");
    facts["faults"] = said("faults");
    facts["initialized_ppm"] = said("initialized_ppm");
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_writes_may_take_longer_than_what_only_answers() {
        let asked = |command: &str| patience(&json!({"command": command}), 1);
        assert_eq!(["modify", "snapshot", "detach"].map(asked), [WORK_TIMEOUT; 3]);
        assert_eq!(["stats", "minutes", "credit"].map(asked), [ANSWER_TIMEOUT; 3]);
        assert_eq!(patience(&json!({"command": "modify"}), 8), 8 * WORK_TIMEOUT, "a file system grows at its pace");
    }
}
