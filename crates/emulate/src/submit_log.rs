//! The submit log on disk: its format, and the thread that writes it.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use pgdyno_host::{Context, Fault, Result};
use pgdyno_volume::log::{MAGIC, RECORD_BYTES, Record};
use pgdyno_volume::{Instance, InstanceLimits};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::core::Core;
use crate::last_words::{self, Thread};
use crate::log_buffer::LogBuffer;
use crate::precautions;

const DRAIN_INTERVAL: Duration = Duration::from_millis(50);

/// What a log says about itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogHeader {
    /// Hash of the model and its parameters; another hash cannot be replayed by this build.
    pub model_hash: String,
    /// The specification as it was resolved.
    pub spec: serde_json::Value,
    /// Seed of the instance.
    pub seed: u64,
    /// What the instance's volumes share; `None` is unlimited.
    #[serde(default)]
    pub instance_limits: Option<InstanceLimits>,
}

impl LogHeader {
    /// The instance as it was when the recording began, without its volumes.
    pub fn instance(&self) -> Instance {
        self.instance_limits.map_or_else(|| Instance::new(self.seed), |limits| Instance::with_limits(self.seed, limits))
    }
}

/// What has become of the log while it is recorded, for those who ask.
#[derive(Debug)]
pub(crate) struct LogState {
    path: PathBuf,
    /// The error number of the first write that failed, with which the log ends; 0 while there was none.
    errno: AtomicI32,
    /// The writer could not keep up, and the log ends there.
    overflowed: AtomicBool,
}

impl LogState {
    fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), errno: AtomicI32::new(0), overflowed: AtomicBool::new(false) }
    }

    /// Why the log is incomplete; `None` while it is not.
    fn fault(&self) -> Option<String> {
        let errno = self.errno.load(Ordering::Relaxed);
        if errno != 0 {
            return Some(io::Error::from_raw_os_error(errno).to_string());
        }
        self.overflowed.load(Ordering::Relaxed).then(|| "its file was too slow, and the buffer overflowed".to_owned())
    }

    pub(crate) fn report(&self) -> Value {
        let fault = self.fault();
        json!({"path": self.path, "complete": fault.is_none(), "error": fault})
    }
}

/// The thread that writes the log.
#[derive(Debug)]
pub(crate) struct LogWriter {
    state: Arc<LogState>,
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl LogWriter {
    pub(crate) fn start(path: &Path, header: &LogHeader, core: Arc<Core>) -> Result<Self> {
        let remedy = "name a file in a folder that exists and has space";
        let mut file = File::create(path).context(|| format!("cannot create {}", path.display()), remedy)?;
        write_header(&mut file, header).context(|| format!("cannot write {}", path.display()), remedy)?;
        let (stop, stopped) = channel();
        let state = Arc::new(LogState::new(path));
        let _ = core.submit_log.set(state.clone());
        let noted = state.clone();
        let thread = std::thread::Builder::new()
            .name("submit-log".to_owned())
            .spawn(move || {
                if let Err(error) = drain(&core, &mut file, &stopped, &noted) {
                    noted.errno.store(error.raw_os_error().unwrap_or(libc::EIO), Ordering::Relaxed);
                    eprintln!("the submit log {} ends here: {error}", noted.path.display());
                }
            })
            .context(|| "cannot start the log's thread".to_owned(), "raise the limit on processes")?;
        Ok(Self { state, stop, thread })
    }

    /// Writes what is left, closes the log and syncs it. An error says that the log is incomplete.
    pub(crate) fn finish(self) -> Result<()> {
        drop(self.stop);
        let _ = self.thread.join();
        self.state.fault().map_or(Ok(()), |why| Err(incomplete("submit", &self.state.path, &why)))
    }
}

/// The volume is detached and its log has not all of it.
pub(crate) fn incomplete(which: &'static str, path: &Path, why: &str) -> Fault {
    let message = format!("the volume is detached, but its {which} log {} is incomplete: {why}", path.display());
    Fault::of_host(message, "name a file on a disk with more space, and measure again")
        .coded("volume.log.incomplete", json!({"log": which, "path": path, "reason": why, "detached": true}))
}

fn drain(core: &Core, file: &mut File, stopped: &Receiver<()>, state: &LogState) -> io::Result<()> {
    precautions::ordinary_priority();
    let mut bytes = LogBuffer::room();
    loop {
        let stop = !matches!(stopped.recv_timeout(DRAIN_INTERVAL), Err(RecvTimeoutError::Timeout));
        last_words::pass(Thread::LogDrain);
        state.overflowed.store(core.swap_log(&mut bytes), Ordering::Relaxed);
        file.write_all(&bytes)?;
        bytes.clear();
        if stop {
            if !state.overflowed.load(Ordering::Relaxed) {
                file.write_all(&Record::End.encode())?;
            }
            return file.sync_all();
        }
    }
}

/// Begins a log: the format's mark, then the header.
pub fn write_header(file: &mut impl Write, header: &LogHeader) -> io::Result<()> {
    let text = serde_json::to_vec(header)?;
    file.write_all(&MAGIC)?;
    file.write_all(&(text.len() as u64).to_le_bytes())?;
    file.write_all(&text)
}

/// Reads a log's header and gives its records one by one; a record that is cut off or unknown ends it. A log that has no
/// [`Record::End`] was not closed.
pub fn read_log(path: &Path) -> Result<(LogHeader, impl Iterator<Item = Record> + use<>)> {
    let remedy = "name a file that `--submit-log` wrote with this version of pgdyno";
    let file = File::open(path).context(|| format!("cannot open {}", path.display()), remedy)?;
    let mut reader = BufReader::with_capacity(1 << 20, file);
    let header = read_header(&mut reader)
        .context(|| format!("{} is not a submit log", path.display()), remedy)?
        .ok_or_else(|| Fault::new(format!("{} has another format or version", path.display()), remedy))?;
    let records = std::iter::from_fn(move || {
        let mut bytes = [0; RECORD_BYTES];
        reader.read_exact(&mut bytes).ok()?;
        Record::decode(&bytes)
    });
    Ok((header, records))
}

fn read_header(reader: &mut impl Read) -> io::Result<Option<LogHeader>> {
    let mut word = [0; 8];
    reader.read_exact(&mut word)?;
    if word != MAGIC {
        return Ok(None);
    }
    reader.read_exact(&mut word)?;
    let mut text = Vec::new();
    reader.take(u64::from_le_bytes(word)).read_to_end(&mut text)?;
    Ok(Some(serde_json::from_slice(&text)?))
}
