//! A session that waits for its answers: for what is done before and after a run, such as loading.
//!
//! It can be told to stop: what is under way on the server is then cancelled.

use std::collections::BTreeMap;
use std::io::{self, IoSlice, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::conninfo::ConnInfo;
use crate::error::DriveError;
use crate::frame::{Frame, Inbox, Said};
use crate::login::log_in;
use crate::stream::Stream;
use crate::wire;

mod copy_in;

pub use copy_in::CopyIn;

/// How soon a session that waits sees the order to stop.
const LOOK: Duration = Duration::from_millis(200);
/// How long a server may take to end what was cancelled: it is heard between two rows, or two pages of an index.
const CANCEL_MAX: Duration = Duration::from_secs(30);
/// The state of a statement that was cancelled.
const CANCELLED: &str = "57014";

/// What a statement came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// The server's word for what was done: `CREATE TABLE`, `COPY 100`.
    pub tag: String,
    /// The rows, as text; NULL is none.
    pub rows: Vec<Vec<Option<String>>>,
}

/// One session.
pub struct Talk {
    stream: Stream,
    inbox: Inbox,
    out: Vec<u8>,
    to: ConnInfo,
    server_version: String,
    backend: String,
    stop: Arc<AtomicBool>,
    cancelled: Option<Instant>,
}

impl Talk {
    /// Connects and logs in. What `server` leaves open comes from libpq's places. Once `stop` is true, whatever waits
    /// here ends with an error.
    pub fn open(server: &BTreeMap<String, String>, stop: &Arc<AtomicBool>) -> Result<Self, DriveError> {
        let environment = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        Self::connect(&ConnInfo::resolve(server, environment)?, stop)
    }

    fn connect(to: &ConnInfo, stop: &Arc<AtomicBool>) -> Result<Self, DriveError> {
        let session = log_in(to).map_err(|error| error.into_error(to))?;
        let unusable = |error: io::Error| DriveError::new(format!("the socket cannot wait: {error}"), "try again");
        rustix::io::ioctl_fionbio(&session.stream, false).map_err(|error| unusable(error.into()))?;
        session.stream.set_timeout(Some(LOOK)).map_err(unusable)?;
        let mut talk = Self {
            stream: session.stream,
            inbox: session.inbox,
            out: Vec::new(),
            to: to.clone(),
            server_version: session.server_version,
            backend: String::new(),
            stop: Arc::clone(stop),
            cancelled: None,
        };
        talk.stream.widen();
        let patience = if talk.stream.is_remote() { to.patience.sql() } else { String::new() };
        let told = talk.query(&format!("{patience}SELECT pg_backend_pid()"))?;
        talk.backend = told.rows.into_iter().flatten().flatten().next().unwrap_or_default();
        Ok(talk)
    }

    /// As the server writes it: `18.1`.
    pub fn server_version(&self) -> &str {
        &self.server_version
    }

    /// Sends SQL and waits for the end of it.
    pub fn query(&mut self, sql: &str) -> Result<Told, DriveError> {
        wire::query_of(&mut self.out, |out| out.extend_from_slice(sql.as_bytes()));
        self.flush()?;
        self.end_of_answer()
    }

    /// Sends `COPY ... FROM STDIN`, and then what `more` appends until it says false. Returns how many rows the server
    /// took.
    pub fn copy_in(&mut self, sql: &str, mut more: impl FnMut(&mut Vec<u8>) -> bool) -> Result<u64, DriveError> {
        let mut copying = self.begin_copy_in(sql)?;
        let mut rows = Vec::new();
        loop {
            rows.clear();
            let going = more(&mut rows);
            if !copying.send(&rows)? || !going {
                return copying.end();
            }
        }
    }

    /// Sends `COPY ... FROM STDIN`, behind other statements or not. Rows follow by what is returned, which must be ended.
    pub fn begin_copy_in(&mut self, sql: &str) -> Result<CopyIn<'_>, DriveError> {
        wire::query_of(&mut self.out, |out| out.extend_from_slice(sql.as_bytes()));
        self.flush()?;
        self.begin_copy()?;
        Ok(CopyIn::new(self))
    }

    fn stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn begin_copy(&mut self) -> Result<(), DriveError> {
        loop {
            let (tag, body) = self.receive()?;
            match tag {
                b'G' => return Ok(()),
                b'E' => {
                    let refusal = refusal(&Said::of(&body), self.stopping());
                    self.end_of_answer()?;
                    return Err(refusal);
                }
                b'Z' => return Err(DriveError::new("the server did not ask for rows", "this is a bug in pgdyno")),
                _ => (),
            }
        }
    }

    /// What the server said against the rows so far; it says so at once, and then takes no more of them in.
    fn refused_meanwhile(&mut self) -> Result<Option<DriveError>, DriveError> {
        let mut watched = [PollFd::new(&self.stream, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        if !matches!(poll(&mut watched, Some(&now)), Ok(1..)) {
            return Ok(None);
        }
        match self.inbox.fill(&mut self.stream) {
            Ok(0) => return Err(hung_up()),
            Ok(_) => (),
            Err(error) if waits(&error) => (),
            Err(error) => return Err(lost(&error)),
        }
        while let Some(Frame { tag, body }) = self.inbox.next().map_err(|error| lost(&error))? {
            if tag == b'E' {
                return Ok(Some(refusal(&Said::of(body), self.stop.load(Ordering::Relaxed))));
            }
        }
        Ok(None)
    }

    fn end_of_answer(&mut self) -> Result<Told, DriveError> {
        let mut told = Told::default();
        let mut failure = None;
        loop {
            let (tag, body) = match self.receive() {
                Ok(message) => message,
                // A server that ends a session says why before it hangs up.
                Err(error) => return Err(failure.unwrap_or(error)),
            };
            match tag {
                b'Z' => return failure.map_or(Ok(told), Err),
                b'E' => {
                    failure.get_or_insert(refusal(&Said::of(&body), self.stopping()));
                }
                b'C' => told.tag = String::from_utf8_lossy(body.strip_suffix(&[0]).unwrap_or(&body)).into_owned(),
                b'D' => told.rows.push(row(&body)),
                _ => (),
            }
        }
    }

    fn receive(&mut self) -> Result<(u8, Vec<u8>), DriveError> {
        loop {
            if let Some(frame) = self.inbox.next().map_err(|error| lost(&error))? {
                return Ok((frame.tag, frame.body.to_vec()));
            }
            match self.inbox.fill(&mut self.stream) {
                Ok(0) => return Err(hung_up()),
                Ok(_) => (),
                Err(error) if waits(&error) => self.heed()?,
                Err(error) => return Err(lost(&error)),
            }
        }
    }

    fn flush(&mut self) -> Result<(), DriveError> {
        self.flush_with(&[])
    }

    /// Sends what is in the buffer, and `more` behind it from where it lies.
    fn flush_with(&mut self, more: &[u8]) -> Result<(), DriveError> {
        let (mut sent, all) = (0, self.out.len() + more.len());
        while sent < all {
            let (first, second) = match self.out.get(sent..) {
                Some(rest) => (rest, more),
                None => (&more[sent - self.out.len()..], &[][..]),
            };
            match self.stream.write_vectored(&[IoSlice::new(first), IoSlice::new(second)]) {
                Ok(0) => return Err(hung_up()),
                Ok(written) => sent += written,
                Err(error) if waits(&error) => self.heed()?,
                Err(error) if error.kind() == io::ErrorKind::TimedOut => return Err(lost(&error)),
                Err(error) => {
                    self.out.clear();
                    // The server has gone; what it said before is still to be read.
                    return Err(self.end_of_answer().err().unwrap_or_else(|| lost(&error)));
                }
            }
        }
        self.out.clear();
        while !self.stream.drained().map_err(|error| lost(&error))? {
            self.heed()?;
        }
        Ok(())
    }

    /// Cancels what the server does for this session, once, if it is to stop.
    fn heed(&mut self) -> Result<(), DriveError> {
        if !self.stopping() {
            return Ok(());
        }
        let Some(since) = self.cancelled else {
            self.cancelled = Some(Instant::now());
            if !self.backend.is_empty() {
                let mut other = Self::connect(&self.to, &Arc::new(AtomicBool::new(false)))?;
                other.query(&format!("SELECT pg_cancel_backend({})", self.backend))?;
            }
            return Ok(());
        };
        if since.elapsed() > CANCEL_MAX {
            return Err(DriveError::new(
                format!("the server did not end what was cancelled within {} s", CANCEL_MAX.as_secs()),
                "look at pg_stat_activity for what it does",
            ));
        }
        Ok(())
    }
}

impl Drop for Talk {
    /// Says good-bye; whether it is heard does not matter.
    fn drop(&mut self) {
        self.out.clear();
        wire::terminate(&mut self.out);
        let _ = self.stream.write(&self.out);
    }
}

fn row(body: &[u8]) -> Vec<Option<String>> {
    let mut fields = Vec::new();
    let mut rest = body.get(2..).unwrap_or_default();
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let length = i32::from_be_bytes(*length);
        let (value, next) = after.split_at(usize::try_from(length).unwrap_or(0).min(after.len()));
        fields.push((length >= 0).then(|| String::from_utf8_lossy(value).into_owned()));
        rest = next;
    }
    fields
}

fn refusal(said: &Said, stopping: bool) -> DriveError {
    if stopping && said.sqlstate == CANCELLED {
        return DriveError::new("told to stop", "begin again");
    }
    DriveError::of(said)
}

/// Whether the socket only has nothing to give, or to take, for the moment. `TimedOut` is another thing: TCP has given up on the
/// peer.
fn waits(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

fn hung_up() -> DriveError {
    DriveError::absent("the server hung up", "look at the server's log: it may have been stopped, or run out of memory")
}

fn lost(error: &io::Error) -> DriveError {
    if error.kind() == io::ErrorKind::TimedOut {
        return DriveError::absent(
            "the server has vanished: it acknowledges nothing any more",
            "look whether its machine runs and can be reached; keepalives_idle and tcp_user_timeout say when to give up",
        );
    }
    DriveError::absent(format!("the connection to the server was lost: {error}"), "look at the server's log")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_texts_and_nulls() {
        let body = b"\0\x03\0\0\0\x0242\xff\xff\xff\xff\0\0\0\0";
        assert_eq!(row(body), [Some("42".to_owned()), None, Some(String::new())]);
    }

    #[test]
    fn a_cancelled_statement_is_an_order_to_stop_only_where_there_was_one() {
        let said =
            Said { sqlstate: CANCELLED.to_owned(), message: "canceling statement".to_owned(), ..Said::default() };
        assert_eq!(refusal(&said, true).message, "told to stop");
        assert!(refusal(&said, false).message.contains("57014"));
    }
}
