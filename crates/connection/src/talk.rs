//! The messages of a log-in, both ways. Of the server's only those are taken that belong to where the log-in stands.

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::cancel::CancelKey;
use crate::deadline::Deadline;
use crate::fault::Fault;
use crate::frame::Inbox;
use crate::login_error::LoginError;
use crate::server_error::ServerError;
use crate::stream::Stream;

/// The longest request for authentication (libpq's limit), counted as the protocol does, with its length.
const REQUEST_BYTES_MAX: usize = 2_000;
/// The longest message of any other kind during a log-in (libpq's limit for errors).
const MESSAGE_BYTES_MAX: usize = 30_000;
/// The longest notice behind the authentication: triggers at log-in may say what they like.
const NOTICE_BYTES_MAX: usize = 1 << 20;

/// Messages to and from the server, each by the deadline of the log-in.
pub(crate) struct Talk {
    stream: Stream,
    inbox: Inbox,
    deadline: Deadline,
}

impl Talk {
    /// With a server that has said nothing yet.
    pub(crate) fn new(stream: Stream, deadline: Deadline) -> Self {
        Self { stream, inbox: Inbox::default(), deadline }
    }

    /// The socket, and what was read of it and not looked at.
    pub(crate) fn end(self) -> (Stream, Inbox) {
        (self.stream, self.inbox)
    }

    /// The socket, for what TLS knows of the server.
    pub(crate) fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Sends messages.
    pub(crate) fn send(&mut self, out: &[u8]) -> io::Result<()> {
        let mut stream = self.stream.timed(self.deadline);
        stream.write_all(out)?;
        stream.flush()
    }

    /// The body of the next request for authentication: nothing else may come before its end, but an error.
    pub(crate) fn receive_request(&mut self) -> Result<Vec<u8>, LoginError> {
        let (_, body) = self.receive(|tag| match tag {
            b'R' => Some(REQUEST_BYTES_MAX),
            b'E' => Some(MESSAGE_BYTES_MAX),
            // Version 3.0 of the protocol is asked for, without options: there is nothing to negotiate down from (b'v').
            _ => None,
        })?;
        Ok(body)
    }

    /// What a server says of a session, until it is ready: its version, and with what its statements can be cancelled.
    pub(crate) fn receive_parameters(&mut self) -> Result<(String, CancelKey), LoginError> {
        let (mut version, mut cancel_key) = (String::new(), CancelKey::default());
        loop {
            let (tag, body) = self.receive(|tag| match tag {
                b'S' | b'K' | b'Z' => Some(MESSAGE_BYTES_MAX),
                b'E' | b'N' | b'A' => Some(NOTICE_BYTES_MAX),
                _ => None,
            })?;
            match (tag, body.as_slice()) {
                (b'S', body) => {
                    let mut words = body.split(|&byte| byte == 0).map(String::from_utf8_lossy);
                    if words.next().as_deref() == Some("server_version") {
                        version = words.next().unwrap_or_default().into_owned();
                    }
                }
                (b'K', body) => cancel_key = CancelKey::parse(body).ok_or_else(|| malformed(b'K'))?,
                (b'Z', [_]) => return Ok((version, cancel_key)),
                (b'Z', _) => return Err(malformed(b'Z')),
                _ => (),
            }
        }
    }

    /// The next message; an error of the server becomes ours. `longest` says how long one of a type may be, and none where that
    /// type makes no sense now: both are known from the first five bytes.
    fn receive(&mut self, longest: impl Fn(u8) -> Option<usize>) -> Result<(u8, Vec<u8>), LoginError> {
        loop {
            if let Some((tag, length)) = self.inbox.head() {
                let most = longest(tag).ok_or_else(|| unexpected(tag))?;
                if !(4..=most).contains(&length) {
                    return Err(wrong_length(tag, length, most));
                }
            }
            if let Some(frame) = self.inbox.next_frame()? {
                if frame.tag == b'E' {
                    return Err(refusal(&ServerError::parse(frame.body)));
                }
                return Ok((frame.tag, frame.body.to_vec()));
            }
            if self.inbox.fill(&mut self.stream.timed(self.deadline))? == 0 {
                return Err(LoginError::Absent("the server closed the connection".to_owned()));
            }
        }
    }
}

/// A message that is not as the protocol has it.
pub(crate) fn malformed(tag: u8) -> LoginError {
    no_postgres("connection.login.malformed", "cannot be read", tag, json!({"message": name(tag)}))
}

fn unexpected(tag: u8) -> LoginError {
    no_postgres("connection.login.message", "does not belong into a log-in", tag, json!({"message": name(tag)}))
}

fn wrong_length(tag: u8, length: usize, most: usize) -> LoginError {
    let data = json!({"message": name(tag), "bytes": length, "bytes_max": most});
    no_postgres("connection.login.length", "has a length that no log-in has", tag, data)
}

fn no_postgres(code: &'static str, what: &str, tag: u8, data: Value) -> LoginError {
    let fault = Fault::new(
        format!("the server's message `{}` {what}", name(tag)),
        "check that a PostgreSQL server listens at that address",
    );
    LoginError::Refused(fault.coded(code, data))
}

fn name(tag: u8) -> String {
    tag.escape_ascii().to_string()
}

/// A server that is starting up or shutting down counts as absent.
fn refusal(error: &ServerError) -> LoginError {
    if error.ends_session() {
        return LoginError::Absent(error.message.clone());
    }
    LoginError::Refused(Fault::of(error).coded("connection.login.refused", json!({"sqlstate": error.sqlstate})))
}
