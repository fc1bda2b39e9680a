//! The control socket: one JSON line asks, one JSON line answers. Private to the user who attached the volume.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use pgdyno_catalog::Storage;
use pgdyno_clock::{monotonic_ns, process_cpu_ns};
use pgdyno_host::{Context, Fault, Result};
use pgdyno_volume::{Change, FrequencyRule};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::ask::error_document;
use crate::command::Command;
use crate::conversations::{self, Conversation};
use crate::fault;
use crate::last_words::{self, Thread};
use crate::modify::{Elastic, History, Seen, Wanted};
use crate::pipeline::Pipeline;
use crate::precautions;
use crate::state_dir::VolumeDir;

/// What is shown of a line that is no request.
const SHOWN_BYTES: usize = 200;
/// As long as minutes are kept.
const DAY_NS: u64 = 24 * 3600 * 1_000_000_000;

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
    /// Whether its store works.
    Health,
    /// Sets how full the volume's buckets are.
    Credit { level_ppm: u32 },
    /// Sets how full the instance's reserves are.
    InstanceCredit { level_ppm: u32 },
    /// Makes it another volume while it is used: other figures, another type, a larger size.
    Modify {
        spec: String,
        #[serde(default)]
        rule: FrequencyRule,
        /// Seconds of the state optimizing; by its size if omitted.
        #[serde(default)]
        optimizing_s: Option<u64>,
    },
    /// Notes a mark in the write log.
    Mark { text: String },
    /// Injects faults.
    Fail { fault: fault::Wanted },
    /// Ends all faults but a loss.
    Heal,
    /// A snapshot of it is pending for so long in its own time: until then it does its baseline alone, if it has credits.
    Pending { for_ns: u64 },
    /// Freezes volumes of the instance at one instant: each, by its name, becomes an image in that new folder.
    Snapshot { targets: BTreeMap<String, PathBuf> },
    /// Makes the next thread of this kind panic, where the daemon was started for tests.
    Panic { thread: Thread },
    /// Unmounts and ends; keeps the content as an image if a path is given.
    Detach {
        #[serde(default)]
        save_image: Option<PathBuf>,
    },
}

fn yes() -> bool {
    true
}

/// A socket that is served until [`Self::finish`].
#[derive(Debug)]
pub(crate) struct Listener(Arc<AtomicBool>);

impl Listener {
    /// Stops the accept loop; open connections end when their clients close them.
    pub(crate) fn finish(self, folder: &VolumeDir) {
        self.0.store(true, Ordering::Release);
        // The loop waits for a connection.
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
    /// What it was before each modification of the last day, the first one first.
    earlier: Mutex<Vec<Earlier>>,
    pipeline: Arc<Pipeline>,
}

/// What a volume was, and until when, in the time of its users as minutes have it.
#[derive(Clone, Debug, Serialize)]
struct Earlier {
    until_ns: u64,
    spec: Storage,
}

impl Served {
    /// Writes the volume's facts to its file, for other processes.
    pub(crate) fn new(folder: &VolumeDir, facts: Value, storage: Storage, pipeline: Arc<Pipeline>) -> Result<Self> {
        let elastic = Elastic::new(storage);
        let served = Self {
            name: facts["name"].as_str().unwrap_or_default().to_owned(),
            facts_file: folder.facts(),
            facts: Mutex::new(facts),
            history: elastic.history(),
            elastic: Mutex::new(elastic),
            earlier: Mutex::default(),
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

    fn earlier(&self) -> MutexGuard<'_, Vec<Earlier>> {
        self.earlier.lock().expect("who has the earlier volumes does not panic")
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
            "instance": self.pipeline.core.instance_counters(), "store_failure": self.pipeline.store_failure(),
            "faults": fault::seen(&self.pipeline),
            "submit_log": self.pipeline.core.submit_log.get().map(|log| log.report()),
            "write_log": self.pipeline.core.write_log.get().map(|log| log.progress())});
        if let Some(histograms) = histograms {
            answer["histograms"] = json!(histograms);
            answer["members"] = json!(self.pipeline.member_stats());
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
        json!({"name": facts["name"], "spec": facts["spec"]["spec"], "minutes": samples, "earlier": *self.earlier(),
            "anchor": {"monotonic_ns": monotonic_ns, "unix_ns": unix_ns}})
    }

    /// This instant on the clock of its users.
    fn seen_now(&self) -> u64 {
        let clock = &self.pipeline.core.clock;
        clock.seen(clock.now()).0
    }

    fn mark(&self, text: &str) -> Result<Value> {
        let log = self.pipeline.core.write_log.get();
        let log = log.ok_or_else(|| Fault::new("the volume has no write log", "attach it with --write-log"))?;
        Ok(json!({"name": self.name, "write_log": log.mark(text)}))
    }

    fn fail(&self, wanted: &fault::Wanted) -> Result<Value> {
        let faults = wanted.faults(&self.elastic().storage, self.pipeline.members())?;
        self.pipeline.fail(wanted.member, &faults);
        Ok(json!({"name": self.name, "faults": fault::seen(&self.pipeline)}))
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
            instance_type: facts["instance_type"].as_str(),
        };
        let until_ns = self.seen_now();
        let was = elastic.storage.clone();
        let done = elastic.modify(wanted, &self.pipeline, seen);
        if elastic.storage != was {
            let mut earlier = self.earlier();
            earlier.retain(|one| one.until_ns.saturating_add(DAY_NS) > until_ns);
            earlier.push(Earlier { until_ns, spec: was });
        }
        // Whatever became of the file system, the volume may be another one now.
        self.facts()["spec"] = json!(elastic.storage);
        self.write_facts()?;
        done?;
        Ok(json!({"name": self.name, "spec": elastic.storage,
            "modification": self.history.progress(self.pipeline.core.clock.now())}))
    }
}

/// Serves a volume's socket on threads of its own, off the data path.
pub(crate) fn serve(folder: &VolumeDir, served: Served, commands: Sender<Command>) -> Result<Listener> {
    let served = Arc::new(served);
    let closing = Arc::new(AtomicBool::new(false));
    listen(&folder.socket(), closing.clone(), move |asker| converse(asker, &served, &commands))?;
    Ok(Listener(closing))
}

/// Serves an instance's socket: one line, the specification of a volume that joins; the answer comes when it is attached.
pub(crate) fn serve_instance(socket: &Path, commands: Sender<Command>) -> Result<()> {
    listen(socket, Arc::default(), move |asker| {
        asker.each_line(|line| {
            match serde_json::from_slice(line) {
                Ok(spec) => {
                    let _ = commands.send(Command::Join { spec: Box::new(spec), answer: asker.clone() });
                }
                Err(error) => {
                    let message = format!("the specification of the volume that joins cannot be read: {error}");
                    let refused = Fault::new(message, "use the same version of pgdyno for all volumes");
                    let _ = asker.answer(&error_document(&refused));
                }
            }
            false
        });
    })
}

/// Listens on `path` and serves its connections until `closing`.
fn listen(
    path: &Path,
    closing: Arc<AtomicBool>,
    talk: impl Fn(&Arc<Conversation>) + Clone + Send + 'static,
) -> Result<()> {
    let remedy = "use a shorter state directory, at most about 60 characters";
    let listener = UnixListener::bind(path).context(|| format!("cannot listen on {}", path.display()), remedy)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))
        .context(|| format!("cannot make {} private", path.display()), remedy)?;
    let accept = move || {
        precautions::ordinary_priority();
        conversations::serve(&listener, &closing, talk);
    };
    let started = std::thread::Builder::new().name("control".to_owned()).spawn(accept);
    started.map(|_| ()).context(|| "cannot start the control thread".to_owned(), "raise the limit on processes")
}

fn converse(asker: &Arc<Conversation>, served: &Served, commands: &Sender<Command>) {
    asker
        .each_line(|line| answer(line, asker, served, commands).is_none_or(|document| asker.answer(&document).is_ok()));
}

/// The answer to a request; `None`: the main thread gives it.
fn answer(line: &[u8], asker: &Arc<Conversation>, served: &Served, commands: &Sender<Command>) -> Option<Value> {
    let pipeline = &served.pipeline;
    Some(match serde_json::from_slice(line) {
            Ok(Request::Stats { histograms }) => served.stats(histograms),
            Ok(Request::Minutes) => served.minutes(),
            Ok(Request::Health) => json!({"store_failure": pipeline.store_failure(), "faults": fault::seen(pipeline),
                "initialized_ppm": pipeline.stats(false, 0).0.initialized_ppm}),
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
                served.modify(&wanted).unwrap_or_else(|error| error_document(&error))
            }
            Ok(Request::Mark { text }) => served.mark(&text).unwrap_or_else(|error| error_document(&error)),
            Ok(Request::Fail { fault }) => served.fail(&fault).unwrap_or_else(|error| error_document(&error)),
            Ok(Request::Heal) => {
                pipeline.heal();
                json!({"name": served.name, "faults": fault::seen(pipeline)})
            }
            Ok(Request::Pending { for_ns }) => {
                let until = pipeline.core.clock.now().saturating_add(for_ns);
                pipeline.change(|volume| Change::Baseline { volume, until });
                json!({"ok": {}})
            }
            Ok(Request::Panic { thread }) => {
                let is_doomed = last_words::doom(thread);
                let _ = commands.send(Command::Panic);
                last_words::pass(Thread::Control);
                json!({"ok": {"panics": is_doomed}})
            }
            Ok(Request::Snapshot { targets }) => {
                let _ = commands.send(Command::Snapshot { targets, answer: asker.clone() });
                return None;
            }
            Ok(Request::Detach { save_image }) => {
                let _ = commands.send(Command::Detach { name: served.name.clone(), save_image, answer: asker.clone() });
                return None;
            }
            Err(error) => error_document(&Fault::new(
                format!("{:?} is not a request: {error}", beginning_of(line)),
                "ask with {\"command\": \"stats\" | \"minutes\" | \"health\" | \"credit\" | \"instance_credit\" | \"modify\" | \"mark\" | \"fail\" | \"heal\" | \"pending\" | \"snapshot\" | \"detach\"}",
            ).coded("volume.request.unknown", Value::Null)),
    })
}

/// As much of a line as an error shows.
fn beginning_of(line: &[u8]) -> String {
    String::from_utf8_lossy(&line[..line.len().min(SHOWN_BYTES)]).trim_end().to_owned()
}
