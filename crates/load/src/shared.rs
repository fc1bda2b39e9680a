//! What all threads of a load share.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::counters::Counters;
use crate::error::LoadError;
use crate::format::{Format, LineEnd};
use crate::ledger::{Chunks, Done};
use crate::queue::Queue;
use crate::read::pool::{Blocks, Pool};
use crate::read::source::Source;
use crate::send::rate_limit::RateLimit;
use crate::send::reject::Rejects;
use crate::spec::{Compression, LoadSpec};
use crate::split::chunk_data::ChunkData;
use crate::split::plan::Chunk;
use crate::values::held::Held;

/// Memory of all chunks on their way. With what decompressors keep it stays below 256 MiB.
const CHUNKS_BYTES_MAX: u64 = 144 << 20;
/// The same where a decompressor may keep 128 MiB of history.
const CHUNKS_BYTES_MAX_WINDOWED: u64 = 100 << 20;

/// A chunk on its way.
pub(crate) struct Piece {
    /// Index of its source.
    pub source: usize,
    /// Its bounds and rows.
    pub chunk: Chunk,
    /// Its bytes.
    pub body: ChunkData,
    /// How the lines of its source end, as the first one says.
    pub line_end: Option<LineEnd>,
    /// The byte of the source from which lines were counted: not from the first, where the load resumed behind others.
    pub counted_from: u64,
    /// Line ends from there to its beginning.
    pub lines_before: u64,
}

/// What all threads of one try share.
pub(crate) struct Shared {
    pub spec: LoadSpec,
    pub sources: Vec<Source>,
    /// What decides where rows end.
    pub format: Format,
    /// Chunks that were in the table before.
    pub done: Chunks,
    /// Room for chunks, and what they lie in.
    pub pool: Arc<Pool>,
    pub blocks: Arc<Blocks>,
    pub queue: Queue<Piece>,
    pub counters: Counters,
    pub rate_limit: RateLimit,
    pub rejects: Option<Rejects>,
    /// What the values of a stream are held to.
    pub held: Option<Held>,
    /// The order to stop, for sessions too.
    pub stop: Arc<AtomicBool>,
    /// Sessions of this number and above end with the chunk that they have.
    pub sessions: AtomicUsize,
    /// Threads that cut, each one source after another.
    pub planners: usize,
    /// The next source that no thread splits yet.
    pub next_source: AtomicUsize,
    /// Sources that were cut to their end.
    pub sources_cut: AtomicUsize,
    /// Chunks that were put into the queue.
    pub chunks_cut: AtomicUsize,
    /// Chunks whose commit the server has confirmed.
    committed: Mutex<Chunks>,
    headers: Mutex<BTreeMap<usize, Vec<u8>>>,
    /// Line ends before the place where a source was gone on with, once they were asked for.
    lines_passed: Mutex<BTreeMap<usize, u64>>,
    failure: Mutex<Option<LoadError>>,
}

impl Shared {
    /// Nothing has begun. Sessions wait for servers of this major version; `cores` may compute.
    pub(crate) fn new(
        spec: &LoadSpec,
        sources: Vec<Source>,
        major: u32,
        cores: usize,
        done: Chunks,
    ) -> Result<Self, LoadError> {
        let windowed = |source: &Source| matches!(source.compression, Compression::Zstd | Compression::Xz);
        // A pipe may turn out to be anything.
        let unknown = |source: &Source| source.compression == Compression::Auto;
        let is_windowed = sources.iter().any(|source| windowed(source) || unknown(source));
        let sessions_max = spec.connections_max() as usize;
        let planners = if is_windowed { 1 } else { sources.len().min(cores).min(sessions_max).max(1) };
        let waiting_max = planners + 1;
        let bytes_max = if is_windowed { CHUNKS_BYTES_MAX_WINDOWED } else { CHUNKS_BYTES_MAX };
        Ok(Self {
            format: spec.format.rows(major),
            pool: Pool::new(planners + waiting_max + sessions_max, spec.chunk_bytes.usual, bytes_max),
            blocks: Arc::default(),
            queue: Queue::new(waiting_max, planners),
            counters: Counters::default(),
            rate_limit: RateLimit::new(spec.rate_bytes_per_s),
            rejects: spec.rejects.as_ref().map(|rejects| Rejects::new(rejects, &done)).transpose()?,
            held: spec.types.as_deref().map(|types| Held::new(types, &spec.format)),
            stop: Arc::new(AtomicBool::new(false)),
            sessions: AtomicUsize::new(spec.connections as usize),
            planners,
            next_source: AtomicUsize::new(0),
            sources_cut: AtomicUsize::new(0),
            chunks_cut: AtomicUsize::new(0),
            committed: Mutex::new(Chunks::new()),
            headers: Mutex::new(BTreeMap::new()),
            lines_passed: Mutex::new(BTreeMap::new()),
            failure: Mutex::new(None),
            spec: spec.clone(),
            sources,
            done,
        })
    }

    /// Ends the load. The first of several errors is reported: the others follow from the order to stop.
    pub(crate) fn fail(&self, error: LoadError) {
        locked(&self.failure).get_or_insert(error);
        self.stop.store(true, Ordering::Relaxed);
        self.queue.stop();
        self.pool.stop();
    }

    /// What ended the load, if something did.
    pub(crate) fn failure(&self) -> Option<LoadError> {
        locked(&self.failure).clone()
    }

    /// A chunk is in the table.
    pub(crate) fn committed(&self, place: (usize, u64), done: Done) {
        self.counters.committed(done.end - done.begin, done.rows_loaded, done.rows_rejected);
        locked(&self.committed).insert(place, done);
    }

    /// All chunks that are known to be in the table, those from before with them.
    pub(crate) fn known(&self) -> Chunks {
        self.done.iter().chain(&*locked(&self.committed)).map(|(place, done)| (*place, *done)).collect()
    }

    /// Whether the order to stop was given.
    pub(crate) fn stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Keeps the header of a source, for rows that are rejected.
    pub(crate) fn keep_header(&self, source: usize, header: Vec<u8>) {
        locked(&self.headers).insert(source, header);
    }

    /// The line of a place of a chunk, from 1. Where lines were passed over they are counted now, and once.
    pub(crate) fn line_at(&self, piece: &Piece, place: u64) -> io::Result<u64> {
        let byte = LineEnd::last_byte(piece.line_end);
        let mut before = piece.lines_before + piece.body.count((piece.chunk.begin, place), byte)?;
        if piece.counted_from > 0 {
            let mut passed = locked(&self.lines_passed);
            before += match passed.get(&piece.source) {
                Some(lines) => *lines,
                None => {
                    let lines = self.sources[piece.source].count(byte, piece.counted_from)?;
                    passed.insert(piece.source, lines);
                    lines
                }
            };
        }
        Ok(before + 1)
    }

    /// The header of a source; empty where it has none.
    pub(crate) fn header(&self, source: usize) -> Vec<u8> {
        locked(&self.headers).get(&source).cloned().unwrap_or_default()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
