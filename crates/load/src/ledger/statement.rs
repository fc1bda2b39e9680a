//! The statements of the ledger.

use crate::spec::LedgerSpec;
use crate::split::plan::Chunk;

/// The server's own operator: these sessions have the user's `search_path`, in which another role may have put one that is
/// found first. Functions are named with their schema for the same reason.
const EQUALS: &str = "OPERATOR(pg_catalog.=)";

/// What the server answers to [`record`] where another table has the target's name: the job, which must not be NULL, is.
pub(crate) const ANOTHER_TABLE: &str = "23502";

/// Writes into the ledger that a chunk is in the table.
///
/// The COPY before it holds a lock on the table that it found by `target`, so none can have taken its name since.
pub(crate) fn record(
    ledger: &LedgerSpec,
    target: &str,
    source: usize,
    chunk: &Chunk,
    loaded: u64,
    rejected: u64,
) -> String {
    let (LedgerSpec { table, job, table_oid }, Chunk { number, begin, end, .. }) = (ledger, chunk);
    let job = match table_oid {
        Some(oid) => {
            let found = format!("pg_catalog.to_regclass({})::pg_catalog.oid", literal(target));
            format!("CASE WHEN {found} {EQUALS} {oid}::pg_catalog.oid THEN {job} END")
        }
        None => job.to_string(),
    };
    format!(
        "INSERT INTO {table} (job, source, chunk, first_byte, end_byte, rows_loaded, rows_rejected) \
         VALUES ({job}, {source}, {number}, {begin}, {end}, {loaded}, {rejected})"
    )
}

/// Reads the chunks of a job that are in the table, or one of them.
pub(crate) fn recorded(ledger: &LedgerSpec, only: Option<(usize, u64)>) -> String {
    let LedgerSpec { table, job, .. } = ledger;
    let only = only
        .map(|(source, chunk)| format!(" AND source {EQUALS} {source} AND chunk {EQUALS} {chunk}"))
        .unwrap_or_default();
    format!(
        "SELECT source, chunk, first_byte, end_byte, rows_loaded, rows_rejected FROM {table} WHERE job {EQUALS} {job}{only}"
    )
}

/// When the server began: its postmaster, and its statistics, which begin anew when it recovers from a crash of one process.
pub(crate) const START: &str =
    "SELECT pg_catalog.pg_postmaster_start_time(), pg_catalog.pg_stat_get_bgwriter_stat_reset_time()";

/// Takes a job for this session alone; true when no other session has it.
pub(crate) fn lock(job: i64) -> String {
    format!("SELECT pg_catalog.pg_try_advisory_lock(pg_catalog.hashtextextended('pgdyno load {job}', 0))")
}

/// Puts everything that was committed before on disk: a commit that waits takes all earlier ones with it, and the message
/// makes it one that has something to wait for. It has no other meaning.
pub(crate) const DURABLE: &str = "BEGIN; SET LOCAL synchronous_commit = on; SELECT pg_catalog.pg_logical_emit_message(true, 'pgdyno load', ''); COMMIT";

/// A string as SQL has it, whatever standard_conforming_strings says.
pub(crate) fn literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    if quoted.contains('\\') { format!("E'{}'", quoted.replace('\\', "\\\\")) } else { format!("'{quoted}'") }
}
