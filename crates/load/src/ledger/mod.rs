//! Which chunks are in the table: written in their own transactions, read when a load begins.

pub(crate) mod statement;

use std::collections::BTreeMap;

use pgdyno_connection::{Connection, Fault, QueryResult};

use serde_json::json;

use crate::error::LoadError;
use crate::spec::LedgerSpec;
use crate::split::plan::Chunk;

/// Lines that an error names at most.
const LINES_NAMED: usize = 100;

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

/// When a server began, and when it last began again after a crash, as it writes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Start(Vec<Vec<Option<String>>>);

/// When the server began.
pub(crate) fn start(session: &mut Connection) -> Result<Start, Fault> {
    Ok(Start(session.query(statement::START)?.rows))
}

/// All chunks of a job of this number of sources that are in the table.
pub(crate) fn read(session: &mut Connection, ledger: &LedgerSpec, sources: usize) -> Result<Chunks, LoadError> {
    chunks(ledger.job, sources, &session.query(&statement::recorded(ledger, None))?)
}

/// One of them.
pub(crate) fn read_one(
    session: &mut Connection,
    ledger: &LedgerSpec,
    (source, chunk): (usize, u64),
) -> Result<Option<Done>, LoadError> {
    let answer = session.query(&statement::recorded(ledger, Some((source, chunk))))?;
    Ok(chunks(ledger.job, source + 1, &answer)?.into_values().next())
}

/// The ledger's lines. One that no load writes is refused: a chunk whose line is left out would be loaded again.
fn chunks(job: i64, sources: usize, answer: &QueryResult) -> Result<Chunks, LoadError> {
    answer.rows.iter().map(|row| line(sources, row).ok_or_else(|| damaged(job, row))).collect()
}

fn line(sources: usize, row: &[Option<String>]) -> Option<((usize, u64), Done)> {
    // What the server keeps are signed numbers of 64 bits.
    let mut numbers = row.iter().map(|value| value.as_deref().and_then(|text| text.parse::<i64>().ok()));
    let mut next = || numbers.next().flatten().and_then(|number| u64::try_from(number).ok());
    let (source, chunk) = (usize::try_from(next()?).ok()?, next()?);
    let done = Done { begin: next()?, end: next()?, rows_loaded: next()?, rows_rejected: next()? };
    let bytes = done.end.checked_sub(done.begin)?;
    // A row has at least one byte.
    let is_sound = source < sources && done.rows_loaded.checked_add(done.rows_rejected)? <= bytes;
    is_sound.then_some(((source, chunk), done))
}

fn damaged(job: i64, row: &[Option<String>]) -> LoadError {
    let number = |at: usize| row.get(at).and_then(Option::as_deref).and_then(|text| text.parse::<i64>().ok());
    let message = format!(
        "the ledger has a line of job {job} that no load writes: source {}, chunk {}",
        number(0).unwrap_or(-1),
        number(1).unwrap_or(-1)
    );
    LoadError::new(message, "find out which session wrote to the ledger; load again with --abandon and --truncate")
        .coded("load.ledger.damaged", json!({"job": job, "source": number(0), "chunk": number(1)}))
}

/// Refuses to go on where lines of committed chunks are gone: the chunks are in the table, and would be loaded a second time.
pub(crate) fn require_all(ledger: &LedgerSpec, known: &Chunks, recorded: &Chunks) -> Result<(), LoadError> {
    let gone: Vec<_> = known.iter().filter(|(place, done)| recorded.get(place) != Some(done)).collect();
    let more = recorded.keys().filter(|place| !known.contains_key(place)).count();
    if gone.is_empty() && more == 0 {
        return Ok(());
    }
    let rows = gone.iter().map(|(_, done)| done.rows_loaded).sum::<u64>();
    let lines: Vec<_> = gone.iter().take(LINES_NAMED).map(|(place, _)| json!([place.0, place.1])).collect();
    let message = if gone.is_empty() {
        format!("the ledger has {more} chunks of job {} that this load did not commit", ledger.job)
    } else {
        format!(
            "another session removed or changed {} of {} lines of job {} in the ledger while it was loaded; their {rows} rows \
             are in the table",
            gone.len(),
            known.len(),
            ledger.job
        )
    };
    let remedy = "load again with --abandon and --truncate while no other session writes to the ledger";
    let data = json!({"job": ledger.job, "lines": lines, "count": gone.len(), "rows": rows, "unknown": more});
    Err(LoadError::new(message, remedy).coded("load.ledger.lines_lost", data))
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
    use proptest::prelude::*;

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

    fn answer(text: &str) -> QueryResult {
        let row = text.split(' ').map(|word| Some(word.to_owned())).collect();
        QueryResult { rows: vec![row], ..QueryResult::default() }
    }

    #[test]
    fn the_servers_rows_become_chunks() {
        let expected = Done { begin: 30, end: 50, rows_loaded: 5, rows_rejected: 6 };
        assert_eq!(chunks(1, 2, &answer("1 2 30 50 5 6")).unwrap(), Chunks::from([((1, 2), expected)]));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_line_of_any_numbers_is_taken_or_refused_and_never_left_out(
            numbers in prop::collection::vec(prop_oneof![any::<i64>(), -3_i64..9], 6),
        ) {
            let text = numbers.iter().map(i64::to_string).collect::<Vec<_>>().join(" ");
            match chunks(1, 4, &answer(&text)) {
                Ok(found) => {
                    let ((source, _), done) = found.iter().next().expect("one line is one chunk");
                    prop_assert!(*source < 4 && done.begin <= done.end);
                    prop_assert!(done.rows_loaded + done.rows_rejected <= done.end - done.begin);
                    let next = prefix(&found, *source);
                    prop_assert_eq!(next.map(|next| next.begin), (found.contains_key(&(*source, 0))).then_some(done.end));
                }
                Err(error) => prop_assert_eq!(error.code, "load.ledger.damaged"),
            }
        }
    }

    #[test]
    fn a_committed_chunk_whose_line_is_gone_or_changed_is_named() {
        let ledger = LedgerSpec { table: "c".to_owned(), job: 7, table_oid: None };
        let known = Chunks::from([((0, 0), done(0, 10)), ((0, 1), done(10, 20)), ((1, 0), done(0, 9))]);
        assert!(require_all(&ledger, &known, &known).is_ok());
        let mut recorded = known.clone();
        recorded.remove(&(0, 1));
        recorded.insert((1, 0), done(0, 8));
        let error = require_all(&ledger, &known, &recorded).unwrap_err();
        let expected = json!({"job": 7, "lines": [[0, 1], [1, 0]], "count": 2, "rows": 6, "unknown": 0});
        assert_eq!((&*error.code, error.data), ("load.ledger.lines_lost", expected));
        let error = require_all(&ledger, &recorded, &Chunks::from_iter(known.into_iter().take(1))).unwrap_err();
        assert_eq!(error.data["count"], 1, "{error}");
    }
}
