//! The messages of one session, both ways, blocking. A session that is to stop has its statement cancelled.

use std::fs::File;
use std::io::{self, IoSlice, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::sendfile;

use crate::cancel::CancelKey;
use crate::fault::Fault;
use crate::frame::{Frame, Inbox, values};
use crate::login::log_in;
use crate::login_error::LoginError;
use crate::server::Server;
use crate::server_error::ServerError;
use crate::stream::Stream;
use crate::wire;

/// How often a session that waits looks whether it is to stop.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// A request to cancel that arrives between two statements has no effect, so it is repeated.
const CANCEL_AGAIN: Duration = Duration::from_secs(1);
/// How long a server may take to end what was cancelled: it looks between two rows, or two pages of an index.
const CANCEL_MAX: Duration = Duration::from_secs(30);
/// `query_canceled`.
const CANCELLED: &str = "57014";

/// The result of a query.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct QueryResult {
    /// The command tag: `CREATE TABLE`, `COPY 100`.
    pub tag: String,
    /// The rows, as text; NULL is none.
    pub rows: Vec<Vec<Option<String>>>,
}

impl QueryResult {
    /// How many rows the statement inserted, changed, copied or brought, by its tag; none where that has no number.
    pub fn affected(&self) -> Option<u64> {
        self.tag.rsplit(' ').next()?.parse().ok()
    }
}

/// A session with its buffers.
pub(crate) struct Exchange {
    stream: Stream,
    inbox: Inbox,
    /// What is to be sent.
    pub out: Vec<u8>,
    to: Server,
    cancel_key: CancelKey,
    stop: Arc<AtomicBool>,
    /// When the server was first, and when it was last asked to cancel.
    cancelled: Option<(Instant, Instant)>,
}

impl Exchange {
    /// Connects and logs in. Returns the server's version too.
    pub(crate) fn open(to: &Server, stop: &Arc<AtomicBool>) -> Result<(Self, String), Fault> {
        let session = log_in(to).map_err(|error| error.into_fault(to))?;
        let unusable = |error: io::Error| {
            Fault::new(format!("the socket cannot be made to block: {error}"), "run the command again")
        };
        rustix::io::ioctl_fionbio(&session.stream, false).map_err(|error| unusable(error.into()))?;
        session.stream.set_timeout(Some(POLL_INTERVAL)).map_err(unusable)?;
        session.stream.widen();
        let exchange = Self {
            stream: session.stream,
            inbox: session.inbox,
            out: Vec::new(),
            to: to.clone(),
            cancel_key: session.cancel_key,
            stop: Arc::clone(stop),
            cancelled: None,
        };
        Ok((exchange, session.server_version))
    }

    pub(crate) fn is_remote(&self) -> bool {
        self.stream.is_remote()
    }

    pub(crate) fn stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Sends SQL.
    pub(crate) fn send_query(&mut self, sql: &str) -> Result<(), Fault> {
        wire::query_of(&mut self.out, |out| out.extend_from_slice(sql.as_bytes()));
        self.flush()
    }

    /// Waits until the server wants rows for COPY.
    pub(crate) fn await_copy(&mut self) -> Result<(), Fault> {
        loop {
            let (tag, body) = self.receive()?;
            match tag {
                b'G' => return Ok(()),
                b'E' => {
                    let refusal = refusal(&ServerError::parse(&body), self.stopping());
                    self.end_of_answer()?;
                    return Err(refusal);
                }
                b'Z' => return Err(Fault::new("the server did not ask for rows", "this is a bug in pgdyno")),
                _ => (),
            }
        }
    }

    /// An error that the server already sent against the rows so far: it reports at once, and ignores the rest.
    pub(crate) fn early_refusal(&mut self) -> Result<Option<Fault>, Fault> {
        let mut watched = [PollFd::new(&self.stream, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        if !matches!(poll(&mut watched, Some(&now)), Ok(1..)) {
            return Ok(None);
        }
        match self.inbox.fill(&mut self.stream) {
            Ok(0) => return Err(hung_up()),
            Ok(_) => (),
            Err(error) if would_block(&error) => (),
            Err(error) => return Err(lost(&error)),
        }
        while let Some(Frame { tag, body }) = self.inbox.next_frame().map_err(|error| lost(&error))? {
            if tag == b'E' {
                return Ok(Some(refusal(&ServerError::parse(body), self.stop.load(Ordering::Relaxed))));
            }
        }
        Ok(None)
    }

    /// Reads to the end of the answer.
    pub(crate) fn end_of_answer(&mut self) -> Result<QueryResult, Fault> {
        let mut result = QueryResult::default();
        let mut failure = None;
        loop {
            let (tag, body) = match self.receive() {
                Ok(message) => message,
                // A server that ends a session says why before it closes the connection.
                Err(error) => return Err(failure.unwrap_or(error)),
            };
            match tag {
                b'Z' => return failure.map_or(Ok(result), Err),
                b'E' => {
                    failure.get_or_insert(refusal(&ServerError::parse(&body), self.stopping()));
                }
                b'C' => result.tag = text(body.strip_suffix(&[0]).unwrap_or(&body)),
                b'D' => result.rows.push(values(&body).map(|value| value.map(text)).collect()),
                _ => (),
            }
        }
    }

    fn receive(&mut self) -> Result<(u8, Vec<u8>), Fault> {
        loop {
            if let Some(frame) = self.inbox.next_frame().map_err(|error| lost(&error))? {
                return Ok((frame.tag, frame.body.to_vec()));
            }
            match self.inbox.fill(&mut self.stream) {
                Ok(0) => return Err(hung_up()),
                Ok(_) => (),
                Err(error) if would_block(&error) => self.poll_cancel()?,
                Err(error) => return Err(lost(&error)),
            }
        }
    }

    /// Sends what is in the buffer.
    pub(crate) fn flush(&mut self) -> Result<(), Fault> {
        self.flush_with(&[])
    }

    /// Sends what is in the buffer, and `more` behind it without copying it.
    pub(crate) fn flush_with(&mut self, more: &[u8]) -> Result<(), Fault> {
        let (mut sent, all) = (0, self.out.len() + more.len());
        while sent < all {
            let (first, second) = match self.out.get(sent..) {
                Some(rest) => (rest, more),
                None => (&more[sent - self.out.len()..], &[][..]),
            };
            match self.stream.write_vectored(&[IoSlice::new(first), IoSlice::new(second)]) {
                Ok(0) => return Err(hung_up()),
                Ok(written) => sent += written,
                Err(error) if would_block(&error) => self.poll_cancel()?,
                Err(error) if error.kind() == io::ErrorKind::TimedOut => return Err(lost(&error)),
                Err(error) => {
                    self.out.clear();
                    // The server closed the connection; what it sent before is still to be read.
                    return Err(self.end_of_answer().err().unwrap_or_else(|| lost(&error)));
                }
            }
        }
        self.out.clear();
        while !self.stream.drained().map_err(|error| lost(&error))? {
            self.poll_cancel()?;
        }
        Ok(())
    }

    /// Sends what is in the buffer and then `length` bytes of a file by the kernel's own copy. Returns how many bytes of
    /// the file were sent: fewer where the kernel cannot, and then the buffer may be unsent.
    pub(crate) fn flush_with_file(&mut self, file: &File, at: u64, length: usize) -> Result<usize, Fault> {
        if self.stream.has_buffered_plaintext() {
            return Ok(0);
        }
        self.flush()?;
        let (mut next, end) = (at, at + length as u64);
        while next < end {
            let left = usize::try_from(end - next).unwrap_or(usize::MAX);
            match sendfile(&self.stream, file, Some(&mut next), left).map_err(io::Error::from) {
                // The file is shorter than it was.
                Ok(0) => break,
                Ok(_) => (),
                Err(error) if would_block(&error) => self.poll_cancel()?,
                Err(error) if error.kind() == io::ErrorKind::TimedOut => return Err(lost(&error)),
                // The file system has no pages to give, or the server is gone: sending the rest by hand shows which.
                Err(_) => break,
            }
        }
        Ok(usize::try_from(next - at).unwrap_or(length))
    }

    /// Ends the session; whether the server hears it does not matter.
    pub(crate) fn terminate(&mut self) {
        self.out.clear();
        wire::terminate(&mut self.out);
        let _ = self.stream.write(&self.out);
    }

    /// If the session is to stop: has the server cancel its statement, again each second, and gives up in the end.
    fn poll_cancel(&mut self) -> Result<(), Fault> {
        if !self.stopping() {
            return Ok(());
        }
        let now = Instant::now();
        let (first, last) = match self.cancelled {
            None => (now, None),
            Some((first, last)) => (first, Some(last)),
        };
        if now.duration_since(first) > CANCEL_MAX {
            return Err(Fault::new(
                format!("the server did not end the cancelled statement within {} s", CANCEL_MAX.as_secs()),
                "look at pg_stat_activity for what it does",
            ));
        }
        if last.is_none_or(|last| now.duration_since(last) > CANCEL_AGAIN) {
            self.cancelled = Some((first, now));
            match self.cancel_key.cancel(&self.to) {
                // Worth another try, and at the end the fault above.
                Ok(()) | Err(LoginError::Absent(_) | LoginError::Overdue(_)) => (),
                Err(LoginError::Refused(fault)) => return Err(fault),
            }
        }
        Ok(())
    }
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).into_owned()
}

fn refusal(error: &ServerError, stopping: bool) -> Fault {
    if stopping && error.sqlstate == CANCELLED {
        return Fault::new("interrupted", "run the command again");
    }
    Fault::of(error)
}

/// Whether the socket has nothing to give, or cannot take more, for the moment. `TimedOut` is another thing: TCP gave up on the peer.
fn would_block(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

fn hung_up() -> Fault {
    Fault::absent(
        "the server closed the connection",
        "look at the server's log: it may have been stopped, or have run out of memory",
    )
}

fn lost(error: &io::Error) -> Fault {
    if error.kind() == io::ErrorKind::TimedOut {
        return Fault::absent(
            "the server has vanished: it no longer acknowledges anything",
            "check that its machine runs and can be reached; keepalives_idle and tcp_user_timeout set when to give up",
        );
    }
    Fault::absent(format!("the connection to the server was lost: {error}"), "look at the server's log")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cancelled_statement_is_an_interruption_only_if_one_was_asked_for() {
        let error = ServerError {
            sqlstate: CANCELLED.to_owned(),
            message: "canceling statement".to_owned(),
            ..ServerError::default()
        };
        assert_eq!(refusal(&error, true).message, "interrupted");
        assert!(refusal(&error, false).message.contains("57014"));
    }
}
