//! Why there is no session.

use std::io;
use std::time::Duration;

use pgdyno_host as host;
use rustix::io::Errno;
use serde_json::json;

use crate::deadline::Overdue;
use crate::fault::Fault;
use crate::server::Server;

/// Why there is no session.
pub enum LoginError {
    /// The server cannot be reached, or not yet: worth another try.
    Absent(String),
    /// The server did not complete the log-in in this time; perhaps it will later.
    Overdue(Duration),
    /// The server refused, or what was asked cannot be done.
    Refused(Fault),
}

impl From<io::Error> for LoginError {
    /// What this machine does not give (descriptors, memory) is no fault of the server's.
    fn from(error: io::Error) -> Self {
        if let Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS) = Errno::from_io_error(&error) {
            return Self::Refused(host::Fault::of_kernel("no connection can be opened", &error).into());
        }
        Overdue::limit(&error).map_or_else(|| Self::Absent(error.to_string()), Self::Overdue)
    }
}

impl From<Fault> for LoginError {
    fn from(error: Fault) -> Self {
        Self::Refused(error)
    }
}

impl LoginError {
    /// As an error for the user.
    pub fn into_fault(self, to: &Server) -> Fault {
        let (host, port) = (&to.host, to.port);
        match self {
            Self::Refused(error) => error,
            Self::Absent(why) => Fault::absent(
                format!("no connection to the server at {host} port {port}: {why}"),
                "check that the server runs, and the host and port of the connection string (or PGHOST and PGPORT)",
            )
            .coded("connection.absent", json!({"host": host, "port": port})),
            Self::Overdue(limit) => Fault::absent(
                format!("the server at {host} port {port} did not complete the log-in within {} s", limit.as_secs()),
                "look at the server's log, and at what is between; connect_timeout limits the whole log-in",
            )
            .coded("connection.login.deadline", json!({"host": host, "port": port, "limit_s": limit.as_secs()})),
        }
    }
}
