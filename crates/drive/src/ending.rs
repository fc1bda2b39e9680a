//! Why a run ended before its time, in the words of its summary.

use pgdyno_connection::{Fault, ServerError};
use pgdyno_measure::{EndedBy, Refused};
use pgdyno_workload::{SqlState, StatementId, Workload};
use serde_json::json;

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
    /// A lost connection cannot be opened again, now or later.
    Session(Fault),
}

impl Ending {
    /// Sentence and remedy, with the script's name, line and statement.
    pub(crate) fn fault(&self, workload: &Workload) -> Fault {
        match self {
            Self::Script(fault) => fault.clone(),
            Self::Session(fault) => {
                let sqlstate = fault.server_error.as_deref().map(|error| error.sqlstate.as_str());
                let message = format!("a lost connection cannot be opened again: {}", fault.message);
                Fault { message, ..fault.clone() }.coded("drive.reconnect.refused", json!({"sqlstate": sqlstate}))
            }
            Self::Refused { sqlstate, error, .. } => {
                let message = error.as_ref().map_or("", |error| error.message.as_str());
                let Fault { message, remedy, .. } = Fault::refused(sqlstate.as_str(), message);
                let remedy = of_script(sqlstate.as_str()).map_or(remedy, str::to_owned);
                let (script, line, text) = self.place(workload);
                let data = json!({"sqlstate": sqlstate.as_str(), "script": script, "line": line});
                let line = line.map(|line| format!(":{line}")).unwrap_or_default();
                let text = text.map(|text| format!(" ({})", quoted(text))).unwrap_or_default();
                Fault::new(format!("{script}{line}{text}: {message}"), remedy).coded("drive.statement.refused", data)
            }
        }
    }

    /// As it stands in the summary.
    pub(crate) fn ended_by(&self, workload: &Workload) -> EndedBy {
        let Fault { message, remedy, code, data, .. } = self.fault(workload);
        let refused = match self {
            Self::Script(_) | Self::Session(_) => None,
            Self::Refused { sqlstate, .. } => {
                let (script, line, statement) = self.place(workload);
                let (script, statement) = (script.to_owned(), statement.map(str::to_owned));
                Some(Refused { script, line, statement, sqlstate: sqlstate.as_str().to_owned() })
            }
        };
        EndedBy { message, remedy, code: code.into_owned(), data, refused }
    }

    fn place<'a>(&self, workload: &'a Workload) -> (&'a str, Option<u32>, Option<&'a str>) {
        let Self::Refused { script, statement, .. } = self else { return ("", None, None) };
        let name = workload.scripts().get(*script as usize).map_or("", |script| script.name.as_str());
        let Some(statement) = *statement else { return (name, None, None) };
        (name, workload.place_of(statement).map(|(_, at)| at.line), Some(workload.text_of(statement)))
    }
}

/// The remedy for what only the script can be the cause of.
fn of_script(sqlstate: &str) -> Option<&'static str> {
    match sqlstate {
        "08P01" => Some(
            "correct the script: the server counts other parameters than were sent, as of a variable in quotes, which is text there; \
             write it without quotes, or use --protocol simple",
        ),
        "0A000" | "42601" | "42702" | "42725" | "42803" | "42804" | "42846" | "42883" | "42P02" | "42P18" => {
            Some("correct the script's statement")
        }
        state if ["22", "23", "25"].iter().any(|class| state.starts_with(class)) => {
            Some("correct the script's statement or its values, or count such errors with --continue-on-error")
        }
        _ => None,
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
