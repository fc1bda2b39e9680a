//! A part of a chunk, sent to the server.

use std::time::{Duration, Instant};

use pgdyno_connection::{Connection, Fault};

use crate::counters::Wait;
use crate::error::LoadError;
use crate::send::statement;
use crate::shared::Shared;
use crate::split::chunk_data::{ChunkData, Slice};

/// Rows are sent in messages of this size at most: the server collects a whole message before it looks for rows in it, which
/// are then still in its core's cache.
const MESSAGE_BYTES: usize = 64 << 10;

/// Why a chunk is not in the table.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The server said no, or is gone.
    Server(Fault),
    /// Anything else.
    Load(LoadError),
}

impl From<Fault> for Failure {
    fn from(error: Fault) -> Self {
        Self::Server(error)
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        Self::Load(error)
    }
}

/// Sends what lies from `begin` to `end` of a source, behind other statements. Returns how many rows the server took.
pub(crate) fn send(
    shared: &Shared,
    session: &mut Connection,
    before: &str,
    body: &ChunkData,
    (begin, end): (u64, u64),
) -> Result<u64, Failure> {
    let copy = statement::copy(&shared.spec);
    let sql = if before.is_empty() { copy } else { format!("{before}; {copy}") };
    // Behind the mark that ends the data less may be kept than the source has.
    let end = end.min(body.end());
    let (mut at, mut unreadable, mut paced) = (begin, None, Duration::ZERO);
    let began = Instant::now();
    let mut copying = session.begin_copy_in(&sql)?;
    while let Some(rows) = body.slice(at, end, MESSAGE_BYTES) {
        at += rows.len() as u64;
        paced += shared.rate_limit.wait(rows.len(), &shared.stop);
        shared.counters.send(rows.len() as u64);
        let going = match rows {
            Slice::Memory(bytes) => Ok(copying.send(bytes)?),
            Slice::File(file, place, length) => copying.send_file(file, place, length)?,
        };
        match going {
            Ok(true) => (),
            Ok(false) => break,
            Err(error) => {
                unreadable = Some(error);
                break;
            }
        }
    }
    let taken = copying.end();
    shared.counters.waited(Wait::Server, began.elapsed().saturating_sub(paced));
    shared.counters.waited(Wait::Rate, paced);
    // The server got the end of the data, so the caller must not commit.
    if let Some(error) = unreadable {
        let message = format!("a chunk cannot be read again: {error}");
        return Err(LoadError::new(message, "check the source and the folder that TMPDIR names").into());
    }
    Ok(taken?)
}
