//! Whether a session can be opened at all, asked before anything is changed.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::fault::Fault;
use crate::login::log_in;
use crate::server::Server;

/// An attempt to connect.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attempt {
    /// Where the server is.
    pub server: Server,
}

/// Connects, logs in and hangs up: `{"server_version": "18.1", "tls": "TLSv1_3"}`, the latter null in clear.
///
/// # Errors
/// That of every other session with the same specification.
pub fn check(attempt: &Attempt) -> Result<Value, Fault> {
    let to = &attempt.server;
    let mut session = log_in(to).map_err(|error| error.into_fault(to))?;
    let answer = json!({"server_version": session.server_version, "tls": session.stream.tls_version()});
    session.hang_up();
    Ok(answer)
}
