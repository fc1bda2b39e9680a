//! The messages of one session, both ways, blocking. A session that is to stop has its statement cancelled.

use std::fs::File;
use std::io::{self, IoSlice, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::sendfile;
use serde_json::json;

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
                // What statements before the COPY bring.
                b'T' | b'D' | b'C' | b'I' => (),
                tag if is_aside(tag) => (),
                tag => return Err(unexpected(tag)),
            }
        }
    }

    /// An error that the server already sent against the rows so far: it reports at once, and ignores the rest.
    pub(crate) fn early_refusal(&mut self) -> Result<Option<Fault>, Fault> {
        let mut watched = [PollFd::new(&self.stream, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        if matches!(poll(&mut watched, Some(&now)), Ok(1..)) {
            match self.inbox.fill(&mut self.stream) {
                Ok(0) => return Err(hung_up()),
                Ok(_) => (),
                Err(error) if would_block(&error) => (),
                Err(error) => return Err(lost(&error)),
            }
        }
        while let Some(Frame { tag, body }) = self.inbox.next_frame().map_err(|error| lost(&error))? {
            match tag {
                b'E' => return Ok(Some(refusal(&ServerError::parse(body), self.stop.load(Ordering::Relaxed)))),
                tag if is_aside(tag) => (),
                // A server that says it is done takes no more rows, and would be waited for in vain.
                tag => return Err(unexpected(tag)),
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
                b'D' => {
                    let values = values(&body).map_err(|error| lost(&error))?;
                    result.rows.push(values.map(|value| value.map(text)).collect());
                }
                b'T' | b'I' => (),
                tag if is_aside(tag) => (),
                // COPY among them: a server that waits for rows would be waited for in vain.
                tag => return Err(unexpected(tag)),
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

/// Notices, settings and notifications may come at any time.
fn is_aside(tag: u8) -> bool {
    matches!(tag, b'N' | b'S' | b'A')
}

fn unexpected(tag: u8) -> Fault {
    let tag = tag.escape_ascii().to_string();
    Fault::absent(
        format!("the server sent the message `{tag}`, which does not belong there"),
        "check that a PostgreSQL server listens at that address, and what is between",
    )
    .coded("connection.message.unexpected", json!({"message": tag}))
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
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};
    use std::thread::JoinHandle;

    use super::*;

    /// Lets a client in, and answers one message of it after another. Returns once it hangs up.
    fn answering(answers: &'static [&'static [u8]]) -> (Server, JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = json!({
            "host": "localhost", "address": "127.0.0.1", "port": listener.local_addr().unwrap().port(), "user": "u",
            "dbname": "d", "application_name": "a", "connect_timeout_s": 10,
            "keepalive": {"enabled": false, "idle_s": 0, "interval_s": 0, "count": 0, "user_timeout_ms": 0},
        });
        let serve = move || {
            let (mut socket, _) = listener.accept().unwrap();
            skip_message(&mut socket, 0);
            socket.write_all(b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I").unwrap();
            for answer in answers {
                skip_message(&mut socket, 1);
                socket.write_all(answer).unwrap();
            }
            // The client may hang up with bytes unread.
            let _ = socket.read_to_end(&mut Vec::new());
        };
        (serde_json::from_value(server).unwrap(), std::thread::spawn(serve))
    }

    fn skip_message(socket: &mut TcpStream, tag_bytes: usize) {
        let mut head = vec![0; tag_bytes + 4];
        socket.read_exact(&mut head).unwrap();
        let length = u32::from_be_bytes(head[tag_bytes..].try_into().unwrap());
        socket.read_exact(&mut vec![0; length as usize - 4]).unwrap();
    }

    fn with(answers: &'static [&'static [u8]], act: impl FnOnce(&mut Exchange)) {
        let (server, thread) = answering(answers);
        let (mut exchange, _) = Exchange::open(&server, &Arc::default()).unwrap();
        act(&mut exchange);
        drop(exchange);
        thread.join().unwrap();
    }

    const COPY_IN: &[u8] = b"G\0\0\0\x07\0\0\0";
    const COPY_IN_AND_READY: &[u8] = b"G\0\0\0\x07\0\0\0Z\0\0\0\x05I";
    const ONE_ROW: &[u8] = b"N\0\0\0\x04T\0\0\0\x06\0\0D\0\0\0\x0b\0\x01\0\0\0\x017C\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I";

    #[test]
    fn an_answer_is_read_to_its_end_with_what_is_beside_it() {
        with(&[ONE_ROW], |exchange| {
            exchange.send_query("SELECT 7").unwrap();
            let result = exchange.end_of_answer().unwrap();
            assert_eq!((result.tag.as_str(), result.rows), ("SELECT 1", vec![vec![Some("7".to_owned())]]));
        });
    }

    #[test]
    fn a_message_that_does_not_belong_into_an_answer_ends_it() {
        for answer in [
            &[COPY_IN][..],
            &[b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I"],
            &[b"H\0\0\0\x07\0\0\0"],
            &[b"K\0\0\0\x0c\0\0\0\0\0\0\0\0"],
        ] {
            with(answer, |exchange| {
                exchange.send_query("SELECT 1").unwrap();
                assert_eq!(exchange.end_of_answer().unwrap_err().code, "connection.message.unexpected");
            });
        }
    }

    #[test]
    fn a_row_whose_lengths_do_not_add_up_ends_the_session() {
        with(&[b"D\0\0\0\x0a\xff\xff\0\0\0\x09"], |exchange| {
            exchange.send_query("SELECT 1").unwrap();
            assert!(exchange.end_of_answer().unwrap_err().absent);
        });
    }

    #[test]
    fn a_server_that_is_done_before_it_has_the_rows_is_not_waited_for() {
        with(&[COPY_IN_AND_READY], |exchange| {
            exchange.send_query("COPY t FROM STDIN").unwrap();
            exchange.await_copy().unwrap();
            assert_eq!(exchange.early_refusal().unwrap_err().code, "connection.message.unexpected");
        });
        with(&[b"H\0\0\0\x07\0\0\0"], |exchange| {
            exchange.send_query("COPY t FROM STDIN").unwrap();
            assert_eq!(exchange.await_copy().unwrap_err().code, "connection.message.unexpected");
        });
    }

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
