//! Which chunks are in the table: written in their own transactions, read when a load begins.

pub(crate) mod statement;

use std::collections::BTreeMap;

use pgdyno_connection::{Connection, Fault, QueryResult};

use crate::error::LoadError;
use crate::spec::LedgerSpec;
use crate::split::plan::Chunk;

/// A chunk that is in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Done {
    /// Where it begins: bytes of the uncompressed source.
    pub begin: u64,
    /// Where the next one begins.
    pub end: u64,
    /// Rows that the table took.
    pub rows_loaded: u64,
    /// Rows that it did not take.
    pub rows_rejected: u64,
}

/// Chunks by source and number.
pub(crate) type Chunks = BTreeMap<(usize, u64), Done>;

/// All chunks of a job that are in the table.
pub(crate) fn read(session: &mut Connection, ledger: &LedgerSpec) -> Result<Chunks, Fault> {
    Ok(chunks(&session.query(&statement::recorded(ledger, None))?))
}

/// One of them.
pub(crate) fn read_one(
    session: &mut Connection,
    ledger: &LedgerSpec,
    source: usize,
    chunk: u64,
) -> Result<Option<Done>, Fault> {
    let told = session.query(&statement::recorded(ledger, Some((source, chunk))))?;
    Ok(chunks(&told).into_values().next())
}

fn chunks(told: &QueryResult) -> Chunks {
    let row = |row: &Vec<Option<String>>| {
        let mut numbers = row.iter().map(|value| value.as_deref().and_then(|text| text.parse::<u64>().ok()));
        let mut next = || numbers.next().flatten();
        let (source, chunk) = (next()?, next()?);
        let done = Done { begin: next()?, end: next()?, rows_loaded: next()?, rows_rejected: next()? };
        Some(((usize::try_from(source).ok()?, chunk), done))
    };
    told.rows.iter().filter_map(row).collect()
}

/// How many chunks from the first on are done without a gap, and where the next one begins.
pub(crate) fn prefix(chunks: &Chunks, source: usize) -> Option<Chunk> {
    let mut next: Option<Chunk> = None;
    for ((_, number), done) in chunks.range((source, 0)..=(source, u64::MAX)) {
        let follows = next.as_ref().map_or(*number == 0, |next| (next.number, next.begin) == (*number, done.begin));
        if !follows {
            break;
        }
        let rows_before = next.map_or(0, |next| next.rows_before) + done.rows_loaded + done.rows_rejected;
        next = Some(Chunk { number: number + 1, begin: done.end, end: done.end, rows_before, ..Chunk::default() });
    }
    next
}

/// Refuses a chunk that is in the table with other bounds than it has now.
pub(crate) fn compare(name: &str, chunk: &Chunk, done: &Done) -> Result<(), LoadError> {
    let rows_done = done.rows_loaded + done.rows_rejected;
    if (chunk.begin, chunk.end) != (done.begin, done.end) || chunk.rows != rows_done {
        let message = format!(
            "the plan changed: chunk {} of {name} is bytes {} to {} with {} rows now, and the ledger has bytes {} to {} with {} rows",
            chunk.number, chunk.begin, chunk.end, chunk.rows, done.begin, done.end, rows_done
        );
        return Err(LoadError::new(message, "load the file as it was, or begin a new load into an empty table"));
    }
    Ok(())
}

/// Refuses a chunk that is not in the table and overlaps with a later one that is, whose plan was another.
pub(crate) fn fits(name: &str, chunks: &Chunks, source: usize, chunk: &Chunk) -> Result<(), LoadError> {
    let later = chunks.range((source, chunk.number + 1)..=(source, u64::MAX)).next();
    let Some(((_, number), next)) = later else { return Ok(()) };
    let is_next = *number == chunk.number + 1;
    if next.begin == chunk.end || (!is_next && next.begin > chunk.end) {
        return Ok(());
    }
    let message = format!(
        "the plan changed: chunk {} of {name} ends at byte {} now, and the ledger has chunk {number} from byte {} on",
        chunk.number, chunk.end, next.begin
    );
    Err(LoadError::new(message, "load the file as it was, or begin a new load into an empty table"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(begin: u64, end: u64) -> Done {
        Done { begin, end, rows_loaded: 3, rows_rejected: 1 }
    }

    #[test]
    fn a_prefix_ends_at_the_first_gap() {
        let mut chunks = Chunks::from([((0, 0), done(5, 10)), ((0, 1), done(10, 20)), ((0, 3), done(30, 40))]);
        let next = prefix(&chunks, 0).unwrap();
        assert_eq!((next.number, next.begin, next.rows_before), (2, 20, 8));
        assert_eq!(prefix(&chunks, 1), None);
        chunks.remove(&(0, 0));
        assert_eq!(prefix(&chunks, 0), None);
    }

    #[test]
    fn a_chunk_with_other_bounds_is_refused() {
        let chunk = Chunk { begin: 5, end: 10, rows: 4, ..Chunk::default() };
        assert!(compare("a", &chunk, &done(5, 10)).is_ok());
        assert!(compare("a", &chunk, &done(5, 11)).unwrap_err().message.contains("bytes 5 to 11"));
        assert!(compare("a", &Chunk { rows: 5, ..chunk }, &done(5, 10)).is_err());
    }

    #[test]
    fn a_chunk_that_overlaps_with_a_later_one_is_refused() {
        let chunks = Chunks::from([((0, 3), done(30, 40))]);
        let fits = |number, end| fits("a", &chunks, 0, &Chunk { number, end, ..Chunk::default() }).is_ok();
        assert!(fits(2, 30) && fits(1, 20) && fits(4, 60));
        assert!(!fits(2, 29) && !fits(2, 31) && !fits(1, 31));
    }

    #[test]
    fn the_servers_rows_become_chunks() {
        let row = |text: &str| text.split(' ').map(|word| Some(word.to_owned())).collect();
        let told = QueryResult { rows: vec![row("1 2 30 40 5 6")], ..QueryResult::default() };
        let expected = Done { begin: 30, end: 40, rows_loaded: 5, rows_rejected: 6 };
        assert_eq!(chunks(&told), Chunks::from([((1, 2), expected)]));
    }
}
