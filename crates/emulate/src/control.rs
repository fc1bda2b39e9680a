//! The control socket: one JSON line asks, one JSON line answers. Private to the user who attached the volume.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use pgdyno_volume::Change;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::clock::monotonic_ns;
use crate::error::{Context, EmulateError, Result};
use crate::pipeline::Pipeline;
use crate::precautions;
use crate::state_dir::{VolumeDir, all_facts, start_ticks};

/// A daemon that does not answer within this time is stuck.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// What can be asked of a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Request {
    /// Counters, and distributions unless they are not wanted.
    Stats {
        #[serde(default = "yes")]
        histograms: bool,
    },
    /// Sets how full the volume's buckets are.
    Credit { level_ppm: u32 },
    /// Unmounts and ends; keeps the content as an image if a path is given.
    Detach {
        #[serde(default)]
        save_image: Option<PathBuf>,
    },
}

fn yes() -> bool {
    true
}

/// What the daemon's main thread is told.
#[derive(Debug)]
pub(crate) enum Order {
    /// Somebody asked for the end and waits for the answer.
    Detach { save_image: Option<PathBuf>, answer: UnixStream },
    /// A signal asks for the end.
    Terminate,
    /// The FUSE session ended by itself: somebody unmounted it.
    SessionEnded,
}

/// Serves the socket on threads of its own, off the data path.
pub(crate) fn serve(folder: &VolumeDir, facts: Value, pipeline: Arc<Pipeline>, orders: Sender<Order>) -> Result<()> {
    let path = folder.socket();
    let remedy = "use a shorter state directory, at most about 60 characters";
    let listener = UnixListener::bind(&path).context(|| format!("cannot listen on {}", path.display()), remedy)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))
        .context(|| format!("cannot make {} private", path.display()), remedy)?;
    let accept = move || {
        precautions::ordinary_priority();
        for stream in listener.incoming().flatten() {
            let (facts, pipeline, orders) = (facts.clone(), pipeline.clone(), orders.clone());
            let talk = move || converse(&stream, &facts, &pipeline, &orders);
            if std::thread::Builder::new().name("control".to_owned()).spawn(talk).is_err() {
                return;
            }
        }
    };
    let started = std::thread::Builder::new().name("control".to_owned()).spawn(accept);
    started.map(|_| ()).context(|| "cannot start the control thread".to_owned(), "raise the limit on processes")
}

fn converse(stream: &UnixStream, facts: &Value, pipeline: &Pipeline, orders: &Sender<Order>) {
    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else { return };
        let answer = match serde_json::from_str(&line) {
            Ok(Request::Stats { histograms }) => stats(facts, pipeline, histograms),
            Ok(Request::Credit { level_ppm }) => {
                pipeline.change(|volume| Change::Credit { volume, level_ppm });
                json!({"ok": {}})
            }
            Ok(Request::Detach { save_image }) => {
                if let Ok(answer) = stream.try_clone() {
                    let _ = orders.send(Order::Detach { save_image, answer });
                }
                continue;
            }
            Err(error) => json!({"error": {"message": format!("{line:?} is no request: {error}"),
                "remedy": "ask with {\"command\": \"stats\" | \"credit\" | \"detach\"}"}}),
        };
        if reply(stream, &answer).is_err() {
            return;
        }
    }
}

/// One JSON line.
pub(crate) fn reply(mut stream: &UnixStream, answer: &Value) -> std::io::Result<()> {
    let mut text = answer.to_string();
    text.push('\n');
    stream.write_all(text.as_bytes())
}

fn stats(facts: &Value, pipeline: &Pipeline, histograms: bool) -> Value {
    let (counters, histograms) = pipeline.stats(histograms, precautions::process_cpu_ns());
    let mut answer = json!({"t_ns": monotonic_ns(), "name": facts["name"], "spec": facts["spec"]["spec"],
        "counters": counters});
    if let Some(histograms) = histograms {
        answer["histograms"] = json!(histograms);
    }
    answer
}

/// Asks a volume's daemon. `request` is one of `stats`, `credit`, `detach` with its fields.
pub fn request(state_dir: &Path, name: &str, request: &Value) -> Result<Value> {
    let folder = VolumeDir::of(state_dir, name)?;
    let gone = || format!("the volume {name:?} does not answer");
    let remedy = "see `pgdyno volume list`; `pgdyno doctor --clean` removes what a killed daemon left";
    if !folder.path().exists() {
        let names: Vec<String> = all_facts(state_dir).iter().map(|facts| facts["name"].to_string()).collect();
        let attached =
            if names.is_empty() { "none is attached".to_owned() } else { format!("attached: {}", names.join(", ")) };
        return Err(EmulateError::new(format!("there is no volume {name:?}; {attached}"), "see `pgdyno volume list`"));
    }
    let stream = UnixStream::connect(folder.socket()).context(gone, remedy)?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT)).context(gone, remedy)?;
    reply(&stream, request).context(gone, remedy)?;
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line).context(gone, remedy)?;
    let answer: Value = serde_json::from_str(&line).map_err(std::io::Error::from).context(gone, remedy)?;
    match answer.get("error") {
        Some(error) => {
            let text = |key: &str| error[key].as_str().unwrap_or_default().to_owned();
            Err(EmulateError::new(text("message"), text("remedy")))
        }
        None => Ok(answer),
    }
}

/// Detaches a volume, keeping its content at `save_image` if given.
pub fn detach(state_dir: &Path, name: &str, save_image: Option<&Path>) -> Result<Value> {
    request(state_dir, name, &json!({"command": "detach", "save_image": save_image}))
}

/// Facts of every volume, each with `alive`: whether its daemon is still that process.
pub fn list(state_dir: &Path) -> Vec<Value> {
    let mut volumes = all_facts(state_dir);
    for facts in &mut volumes {
        let pid = facts["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
        let alive = pid.and_then(start_ticks).is_some_and(|ticks| Some(ticks) == facts["pid_start_ticks"].as_u64());
        facts["alive"] = json!(alive);
    }
    volumes
}
