//! The submit log on disk: its format, and the thread that writes it.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use pgdyno_host::{Context, Fault, Result};
use pgdyno_volume::log::{MAGIC, RECORD_BYTES, Record};
use pgdyno_volume::{Instance, InstanceLimits};
use serde::{Deserialize, Serialize};

use crate::core::Core;
use crate::last_words::{self, Thread};
use crate::log_buffer::LogBuffer;
use crate::log_state::LogState;
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
                    noted.failed(&error);
                }
            })
            .context(|| "cannot start the log's thread".to_owned(), "raise the limit on processes")?;
        Ok(Self { state, stop, thread })
    }

    /// Writes what is left, closes the log and syncs it. An error says that the log is incomplete.
    pub(crate) fn finish(self) -> Result<()> {
        drop(self.stop);
        let _ = self.thread.join();
        self.state.require_complete()
    }
}

fn drain(core: &Core, file: &mut File, stopped: &Receiver<()>, state: &LogState) -> io::Result<()> {
    precautions::ordinary_priority();
    let mut bytes = LogBuffer::room();
    loop {
        let stop = !matches!(stopped.recv_timeout(DRAIN_INTERVAL), Err(RecvTimeoutError::Timeout));
        last_words::pass(Thread::LogDrain);
        let overflowed = core.swap_log(&mut bytes);
        state.overflowed(overflowed);
        file.write_all(&bytes)?;
        bytes.clear();
        if stop {
            if !overflowed {
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
