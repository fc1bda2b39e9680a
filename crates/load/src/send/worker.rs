//! A session that loads one chunk after another, each in a transaction of its own.

use std::sync::atomic::Ordering;

use pgdyno_connection::{Connection, Fault, ServerError};
use serde_json::json;

use crate::counters::Wait;
use crate::error::{LoadError, OTHER_ENCODING};
use crate::ledger::{self, Done};
use crate::send::bisect::{BROKEN, Bisect, broken_message, is_of_row, kept_out};
use crate::send::copy::{Failure, send};
use crate::send::locate::{ErrorPosition, Lines, RowRange, RowRanges};
use crate::send::statement;
use crate::shared::{Piece, Shared};
use crate::split::plan::Chunk;
use crate::values::held::LostValue;

/// A deadlock or a serialization failure: another try may do.
const TRANSIENT: [&str; 2] = ["40P01", "40001"];
/// Tries of a chunk, in all.
const TRIES: u32 = 5;
/// What a second writer of the same line of the ledger meets.
const UNIQUE: &str = "23505";
/// `character_not_in_repertoire`: bytes that are not text in the encoding that was named.
const NO_TEXT: &str = "22021";
/// How the server's message about such bytes ends when they are a NUL (`report_invalid_encoding` of `mbutils.c`).
const NUL: &str = ": 0x00";
/// Longest chunk of a stream that is checked: it is copied for that.
const CHECKED_BYTES_MAX: u64 = 80 << 20;
const NO_GUESS: &str = "rows before it are loaded as they are; save the stream in a file, whose types are chosen by all of its values, or create the table with that column as text";
/// Bytes of a row examined for a diagnosis.
const LOOKED_AT_BYTES: usize = 4096;

/// Loads chunks until there are none, or this session is one too many.
pub(crate) fn run(shared: &Shared, number: usize, mut session: Connection) {
    while number < shared.sessions.load(Ordering::Relaxed) {
        let Some(piece) = shared.counters.waiting(Wait::QueueEmpty, || shared.queue.pop()) else { return };
        if let Err(error) = load(shared, &mut session, &piece) {
            shared.fail(shared.sources[piece.source].cause(error));
            return;
        }
    }
}

/// Loads a chunk, whatever it takes.
fn load(shared: &Shared, session: &mut Connection, piece: &Piece) -> Result<(), LoadError> {
    require_kept(shared, piece)?;
    let mut alone = piece.chunk.rows_broken > 0;
    if alone && shared.rejects.is_none() {
        return Err(broken(shared, piece));
    }
    for tries_left in (0..TRIES).rev() {
        let error = match once(shared, session, piece, alone) {
            Ok((loaded, rejected)) => {
                let Chunk { begin, end, number, .. } = piece.chunk;
                let done = Done { begin, end, rows_loaded: loaded, rows_rejected: rejected };
                shared.committed((piece.source, number), done);
                return Ok(());
            }
            Err(Failure::Load(error)) => return Err(error),
            Err(Failure::Server(error)) if error.absent || shared.stopping() => return Err(error.into()),
            Err(Failure::Server(error)) => error,
        };
        session.query("ROLLBACK")?;
        let Some(said) = error.server_error.as_deref() else { return Err(error.into()) };
        if said.sqlstate == UNIQUE && is_recorded(shared, session, piece)? {
            return Ok(());
        }
        if is_of_row(said) && !alone {
            if shared.rejects.is_none() {
                return Err(refused(shared, piece, said));
            }
            alone = true;
        } else if tries_left == 0 || !TRANSIENT.contains(&said.sqlstate.as_str()) {
            return Err(in_chunk(shared, piece, &error));
        }
    }
    Err(LoadError::new(
        format!("{} was tried {TRIES} times", bounds(shared, piece)),
        "check what else writes to the table",
    ))
}

/// Refuses a chunk of a stream with a value that its column's type, which was chosen by the beginning, would change.
fn require_kept(shared: &Shared, piece: &Piece) -> Result<(), LoadError> {
    let Some(held) = &shared.held else { return Ok(()) };
    let Chunk { begin, end, .. } = piece.chunk;
    let name = &shared.sources[piece.source].name;
    if end - begin > CHECKED_BYTES_MAX {
        let message = format!("{}: a row is too long to be checked against the chosen types", bounds(shared, piece));
        return Err(
            LoadError::new(message, NO_GUESS).coded("load.type.unchecked", json!({"source": name, "byte": begin}))
        );
    }
    let mut rows = Vec::new();
    piece.body.read(begin, end, usize::MAX, &mut rows).map_err(|error| uncounted(&error))?;
    let Err(lost) = held.check(&rows, piece.line_end) else { return Ok(()) };
    let line = shared.line_at(piece, begin + lost.row as u64).map_err(|error| uncounted(&error))?;
    let LostValue { column, type_name, value, .. } = lost;
    let message = format!(
        "{name} line {line}, column {column}: {type_name}, which the first rows suggested, does not return `{value}` as it is"
    );
    Err(LoadError::new(message, NO_GUESS).coded(
        "load.type.lost",
        json!({"source": name, "line": line, "column": column, "type": type_name, "value": value}),
    ))
}

/// One transaction. `alone`: rows that the table does not take are looked for. Returns rows loaded and rejected.
fn once(shared: &Shared, session: &mut Connection, piece: &Piece, alone: bool) -> Result<(u64, u64), Failure> {
    let Piece { chunk, body, source, .. } = piece;
    let begin = statement::begin(&shared.spec);
    if let (true, Some(rejects)) = (alone, &shared.rejects) {
        // A constraint that is looked at only when the transaction ends could not be laid to a row.
        session.query(&format!("{begin}; SET CONSTRAINTS ALL IMMEDIATE"))?;
        let part = rejects.part(*source, chunk.number, piece.line_end)?;
        let line = shared.line_at(piece, chunk.begin).map_err(|error| uncounted(&error))?;
        let (loaded, part) = Bisect::new(shared, session, piece, part, line).run()?;
        let rejected = part.count();
        commit(shared, session, piece, loaded, rejected)?;
        part.committed();
        return Ok((loaded, rejected));
    }
    let loaded = send(shared, session, &begin, body, (chunk.begin, chunk.end))?;
    if loaded != chunk.rows {
        let LoadError { message, remedy, .. } = kept_out(loaded, chunk.rows);
        return Err(LoadError::new(format!("{}: {message}", bounds(shared, piece)), remedy).into());
    }
    commit(shared, session, piece, loaded, 0)?;
    Ok((loaded, 0))
}

/// Ends the transaction of a chunk, with its line in the ledger. The server has taken all of its rows, so that what its file is
/// like now decides whether they are those of the file as it was.
fn commit(shared: &Shared, session: &mut Connection, piece: &Piece, loaded: u64, rejected: u64) -> Result<(), Failure> {
    shared.sources[piece.source].unchanged()?;
    let sql = match &shared.spec.ledger {
        Some(ledger) => {
            let target = &shared.spec.table;
            let record = ledger::statement::record(ledger, target, piece.source, &piece.chunk, loaded, rejected);
            format!("{record}; COMMIT")
        }
        None => "COMMIT".to_owned(),
    };
    let told =
        shared.counters.waiting(Wait::Server, || session.query(&sql)).map_err(|error| recorded(shared, error))?;
    if told.tag == "COMMIT" {
        return Ok(());
    }
    let message = format!("the server answered {} to COMMIT", told.tag);
    Err(LoadError::new(message, "check the server's log").into())
}

/// Why a chunk's line was not written.
fn recorded(shared: &Shared, error: Fault) -> Failure {
    if error.server_error.as_deref().is_none_or(|said| said.sqlstate != ledger::statement::ANOTHER_TABLE) {
        return error.into();
    }
    let message = format!("another session replaced the table {}: another table has its name now", shared.spec.table);
    LoadError::new(message, "run the same command again: it loads the table that has the name now").into()
}

/// Whether another session, that of a loader which was lost, has loaded a chunk meanwhile; if so it counts.
fn is_recorded(shared: &Shared, session: &mut Connection, piece: &Piece) -> Result<bool, LoadError> {
    let Some(ledger) = &shared.spec.ledger else { return Ok(false) };
    let place = (piece.source, piece.chunk.number);
    let Some(done) = ledger::read_one(session, ledger, place)? else { return Ok(false) };
    ledger::compare(&shared.sources[place.0].name, &piece.chunk, &done)?;
    shared.committed(place, done);
    if let Some(rejects) = &shared.rejects {
        rejects.recorded(place, done.rows_rejected);
    }
    Ok(true)
}

/// A chunk in words.
fn bounds(shared: &Shared, piece: &Piece) -> String {
    let name = &shared.sources[piece.source].name;
    format!("{name}, bytes {} to {}", piece.chunk.begin, piece.chunk.end)
}

/// What the server said while it took a chunk, where no row is to blame.
fn in_chunk(shared: &Shared, piece: &Piece, error: &Fault) -> LoadError {
    let mut told = LoadError::from(error.clone());
    told.message = format!("{}: {}", bounds(shared, piece), told.message);
    told
}

/// The first row of a chunk that COPY would not even cut.
fn broken(shared: &Shared, piece: &Piece) -> LoadError {
    let found = first(shared, piece, |place| Ok(place.broken.is_some()));
    let rule = found.and_then(|place| place.broken).or(piece.chunk.first_broken).map(|broken| broken.rule);
    let message = rule.map(|rule| broken_message(rule, shared)).unwrap_or_default();
    let said = ServerError { sqlstate: BROKEN.to_owned(), message: message.to_owned(), ..ServerError::default() };
    about(shared, piece, found, None, &said)
}

/// The row that the server refused.
fn refused(shared: &Shared, piece: &Piece, said: &ServerError) -> LoadError {
    let at = ErrorPosition::of(said, &shared.spec.table);
    let mut lines = Lines::new(&piece.body, shared.format, piece.line_end);
    let found = at.as_ref().and_then(|at| first(shared, piece, |place| Ok(lines.add(place)? >= at.line)));
    let column = at.and_then(|at| at.column).or_else(|| Some(said.column.clone()).filter(|name| !name.is_empty()));
    about(shared, piece, found, column, said)
}

/// The first row that is meant; none if it cannot be found, which only makes a message less exact.
fn first(
    shared: &Shared,
    piece: &Piece,
    mut is_meant: impl FnMut(&RowRange) -> std::io::Result<bool>,
) -> Option<RowRange> {
    let Piece { body, chunk, line_end, .. } = piece;
    let mut places = RowRanges::new(body, shared.format, *line_end, (chunk.begin, chunk.end));
    while let Some(some) = places.next().ok()? {
        for place in some {
            if is_meant(&place).ok()? {
                return Some(place);
            }
        }
    }
    None
}

/// An error that names the row.
fn about(
    shared: &Shared,
    piece: &Piece,
    place: Option<RowRange>,
    column: Option<String>,
    said: &ServerError,
) -> LoadError {
    let ServerError { sqlstate, message, .. } = said;
    let located = place.and_then(|place| Some((place, shared.line_at(piece, place.begin).ok()?)));
    let Some((place, line)) = located else {
        return LoadError::new(format!("{}: {message} ({sqlstate})", bounds(shared, piece)), MEND);
    };
    let name = &shared.sources[piece.source].name;
    let of_column = column.clone();
    let column = column.map(|column| format!(", column {column}")).unwrap_or_default();
    let message = format!("{name} line {line} (byte {}){column}: {message} ({sqlstate})", place.begin);
    if sqlstate == NO_TEXT && said.message.ends_with(NUL) {
        return LoadError::nul(message, name, place.begin, shared.sources[piece.source].is_packed());
    }
    if sqlstate == NO_TEXT {
        return LoadError::new(message, OTHER_ENCODING);
    }
    let is_first = piece.chunk.number == 0 && place.begin == piece.chunk.begin;
    let remedy = if is_first { diagnose(shared, piece, &place) } else { None };
    let data = json!({"source": name, "line": line, "byte": place.begin, "sqlstate": sqlstate, "column": of_column});
    LoadError::new(message, remedy.unwrap_or_else(|| MEND.to_owned())).coded("load.row.refused", data)
}

const MEND: &str = "correct the row, or name a file for rejected rows so that the others are loaded";

/// What is wrong with the format, where the first row says so.
fn diagnose(shared: &Shared, piece: &Piece, place: &RowRange) -> Option<String> {
    let mut row = Vec::new();
    piece.body.read(place.begin, place.end, LOOKED_AT_BYTES, &mut row).ok()?;
    let count = |delimiter: char| row.iter().filter(|byte| **byte == delimiter as u8).count();
    let given = shared.spec.format.delimiter();
    let other = [',', '\t', ';', '|'].into_iter().filter(|other| *other != given).max_by_key(|other| count(*other))?;
    (count(given) == 0 && count(other) > 0).then(|| {
        format!(
            "the first row has no {} and {} of {}: name that as the delimiter, if it is",
            named(given),
            count(other),
            named(other)
        )
    })
}

fn named(delimiter: char) -> &'static str {
    match delimiter {
        ',' => "comma",
        '\t' => "tab",
        ';' => "semicolon",
        '|' => "vertical bar",
        _ => "such delimiter",
    }
}

fn uncounted(error: &std::io::Error) -> LoadError {
    LoadError::new(format!("cannot count the lines of a source: {error}"), "check the source")
}
