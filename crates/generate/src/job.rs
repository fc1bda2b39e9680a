//! One file in the making: several threads make blocks of its rows, which are written in their order.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use pgdyno_dataset::DataFile;
use pgdyno_host::Fault;
use serde_json::{Value, json};

use crate::sink::Sink;

/// Blocks are about as long as this, unless one unit is longer.
const BLOCK_BYTES: u64 = 256 << 10;

/// A file, and which of its blocks are taken, made and written.
pub(crate) struct Job {
    file: DataFile,
    path: PathBuf,
    units_per_block: u64,
    /// How many blocks may be taken and not written: what bounds the memory when one of them takes long.
    ahead: u64,
    state: Mutex<State>,
    /// Told whenever a block was written.
    written: Condvar,
}

#[derive(Default)]
struct State {
    sink: Option<Sink>,
    begin: Option<Instant>,
    taken: u64,
    written: u64,
    /// Blocks that wait for one before them.
    waiting: BTreeMap<u64, Block>,
    rows: u64,
    bytes: u64,
}

struct Block {
    text: Vec<u8>,
    rows: u64,
}

/// What handing in a block has led to.
#[derive(Default)]
pub(crate) struct Written {
    pub rows: u64,
    pub bytes: u64,
    /// The file, if this was its last block.
    pub made: Option<Made>,
}

/// A file that is whole.
pub(crate) struct Made {
    pub name: &'static str,
    pub rows: u64,
    pub bytes: u64,
    pub stored_bytes: u64,
    pub path: PathBuf,
    seconds: f64,
}

impl Made {
    pub(crate) fn document(&self) -> Value {
        json!({"name": self.name, "path": self.path.display().to_string(), "rows": self.rows, "bytes": self.bytes,
            "stored_bytes": self.stored_bytes, "seconds": self.seconds})
    }
}

impl Job {
    /// Nothing is opened before the first block is taken.
    pub(crate) fn new(file: DataFile, path: PathBuf, threads: usize) -> Self {
        let unit_bytes = (file.bytes_expected() / file.rows.units().max(1)).max(1);
        let ahead = 2 * threads as u64;
        let units_per_block = (BLOCK_BYTES / unit_bytes).max(1);
        Self { file, path, units_per_block, ahead, state: Mutex::default(), written: Condvar::new() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn bytes_expected(&self) -> u64 {
        self.file.bytes_expected()
    }

    /// How many blocks the file has: at least one, so that a file without rows is made too.
    pub(crate) fn blocks(&self) -> u64 {
        self.file.rows.units().div_ceil(self.units_per_block).max(1)
    }

    /// The next block that nobody makes. It has to be handed in, as those behind it wait for it. None when all are taken, or
    /// when it is time to stop.
    pub(crate) fn take(&self, stopped: impl Fn() -> bool) -> Result<Option<u64>, Fault> {
        let mut state = self.lock();
        while state.taken - state.written >= self.ahead && !stopped() {
            state = self.written.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if stopped() || state.taken == self.blocks() {
            return Ok(None);
        }
        if state.taken == 0 {
            state.begin = Some(Instant::now());
            state.sink = Some(Sink::create(&self.path)?);
        }
        state.taken += 1;
        Ok(Some(state.taken - 1))
    }

    /// Makes a block that was taken, and writes it with those that waited for it.
    pub(crate) fn make(&self, number: u64) -> Result<Written, Fault> {
        let block = self.block(number);
        let mut state = self.lock();
        state.waiting.insert(number, block);
        let written = self.write(&mut state);
        self.written.notify_all();
        written
    }

    /// Lets those that wait look again whether it is time to stop.
    pub(crate) fn wake(&self) {
        // Nobody is between looking and waiting while the state is held, even where a thread has panicked with it.
        let _held = self.state.lock();
        self.written.notify_all();
    }

    fn units(&self, number: u64) -> Range<u64> {
        let begin = number * self.units_per_block;
        begin..(begin + self.units_per_block).min(self.file.rows.units())
    }

    fn block(&self, number: u64) -> Block {
        let mut text = Vec::with_capacity((BLOCK_BYTES + BLOCK_BYTES / 4) as usize);
        if number == 0
            && let Some(columns) = self.file.head
        {
            text.extend_from_slice(columns.join("\t").as_bytes());
            text.push(b'\n');
        }
        let rows = self.units(number).map(|unit| self.file.rows.write(unit, &mut text)).sum();
        Block { text, rows }
    }

    fn write(&self, state: &mut State) -> Result<Written, Fault> {
        let mut written = Written::default();
        while let Some(block) = state.waiting.remove(&state.written) {
            // What cannot be written stays the next to be written, so that nothing comes behind it.
            state.sink.as_mut().expect("it is opened with the first block").write(&block.text)?;
            state.written += 1;
            written.rows += block.rows;
            written.bytes += block.text.len() as u64;
        }
        state.rows += written.rows;
        state.bytes += written.bytes;
        if state.written == self.blocks()
            && let Some(sink) = state.sink.take()
        {
            written.made = Some(self.made(state, sink.finish()?));
        }
        Ok(written)
    }

    fn made(&self, state: &State, stored_bytes: u64) -> Made {
        Made {
            name: self.file.name,
            path: self.path.clone(),
            rows: state.rows,
            bytes: state.bytes,
            stored_bytes,
            seconds: state.begin.map_or(0.0, |begin| begin.elapsed().as_secs_f64()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Behind a block of which a thread has panicked none is written, and the file never becomes whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
