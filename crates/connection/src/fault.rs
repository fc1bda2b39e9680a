//! Why a command ended early.

use std::borrow::Cow;

use pgdyno_host as host;
use serde_json::Value;

use crate::server_error::ServerError;

/// An error with what the user can do about it. Never holds a secret.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// One sentence.
    pub message: String,
    /// What to do.
    pub remedy: String,
    /// What the server reported, if the server refused.
    pub server_error: Option<Box<ServerError>>,
    /// Whether the server is unreachable or the connection was lost: worth another try once it is back.
    pub absent: bool,
    /// A stable name of the error, from the largest part to the smallest (`capture.prefix.unknown`); empty where it has none.
    pub code: Cow<'static, str>,
    /// What a program may want to know of it: an object, or null.
    pub data: Value,
}

impl Fault {
    /// One sentence, and what to do.
    pub fn new(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        let (message, remedy) = (message.into(), remedy.into());
        Self { message, remedy, server_error: None, absent: false, code: Cow::Borrowed(""), data: Value::Null }
    }

    /// The same error with a stable name, and what a program may want to know of it.
    #[must_use]
    pub fn coded(self, code: &'static str, data: Value) -> Self {
        Self { code: code.into(), data, ..self }
    }

    /// The same, for an unreachable server or a lost connection.
    pub fn absent(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { absent: true, ..Self::new(message, remedy) }
    }

    /// A refusal by the server, with a remedy for the states that users meet most.
    pub fn refused(sqlstate: &str, message: &str) -> Self {
        let remedy = match sqlstate {
            "28P01" => "set PGPASSWORD or PGPASSFILE to the right password",
            "28000" => "look at the server's pg_hba.conf, the user and sslmode",
            "3D000" => "create the database, or name another",
            "53300" => "raise the server's max_connections, or take fewer clients",
            "42P01" | "42703" => "load the workload's tables first",
            "42P07" => "drop the tables that are there first, or let them be replaced",
            "42501" => "grant the rights, or take another user",
            "53100" => "free some space on the server's disk",
            "42P05" | "26000" => {
                "a connection pooler seems to give each transaction another session: use --protocol simple or extended, or \
                 connect to the server directly"
            }
            "55P03" => {
                "pg_locks says which session holds the lock; lock_timeout limits the wait: raise it in the connection string \
                 (options='-c lock_timeout=0'), or with ALTER ROLE or ALTER DATABASE where it is set there"
            }
            "57014" => {
                "if that was statement_timeout, raise it in the connection string (options='-c statement_timeout=0'), or with \
                 ALTER ROLE or ALTER DATABASE where it is set there; else somebody cancelled it"
            }
            _ => "look at the server's log",
        };
        Self::new(format!("the server refused ({sqlstate}): {message}"), remedy)
    }

    /// A statement that the server refused. A session that it ended, or a broken connection (class 08), counts as lost.
    pub fn of(error: &ServerError) -> Self {
        let absent = error.ends_session() || error.sqlstate.starts_with("08");
        Self { absent, server_error: Some(Box::new(error.clone())), ..Self::refused(&error.sqlstate, &error.message) }
    }
}

impl From<host::Fault> for Fault {
    fn from(fault: host::Fault) -> Self {
        Self { code: fault.code, data: fault.data, ..Self::new(fault.message, fault.remedy) }
    }
}
