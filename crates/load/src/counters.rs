//! How far a load is, and what its threads waited for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// What a thread waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wait {
    /// A planner, for bytes of its source.
    Source,
    /// A session, for the server.
    Server,
    /// A planner, for a session to take a chunk.
    QueueFull,
    /// A session, for a chunk.
    QueueEmpty,
    /// A session, because of the rate that was asked for.
    Rate,
}

const WAITS: [(Wait, &str); 5] = [
    (Wait::Source, "client_read_ms"),
    (Wait::Server, "server_ms"),
    (Wait::QueueFull, "queue_full_ms"),
    (Wait::QueueEmpty, "queue_empty_ms"),
    (Wait::Rate, "rate_ms"),
];

/// Counters that all threads share. What was in the table before counts too.
#[derive(Default)]
pub(crate) struct Counters {
    /// Bytes of sources, uncompressed, that are in the table or rejected.
    bytes: AtomicU64,
    /// Bytes as they are stored that were read or passed over.
    pub stored: Arc<AtomicU64>,
    rows_loaded: AtomicU64,
    rows_rejected: AtomicU64,
    chunks: AtomicU64,
    /// Bytes that were sent, whatever became of them.
    sent: AtomicU64,
    waits_ns: [AtomicU64; WAITS.len()],
}

/// What is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    /// Bytes of sources, uncompressed.
    pub bytes: u64,
    /// Rows that the table has.
    pub rows_loaded: u64,
    /// Rows that it did not take.
    pub rows_rejected: u64,
    /// Chunks.
    pub chunks: u64,
}

impl Counters {
    /// A chunk is in the table.
    pub(crate) fn committed(&self, bytes: u64, rows_loaded: u64, rows_rejected: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.rows_loaded.fetch_add(rows_loaded, Ordering::Relaxed);
        self.rows_rejected.fetch_add(rows_rejected, Ordering::Relaxed);
        self.chunks.fetch_add(1, Ordering::Relaxed);
    }

    /// What is done.
    pub(crate) fn totals(&self) -> Totals {
        Totals {
            bytes: self.bytes.load(Ordering::Relaxed),
            rows_loaded: self.rows_loaded.load(Ordering::Relaxed),
            rows_rejected: self.rows_rejected.load(Ordering::Relaxed),
            chunks: self.chunks.load(Ordering::Relaxed),
        }
    }

    /// Bytes are on their way to the server.
    pub(crate) fn send(&self, bytes: u64) {
        self.sent.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes that were sent.
    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// A thread has waited.
    pub(crate) fn waited(&self, wait: Wait, time: Duration) {
        self.waits_ns[wait as usize].fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Does something, whose time is waiting.
    pub(crate) fn waiting<T>(&self, wait: Wait, what: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let result = what();
        self.waited(wait, began.elapsed());
        result
    }

    /// What was waited for since the call before.
    fn waits(&self) -> Value {
        let since = |(wait, name): &(Wait, &str)| {
            let ns = self.waits_ns[*wait as usize].swap(0, Ordering::Relaxed);
            ((*name).to_owned(), json!(ns as f64 / 1e6))
        };
        Value::Object(WAITS.iter().map(since).collect())
    }

    /// A line of progress.
    pub(crate) fn progress(&self, elapsed: Duration, stored_all: Option<u64>, connections: usize) -> Value {
        let Totals { bytes, rows_loaded, rows_rejected, chunks } = self.totals();
        json!({
            "event": "progress",
            "elapsed_ms": elapsed.as_secs_f64() * 1e3,
            "bytes": bytes,
            "bytes_read_stored": self.stored.load(Ordering::Relaxed),
            "bytes_stored_total": stored_all,
            "rows_loaded": rows_loaded,
            "rows_rejected": rows_rejected,
            "connections": connections,
            "chunks": chunks,
            "waits": self.waits(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_those_since_the_line_before() {
        let counters = Counters::default();
        counters.waited(Wait::QueueEmpty, Duration::from_millis(3));
        counters.committed(10, 2, 1);
        let first = counters.progress(Duration::from_secs(1), None, 2);
        assert_eq!((first["waits"]["queue_empty_ms"].as_f64(), first["rows_rejected"].as_u64()), (Some(3.0), Some(1)));
        let second = counters.progress(Duration::from_secs(2), None, 2);
        assert_eq!((second["waits"]["queue_empty_ms"].as_f64(), second["bytes"].as_u64()), (Some(0.0), Some(10)));
    }
}
