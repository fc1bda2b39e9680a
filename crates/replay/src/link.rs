//! One session with a server: a statement goes out, and its answer is waited for.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pgdyno_capture::{Call, CaptureFile, Ending, Protocol};
use pgdyno_connection::{CancelKey, Frame, Inbox, LoginError, Server, ServerError, Session, Stream, log_in, wire};

use crate::keys::Rows;

/// How often a session that waits for an answer looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(200);

/// How a COPY ends that the client gives up (`query_canceled`).
const GIVEN_UP: Ending = Ending::Failed(*b"57014");

/// Text of a statement -> types of its parameters; those of others are the server's to find.
pub(crate) type Types = HashMap<String, Vec<u32>>;

/// What came of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Done,
    Failed([u8; 5]),
    /// The session is gone, or was given up.
    Lost,
}

/// See the module.
pub(crate) struct Link {
    /// With which its statements can be cancelled.
    pub cancel_key: CancelKey,
    stream: Stream,
    inbox: Inbox,
    out: Vec<u8>,
    /// Prepared statements that the server has, with their texts.
    prepared: HashMap<String, String>,
    types: Arc<Types>,
    /// Where rows of COPY are read.
    copied: Option<Arc<Mutex<CaptureFile>>>,
    /// Rows for the COPY that is sent next.
    pub made: Option<Vec<u8>>,
}

impl Link {
    /// Connects and logs in.
    pub(crate) fn open(to: &Server) -> Result<Self, LoginError> {
        let Session { stream, inbox, cancel_key, .. } = log_in(to)?;
        let unusable = |error: io::Error| LoginError::Absent(format!("its socket cannot be used: {error}"));
        rustix::io::ioctl_fionbio(&stream, false).map_err(|error| unusable(error.into()))?;
        stream.set_timeout(Some(LOOK)).map_err(unusable)?;
        let (prepared, types) = (HashMap::new(), Arc::default());
        let out = Vec::with_capacity(4096);
        Ok(Self { cancel_key, stream, inbox, out, prepared, types, copied: None, made: None })
    }

    /// Prepares statements with these types of their parameters.
    pub(crate) fn typed(mut self, types: &Arc<Types>) -> Self {
        self.types = Arc::clone(types);
        self
    }

    /// Sends rows of COPY that are in this capture.
    pub(crate) fn copying(mut self, copied: Option<&Arc<Mutex<CaptureFile>>>) -> Self {
        self.copied = copied.cloned();
        self
    }

    /// Prepares a text without a name, and does not execute it.
    pub(crate) fn prepare(&mut self, text: &str, types: &[u32], stops: &impl Fn() -> bool) -> Answer {
        wire::parse_typed(&mut self.out, "", text, types);
        wire::sync(&mut self.out);
        self.exchange((Protocol::Unnamed, None), None, stops).unwrap_or(Answer::Lost)
    }

    /// Sends a statement as it was sent, and waits for the end of its answer, or until `stops`. `rows` receives the answer.
    pub(crate) fn call(&mut self, call: &Call, rows: Option<&mut Rows>, stops: &impl Fn() -> bool) -> Answer {
        let parses = self.put(call);
        let copied = (call.protocol, call.rows.as_deref().map(|parts| (parts, call.ending == GIVEN_UP)));
        let Ok(answer) = self.exchange(copied, rows, stops) else { return Answer::Lost };
        self.note(call, parses, answer);
        answer
    }

    /// Sends a text that is no statement of the capture.
    pub(crate) fn text(&mut self, text: &str, stops: &impl Fn() -> bool) -> Answer {
        wire::query_of(&mut self.out, |out| out.extend_from_slice(text.as_bytes()));
        self.exchange((Protocol::Text, None), None, stops).unwrap_or(Answer::Lost)
    }

    /// Puts the messages of a statement into the buffer. Whether it is prepared under its name by them.
    fn put(&mut self, call: &Call) -> bool {
        if call.protocol == Protocol::Text {
            wire::query_of(&mut self.out, |out| out.extend_from_slice(call.text.as_bytes()));
            return false;
        }
        let known = call.protocol == Protocol::Named && self.prepared.get(&call.name) == Some(&call.text);
        if !known {
            if self.prepared.remove(&call.name).is_some() {
                wire::close(&mut self.out, &call.name);
            }
            let types = self.types.get(&call.text).map_or(&[][..], Vec::as_slice);
            wire::parse_typed(&mut self.out, &call.name, &call.text, types);
        }
        let values = call.values.iter().map(|value| value.as_deref().map(str::as_bytes));
        wire::execute(&mut self.out, &call.name, values);
        wire::sync(&mut self.out);
        call.protocol == Protocol::Named && !known
    }

    /// Notes what the server has prepared now.
    fn note(&mut self, call: &Call, parses: bool, answer: Answer) {
        if parses && answer == Answer::Done {
            self.prepared.insert(call.name.clone(), call.text.clone());
        }
        if call.protocol != Protocol::Text || answer != Answer::Done {
            return;
        }
        let words: Vec<&str> = call.text.split_ascii_whitespace().collect();
        let is = |place: usize, wanted: &str| {
            words.get(place).is_some_and(|word| word.trim_end_matches(';').eq_ignore_ascii_case(wanted))
        };
        if (is(0, "DEALLOCATE") || is(0, "DISCARD")) && (is(1, "ALL") || is(2, "ALL")) {
            self.prepared.clear();
        } else if is(0, "DEALLOCATE") {
            let name = words.last().map_or("", |word| word.trim_end_matches(';').trim_matches('"'));
            self.prepared.remove(name);
        }
    }

    fn exchange(
        &mut self,
        (protocol, copied): (Protocol, Option<(&[u64], bool)>),
        mut rows: Option<&mut Rows>,
        stops: &impl Fn() -> bool,
    ) -> io::Result<Answer> {
        self.flush(stops)?;
        let mut answer = Answer::Done;
        loop {
            while let Some(Frame { tag, body }) = self.inbox.next_frame()? {
                match (tag, &mut rows) {
                    (b'T', Some(rows)) => rows.describe(body),
                    (b'D', Some(rows)) => rows.row(body),
                    (b'Z', _) => return Ok(answer),
                    (b'E', _) => {
                        let error = ServerError::parse(body);
                        if answer == Answer::Done {
                            answer = Answer::Failed(error.sqlstate.as_bytes().try_into().unwrap_or(*b"XX000"));
                        }
                    }
                    (b'G', _) => {
                        self.copy(copied, stops)?;
                        // The Sync that was sent is ignored while the server waits for rows.
                        if protocol != Protocol::Text {
                            wire::sync(&mut self.out);
                        }
                        self.flush(stops)?;
                    }
                    _ => (),
                }
            }
            match self.inbox.fill(&mut self.stream) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => (),
                Err(error) if waits(&error) => {
                    if stops() {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends the rows of a COPY by their places in the capture, and gives it up behind them if the application did.
    fn copy(&mut self, copied: Option<(&[u64], bool)>, stops: &impl Fn() -> bool) -> io::Result<()> {
        if let Some(rows) = self.made.take() {
            wire::copy_data(&mut self.out, rows.len());
            self.out.extend_from_slice(&rows);
            wire::copy_done(&mut self.out);
            return Ok(());
        }
        let Some((parts, given_up)) = copied else {
            wire::copy_fail(&mut self.out, "the rows are in no log");
            return Ok(());
        };
        for at in parts {
            let file = self.copied.clone().ok_or(io::ErrorKind::NotFound)?;
            let read = file.lock().unwrap_or_else(PoisonError::into_inner).rows(*at);
            let rows = read.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.message))?;
            wire::copy_data(&mut self.out, rows.len());
            self.out.extend_from_slice(&rows);
            self.flush(stops)?;
        }
        if given_up {
            wire::copy_fail(&mut self.out, "as the application did");
        } else {
            wire::copy_done(&mut self.out);
        }
        Ok(())
    }

    fn flush(&mut self, stops: &impl Fn() -> bool) -> io::Result<()> {
        let mut sent = 0;
        while sent < self.out.len() {
            match self.stream.write(&self.out[sent..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => sent += written,
                Err(error) if waits(&error) && !stops() => (),
                Err(error) => return Err(error),
            }
        }
        self.out.clear();
        self.stream.flush()
    }

    /// Ends the session; whether the server hears it does not matter.
    pub(crate) fn close(mut self) {
        self.out.clear();
        wire::terminate(&mut self.out);
        let _ = self.stream.write_all(&self.out);
    }
}

/// Whether the socket has nothing to give, or cannot take more, for the moment.
fn waits(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
