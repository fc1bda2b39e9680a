//! The control socket: one JSON line asks, one JSON line answers. Private to the user who attached the volume.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use pgdyno_catalog::Storage;
use pgdyno_clock::{monotonic_ns, process_cpu_ns};
use pgdyno_volume::{Change, FrequencyRule};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::{Context, EmulateError, Result};
use crate::modify::{Elastic, History, Seen, Wanted};
use crate::pipeline::Pipeline;
use crate::precautions;
use crate::serve::ServeSpec;
use crate::state_dir::{VolumeDir, all_facts, start_ticks};

/// A daemon that does not answer within this time is stuck.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// A file system that grows or is unmounted writes, at the pace of the volume or of what keeps its content; callers wait
/// two minutes.
const WORK_TIMEOUT: Duration = Duration::from_secs(110);

/// What can be asked of a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Request {
    /// Counters, and distributions unless they are not wanted.
    Stats {
        #[serde(default = "yes")]
        histograms: bool,
    },
    /// Counters at each full minute of the last day.
    Minutes,
    /// Sets how full the volume's buckets are.
    Credit { level_ppm: u32 },
    /// Sets how full the instance's reserves are.
    InstanceCredit { level_ppm: u32 },
    /// Makes it another volume while it is used: other figures, another type, a larger size.
    Modify {
        spec: String,
        #[serde(default)]
        rule: FrequencyRule,
        /// Seconds of the state optimizing; by its size unless said.
        #[serde(default)]
        optimizing_s: Option<u64>,
    },
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
    /// Another volume of the same instance; somebody waits for the answer.
    Join { spec: Box<ServeSpec>, answer: UnixStream },
    /// Somebody asked for the end of a volume and waits for the answer.
    Detach { name: String, save_image: Option<PathBuf>, answer: UnixStream },
    /// A signal asks for the end.
    Terminate,
    /// A FUSE session ended: somebody unmounted it, or we did.
    SessionEnded { name: String },
}

/// A socket that is served until it is told otherwise.
#[derive(Debug)]
pub(crate) struct Listener(Arc<AtomicBool>);

impl Listener {
    /// Ends the thread that accepts; conversations end with those who talk.
    pub(crate) fn finish(self, folder: &VolumeDir) {
        self.0.store(true, Ordering::Release);
        // It waits for somebody to come.
        let _ = UnixStream::connect(folder.socket());
    }
}

/// A volume as its socket knows it.
pub(crate) struct Served {
    name: String,
    facts_file: PathBuf,
    facts: Mutex<Value>,
    elastic: Mutex<Elastic>,
    /// Of `elastic`, which is held for as long as a modification takes.
    history: History,
    pipeline: Arc<Pipeline>,
}

impl Served {
    /// Writes the volume's facts down, for whoever looks for it.
    pub(crate) fn new(folder: &VolumeDir, facts: Value, storage: Storage, pipeline: Arc<Pipeline>) -> Result<Self> {
        let elastic = Elastic::new(storage);
        let served = Self {
            name: facts["name"].as_str().unwrap_or_default().to_owned(),
            facts_file: folder.facts(),
            facts: Mutex::new(facts),
            history: elastic.history(),
            elastic: Mutex::new(elastic),
            pipeline,
        };
        served.write_facts()?;
        Ok(served)
    }

    fn facts(&self) -> MutexGuard<'_, Value> {
        self.facts.lock().expect("who has the facts does not panic")
    }

    fn elastic(&self) -> MutexGuard<'_, Elastic> {
        self.elastic.lock().expect("who modifies does not panic")
    }

    /// At once or not at all: others read the file while it is written.
    fn write_facts(&self) -> Result<()> {
        let text = serde_json::to_vec_pretty(&*self.facts()).expect("facts are plain JSON");
        let unfinished = self.facts_file.with_extension("new");
        let written = std::fs::write(&unfinished, text).and_then(|()| std::fs::rename(&unfinished, &self.facts_file));
        written.context(|| "cannot write the volume's facts".to_owned(), "free some space")
    }

    /// The instant is given twice: on this machine's clock, and on that of the volume's users, as minutes have it.
    fn stats(&self, histograms: bool) -> Value {
        let clock = &self.pipeline.core.clock;
        let (t_ns, (seen_ns, _)) = (monotonic_ns(), clock.seen(clock.now()));
        let (counters, histograms) = self.pipeline.stats(histograms, process_cpu_ns());
        let progress = self.history.progress(clock.now());
        let facts = self.facts();
        let mut answer = json!({"t_ns": t_ns, "seen_ns": seen_ns, "dilation": facts["dilation"],
            "name": facts["name"], "spec": facts["spec"]["spec"], "counters": counters, "modification": progress,
            "instance": self.pipeline.core.instance_counters()});
        if let Some(histograms) = histograms {
            answer["histograms"] = json!(histograms);
        }
        answer
    }

    /// The anchor ties the monotonic clock to the wall clock, as a run's record does; of a dilated volume both are those
    /// of its users, for whom a minute is a minute.
    fn minutes(&self) -> Value {
        let samples = self.pipeline.minutes().into_iter();
        let samples: Vec<Value> = samples.map(|(t_ns, counters)| json!({"t_ns": t_ns, "counters": counters})).collect();
        let facts = self.facts();
        let clock = &self.pipeline.core.clock;
        let (monotonic_ns, unix_ns) = clock.seen(clock.now());
        json!({"name": facts["name"], "spec": facts["spec"]["spec"], "minutes": samples,
            "anchor": {"monotonic_ns": monotonic_ns, "unix_ns": unix_ns}})
    }

    fn modify(&self, wanted: &Wanted<'_>) -> Result<Value> {
        let mut elastic = self.elastic();
        let facts = self.facts().clone();
        let path = |key: &str| facts[key].as_str().map(Path::new);
        let kind = serde_json::from_value(facts["file_system"].clone()).ok();
        let seen = Seen {
            file: path("backing_file").unwrap_or(Path::new("")),
            device: path("block_device").unwrap_or(Path::new("")),
            mount: path("mount").zip(kind),
        };
        let done = elastic.modify(wanted, &self.pipeline, seen);
        // Whatever became of the file system, the volume may be another one now.
        self.facts()["spec"] = json!(elastic.storage);
        self.write_facts()?;
        done?;
        Ok(json!({"name": self.name, "spec": elastic.storage,
            "modification": self.history.progress(self.pipeline.core.clock.now())}))
    }
}

/// Serves a volume's socket on threads of its own, off the data path.
pub(crate) fn serve(folder: &VolumeDir, served: Served, orders: Sender<Order>) -> Result<Listener> {
    let served = Arc::new(served);
    let closing = Arc::new(AtomicBool::new(false));
    let listener = Listener(closing.clone());
    accept(&folder.socket(), move |stream| {
        if closing.load(Ordering::Acquire) {
            return false;
        }
        let (served, orders) = (served.clone(), orders.clone());
        let talk = move || converse(&stream, &served, &orders);
        std::thread::Builder::new().name("control".to_owned()).spawn(talk).is_ok()
    })?;
    Ok(listener)
}

/// Serves an instance's socket: one line, the specification of a volume that joins; the answer comes when it is attached.
pub(crate) fn serve_instance(socket: &Path, orders: Sender<Order>) -> Result<()> {
    accept(socket, move |stream| {
        let orders = orders.clone();
        let talk = move || {
            let mut line = String::new();
            let read = BufReader::new(&stream).read_line(&mut line);
            match read
                .map_err(|error| error.to_string())
                .and_then(|_| serde_json::from_str(&line).map_err(|e| e.to_string()))
            {
                Ok(spec) => {
                    let _ = orders.send(Order::Join { spec: Box::new(spec), answer: stream });
                }
                Err(error) => {
                    let message = format!("what is to join cannot be read: {error}");
                    let _ = reply(
                        &stream,
                        &json!({"error": {"message": message, "remedy": "use the same version of pgdyno"}}),
                    );
                }
            }
        };
        std::thread::Builder::new().name("control".to_owned()).spawn(talk).is_ok()
    })
}

/// Listens on `path` and hands every connection to `talk`, until that says `false`.
fn accept(path: &Path, mut talk: impl FnMut(UnixStream) -> bool + Send + 'static) -> Result<()> {
    let remedy = "use a shorter state directory, at most about 60 characters";
    let listener = UnixListener::bind(path).context(|| format!("cannot listen on {}", path.display()), remedy)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))
        .context(|| format!("cannot make {} private", path.display()), remedy)?;
    let accept = move || {
        precautions::ordinary_priority();
        for stream in listener.incoming().flatten() {
            if !talk(stream) {
                return;
            }
        }
    };
    let started = std::thread::Builder::new().name("control".to_owned()).spawn(accept);
    started.map(|_| ()).context(|| "cannot start the control thread".to_owned(), "raise the limit on processes")
}

fn converse(stream: &UnixStream, served: &Served, orders: &Sender<Order>) {
    let pipeline = &served.pipeline;
    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else { return };
        let answer = match serde_json::from_str(&line) {
            Ok(Request::Stats { histograms }) => served.stats(histograms),
            Ok(Request::Minutes) => served.minutes(),
            Ok(Request::Credit { level_ppm }) => {
                pipeline.change(|volume| Change::Credit { volume, level_ppm });
                json!({"ok": {}})
            }
            Ok(Request::InstanceCredit { level_ppm }) => {
                pipeline.change(|_| Change::InstanceCredit { level_ppm });
                json!({"ok": {}})
            }
            Ok(Request::Modify { spec, rule, optimizing_s }) => {
                let wanted = Wanted { spec: &spec, rule, optimizing: optimizing_s.map(Duration::from_secs) };
                served.modify(&wanted).unwrap_or_else(|error| as_json(&error))
            }
            Ok(Request::Detach { save_image }) => {
                if let Ok(answer) = stream.try_clone() {
                    let _ = orders.send(Order::Detach { name: served.name.clone(), save_image, answer });
                }
                continue;
            }
            Err(error) => json!({"error": {"message": format!("{line:?} is no request: {error}"),
                "remedy": "ask with {\"command\": \"stats\" | \"minutes\" | \"credit\" | \"instance_credit\" | \"modify\" | \"detach\"}"}}),
        };
        if reply(stream, &answer).is_err() {
            return;
        }
    }
}

/// An error as it is answered.
pub(crate) fn as_json(error: &EmulateError) -> Value {
    json!({"error": {"message": error.message, "remedy": error.remedy}})
}

/// One JSON line.
pub(crate) fn reply(mut stream: &UnixStream, answer: &Value) -> std::io::Result<()> {
    let mut text = answer.to_string();
    text.push('\n');
    stream.write_all(text.as_bytes())
}

/// How long the answer to a request may take.
fn patience(request: &Value) -> Duration {
    match request["command"].as_str() {
        Some("modify" | "detach") => WORK_TIMEOUT,
        _ => ANSWER_TIMEOUT,
    }
}

/// Asks a volume's daemon. `request` is one of `stats`, `minutes`, `credit`, `instance_credit`, `modify`, `detach` with its fields.
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
    stream.set_read_timeout(Some(patience(request))).context(gone, remedy)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_writes_may_take_longer_than_what_only_answers() {
        let asked = |command: &str| patience(&json!({"command": command}));
        assert_eq!(["modify", "detach"].map(asked), [WORK_TIMEOUT; 2]);
        assert_eq!(["stats", "minutes", "credit"].map(asked), [ANSWER_TIMEOUT; 3]);
    }
}
