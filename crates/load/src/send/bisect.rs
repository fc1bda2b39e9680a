//! Finds the rows of a chunk that the table does not take, and loads the others.

use pgdyno_connection::{Connection, ServerError};

use crate::error::LoadError;
use crate::format::{Format, LineEnd};
use crate::send::copy::{Failure, send};
use crate::send::locate::{ErrorPosition, Lines, RowRange, RowRanges, row_at};
use crate::send::reject::{Part, Reason};
use crate::shared::{Piece, Shared};
use crate::split::rows::Rule;

/// Rows that are tried together: few enough that a bad one costs little, enough that good ones cost what they do anyway.
const ROWS_MAX: usize = 4096;
/// Classes of SQLSTATE that are about a row's content: data exceptions, constraints, limits (such as the length of an index's
/// row), check options, and what triggers and functions raise.
const CLASSES_OF_ROWS: [&str; 8] = ["22", "23", "2F", "38", "39", "44", "54", "P0"];
/// Of class 22, what COPY says of a statement that is wrong; no row is to blame when it names none.
const WRONG_OPTION: &str = "22023";

/// Whether another row might not meet this.
pub(crate) fn is_of_row(said: &ServerError) -> bool {
    let of_class = CLASSES_OF_ROWS.iter().any(|class| said.sqlstate.starts_with(class));
    of_class && !(said.sqlstate == WRONG_OPTION && said.context.is_empty())
}

/// A chunk whose bad rows are looked for, in a transaction that has begun.
pub(crate) struct Bisect<'a, 's> {
    shared: &'a Shared,
    session: &'s mut Connection,
    piece: &'a Piece,
    part: Part<'a>,
    loaded: u64,
    /// A place of the source, and its line.
    line: (u64, u64),
}

impl<'a, 's> Bisect<'a, 's> {
    /// `line` is that of the chunk's first row.
    pub(crate) fn new(
        shared: &'a Shared,
        session: &'s mut Connection,
        piece: &'a Piece,
        part: Part<'a>,
        line: u64,
    ) -> Self {
        Self { shared, session, piece, part, loaded: 0, line: (piece.chunk.begin, line) }
    }

    /// Loads what can be loaded and rejects the rest. Returns how many rows were loaded, and the others, which are on disk.
    pub(crate) fn run(mut self) -> Result<(u64, Part<'a>), Failure> {
        let Piece { body, chunk, line_end, .. } = self.piece;
        let mut places = RowRanges::new(body, self.shared.format, *line_end, (chunk.begin, chunk.end));
        let mut rows: Vec<RowRange> = Vec::new();
        while let Some(more) = places.next().map_err(unreadable)? {
            rows.extend(more);
            while rows.len() >= ROWS_MAX {
                let later = rows.split_off(ROWS_MAX);
                self.some(&rows)?;
                rows = later;
            }
        }
        self.some(&rows)?;
        self.part.sync()?;
        Ok((self.loaded, self.part))
    }

    /// Some rows in order: what breaks a rule of COPY's is not sent, where alone it might break none.
    fn some(&mut self, rows: &[RowRange]) -> Result<(), Failure> {
        let mut rest = rows;
        while let Some(at) = rest.iter().position(|row| row.broken.is_some()) {
            self.sound(&rest[..at])?;
            self.reject_broken(&rest[at])?;
            rest = &rest[at + 1..];
        }
        self.sound(rest)
    }

    /// Rows that break no rule. What fails is split: at the row that the server names, else in the middle.
    fn sound(&mut self, rows: &[RowRange]) -> Result<(), Failure> {
        let mut waiting = vec![rows];
        while let Some(rows) = waiting.pop() {
            let (Some(first), Some(last)) = (rows.first(), rows.last()) else { continue };
            let Err(said) = self.attempt(rows, (first.begin, last.end))? else { continue };
            if rows.len() == 1 {
                self.reject_refused(first, &said)?;
                continue;
            }
            match self.named(rows, &said)? {
                Some(at) => {
                    let (before, rest) = rows.split_at(at);
                    let (one, after) = rest.split_at(1);
                    waiting.extend([after, one, before]);
                }
                None => {
                    let (before, after) = rows.split_at(rows.len() / 2);
                    waiting.extend([after, before]);
                }
            }
        }
        Ok(())
    }

    /// Sends rows; what the server says against them, if it is about rows.
    fn attempt(&mut self, rows: &[RowRange], bounds: (u64, u64)) -> Result<Result<(), ServerError>, Failure> {
        let wanted = rows.iter().filter(|row| row.is_data).count() as u64;
        self.session.query("SAVEPOINT pgdyno")?;
        match send(self.shared, self.session, "", &self.piece.body, bounds) {
            Ok(taken) if taken == wanted => {
                self.session.query("RELEASE SAVEPOINT pgdyno")?;
                self.loaded += taken;
                Ok(Ok(()))
            }
            Ok(taken) => Err(kept_out(taken, wanted).into()),
            Err(Failure::Server(error)) => match error.server_error {
                Some(said) if is_of_row(&said) => {
                    self.session.query("ROLLBACK TO SAVEPOINT pgdyno; RELEASE SAVEPOINT pgdyno")?;
                    Ok(Err(*said))
                }
                _ => Err(Failure::Server(error)),
            },
            Err(failure) => Err(failure),
        }
    }

    /// The row that the server names.
    fn named(&self, rows: &[RowRange], said: &ServerError) -> Result<Option<usize>, Failure> {
        let Some(at) = ErrorPosition::of(said, &self.shared.spec.table) else { return Ok(None) };
        let Piece { body, line_end, .. } = self.piece;
        let mut lines = Lines::new(body, self.shared.format, *line_end);
        row_at(&mut lines, rows, at.line).map_err(unreadable)
    }

    fn reject_refused(&mut self, row: &RowRange, said: &ServerError) -> Result<(), Failure> {
        if !row.is_data {
            // It is the mark that ends the data, and not a row.
            let message =
                format!("{}: {} ({})", self.shared.sources[self.piece.source].name, said.message, said.sqlstate);
            return Err(LoadError::new(message, "remove the line of \\. or what follows it").into());
        }
        let at = ErrorPosition::of(said, &self.shared.spec.table);
        let column = at.and_then(|at| at.column).or_else(|| Some(said.column.clone()).filter(|name| !name.is_empty()));
        let detail = Some(said.detail.clone()).filter(|detail| !detail.is_empty());
        self.reject(row, column, &said.sqlstate, &said.message, detail)
    }

    fn reject_broken(&mut self, row: &RowRange) -> Result<(), Failure> {
        let message = row.broken.map(|broken| broken_message(broken.rule, self.shared)).unwrap_or_default();
        self.reject(row, None, BROKEN, message, None)
    }

    fn reject(
        &mut self,
        row: &RowRange,
        column: Option<String>,
        sqlstate: &str,
        message: &str,
        detail: Option<String>,
    ) -> Result<(), Failure> {
        let Piece { body, line_end, source, .. } = self.piece;
        let lines = body.count((self.line.0, row.begin), LineEnd::last_byte(*line_end)).map_err(unreadable)?;
        self.line = (row.begin, self.line.1 + lines);
        let reason = Reason {
            source: self.shared.sources[*source].name.clone(),
            line: self.line.1,
            byte: row.begin,
            column,
            sqlstate: sqlstate.to_owned(),
            reason: message.to_owned(),
            detail,
        };
        Ok(self.part.reject(body, (row.begin, row.end), *line_end, &reason)?)
    }
}

/// `bad_copy_file_format`, which COPY says of rows that it cannot cut.
pub(crate) const BROKEN: &str = "22P04";

/// What COPY says of such a row.
pub(crate) fn broken_message(rule: Rule, shared: &Shared) -> &'static str {
    let csv = matches!(shared.format, Format::Csv { .. });
    match (rule, csv) {
        (Rule::StrayReturn, true) => "unquoted carriage return found in data",
        (Rule::StrayReturn, false) => "literal carriage return found in data",
        (Rule::StrayNewline, true) => "unquoted newline found in data",
        (Rule::StrayNewline, false) => "literal newline found in data",
        (Rule::OpenQuote, _) => "unterminated CSV quoted field",
    }
}

/// Rows that are neither in the table nor rejected.
pub(crate) fn kept_out(taken: u64, sent: u64) -> LoadError {
    LoadError::new(
        format!("the server took {taken} rows of {sent} that were sent, and refused none"),
        "look for a trigger or a rule of the table that keeps rows out, and disable it",
    )
}

fn unreadable(error: std::io::Error) -> Failure {
    LoadError::new(
        format!("a chunk cannot be read again: {error}"),
        "check the source and the folder that TMPDIR names",
    )
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_row_would_meet_too_is_not_about_the_row() {
        let said = |sqlstate: &str, context: &str| ServerError {
            sqlstate: sqlstate.to_owned(),
            context: context.to_owned(),
            ..ServerError::default()
        };
        for sqlstate in ["22P02", "22021", "22P04", "23505", "23503", "54000", "P0001"] {
            assert!(is_of_row(&said(sqlstate, "")), "{sqlstate}");
        }
        for sqlstate in ["42501", "42P01", "53100", "57014", "40P01", "25P02", "22023", "XX000"] {
            assert!(!is_of_row(&said(sqlstate, "")), "{sqlstate}");
        }
        assert!(is_of_row(&said("22023", "COPY t, line 1, column a: \"x\"")));
    }
}
