//! What ends a run before its time.

/// An error that ends the driver, with what the user can do about it. Never holds a secret.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct DriveError {
    /// One sentence.
    pub message: String,
    /// What to do.
    pub remedy: String,
}

impl DriveError {
    pub(crate) fn new(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { message: message.into(), remedy: remedy.into() }
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
}
