//! What ends a run before its time.

use crate::frame::Said;

/// An error that ends the driver, with what the user can do about it. Never holds a secret.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct DriveError {
    /// One sentence.
    pub message: String,
    /// What to do.
    pub remedy: String,
    /// The server's own words, where it was the server that refused.
    pub said: Option<Box<Said>>,
    /// Whether there is no server, or no longer: what was under way may be tried again when it is back.
    pub absent: bool,
}

impl DriveError {
    /// What went wrong, and what to do about it.
    pub fn new(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { message: message.into(), remedy: remedy.into(), said: None, absent: false }
    }

    /// The same, because the server is not there.
    pub(crate) fn absent(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { absent: true, ..Self::new(message, remedy) }
    }

    /// What the server refused, with a remedy for what users meet first.
    pub(crate) fn refused(sqlstate: &str, message: &str) -> Self {
        let remedy = match sqlstate {
            "28P01" => "set PGPASSWORD or PGPASSFILE to the right password",
            "28000" => "look at the server's pg_hba.conf, the user and sslmode",
            "3D000" => "create the database, or name another",
            "53300" => "raise the server's max_connections, or take fewer clients",
            "42P01" | "42703" => "load the workload's tables first",
            "42P07" => "drop the tables that are there first, or let them be replaced",
            "42501" => "grant the rights, or take another user",
            "53100" => "free some space on the server's disk",
            _ => "look at the server's log",
        };
        Self::new(format!("the server refused ({sqlstate}): {message}"), remedy)
    }

    /// What the server said of a statement. One that is ordered to stop (class 57P) or that broke with the connection
    /// (class 08) is as good as gone.
    pub(crate) fn of(said: &Said) -> Self {
        let absent = said.sqlstate.starts_with("57P") || said.sqlstate.starts_with("08");
        Self { absent, said: Some(Box::new(said.clone())), ..Self::refused(&said.sqlstate, &said.message) }
    }
}
