//! From nothing to a session that is ready for queries, within one deadline. It blocks, and so happens before a run, or on a thread
//! of its own during one.
//!
//! ```text
//! TCP or a socket -> TLS -> startup message -> authentication -> parameters -> ready
//! ```

use std::io::Write;

use crate::authenticate::authenticate;
use crate::cancel::CancelKey;
use crate::connect::open;
use crate::frame::Inbox;
use crate::login_error::LoginError;
use crate::server::Server;
use crate::stream::Stream;
use crate::talk::Talk;
use crate::wire;

/// A session that waits for its first query.
pub struct Session {
    /// The socket; reads and writes return at once.
    pub stream: Stream,
    /// What was read and not yet looked at.
    pub inbox: Inbox,
    /// As the server writes it: `18.1`.
    pub server_version: String,
    /// With which its statements can be cancelled.
    pub cancel_key: CancelKey,
}

impl Session {
    /// Ends the session; whether the server hears it does not matter.
    pub(crate) fn hang_up(&mut self) {
        let mut out = Vec::new();
        wire::terminate(&mut out);
        let _ = self.stream.write_all(&out).and_then(|()| self.stream.flush());
    }
}

/// Connects and logs in.
pub fn log_in(to: &Server) -> Result<Session, LoginError> {
    let (stream, deadline) = open(to, to.login_limit())?;
    let mut talk = Talk::new(stream, deadline);
    let mut out = Vec::new();
    let mut settings = vec![
        ("user", to.user.as_str()),
        ("database", to.dbname.as_str()),
        ("application_name", to.application_name.as_str()),
        ("client_encoding", "UTF8"),
    ];
    settings.extend(to.startup.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    wire::startup(&mut out, &settings);
    talk.send(&out)?;
    authenticate(&mut talk, to)?;
    let (server_version, cancel_key) = talk.receive_parameters()?;
    let (stream, inbox) = talk.end();
    stream.set_nonblocking()?;
    Ok(Session { stream, inbox, server_version, cancel_key })
}
