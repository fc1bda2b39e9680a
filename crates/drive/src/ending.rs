//! Why a run ended before its time, in the words of its summary.

use pgdyno_connection::{Fault, ServerError};
use pgdyno_measure::{EndedBy, Refused};
use pgdyno_workload::{SqlState, StatementId, Workload};

/// Of a statement, what a sentence quotes.
const QUOTED_CHARACTERS: usize = 80;

/// Something that every transaction would meet again. What was begun until then is settled and counted.
pub(crate) enum Ending {
    /// The server refused a statement.
    Refused {
        /// The number of the script.
        script: u32,
        /// The statement, where it is known: what fails at the end of a pipeline is none of it.
        statement: Option<StatementId>,
        sqlstate: SqlState,
        error: Option<ServerError>,
    },
    /// A script cannot go on.
    Script(Fault),
}

impl Ending {
    /// Sentence and remedy, with the script's name, line and statement.
    pub(crate) fn fault(&self, workload: &Workload) -> Fault {
        match self {
            Self::Script(fault) => fault.clone(),
            Self::Refused { sqlstate, error, .. } => {
                let message = error.as_ref().map_or("", |error| error.message.as_str());
                let Fault { message, remedy, .. } = Fault::refused(sqlstate.as_str(), message);
                let (script, line, text) = self.place(workload);
                let line = line.map(|line| format!(":{line}")).unwrap_or_default();
                let text = text.map(|text| format!(" ({})", quoted(text))).unwrap_or_default();
                Fault::new(format!("{script}{line}{text}: {message}"), remedy)
            }
        }
    }

    /// As it stands in the summary.
    pub(crate) fn ended_by(&self, workload: &Workload) -> EndedBy {
        let Fault { message, remedy, .. } = self.fault(workload);
        let refused = match self {
            Self::Script(_) => None,
            Self::Refused { sqlstate, .. } => {
                let (script, line, statement) = self.place(workload);
                let (script, statement) = (script.to_owned(), statement.map(str::to_owned));
                Some(Refused { script, line, statement, sqlstate: sqlstate.as_str().to_owned() })
            }
        };
        EndedBy { message, remedy, refused }
    }

    fn place<'a>(&self, workload: &'a Workload) -> (&'a str, Option<u32>, Option<&'a str>) {
        let Self::Refused { script, statement, .. } = self else { return ("", None, None) };
        let name = workload.scripts().get(*script as usize).map_or("", |script| script.name.as_str());
        let Some(statement) = *statement else { return (name, None, None) };
        (name, workload.place_of(statement).map(|(_, at)| at.line), Some(workload.text_of(statement)))
    }
}

/// A statement on one line, cut off where it is long.
fn quoted(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(QUOTED_CHARACTERS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_statement_is_quoted_on_one_line_and_cut_off_between_characters() {
        assert_eq!(quoted("SELECT\n  1"), "SELECT 1");
        let long = quoted(&"ü ".repeat(200));
        assert_eq!(long.chars().count(), QUOTED_CHARACTERS + 1);
        assert!(long.ends_with('…'));
    }
}
