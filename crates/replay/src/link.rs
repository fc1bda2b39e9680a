//! One session with a server: a statement goes out, and its answer is waited for.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use pgdyno_capture::{Call, CaptureError, CaptureFile, Ending, Protocol};
use pgdyno_connection::{CancelKey, Frame, Inbox, LoginError, Server, ServerError, Session, Stream, log_in, wire};

use crate::keys::Rows;
use crate::turns::{Turns, pause};

/// How a COPY ends that the client gives up (`query_canceled`).
const GIVEN_UP: Ending = Ending::Failed(*b"57014");

/// What a statement has come to that has more parameters than the protocol counts (`too_many_arguments`).
const TOO_MANY: Answer = Answer::Failed(*b"54023");

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

/// Rows of COPY that are in the capture. Those who read at the same time have a file each.
pub(crate) struct Copied {
    first: CaptureFile,
    idle: Mutex<Vec<CaptureFile>>,
}

impl Copied {
    /// Those of a capture.
    pub(crate) fn of(first: CaptureFile) -> Self {
        Self { first, idle: Mutex::default() }
    }

    fn rows(&self, at: u64) -> Result<Vec<u8>, CaptureError> {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let found = idle().pop();
        let mut file = match found {
            Some(file) => file,
            None => self.first.another()?,
        };
        let rows = file.rows(at);
        idle().push(file);
        rows
    }
}

/// See the module.
pub(crate) struct Link<'a> {
    /// With which its statements can be cancelled.
    pub cancel_key: CancelKey,
    turns: &'a Turns,
    stream: Stream,
    inbox: Inbox,
    out: Vec<u8>,
    /// Prepared statements that the server has, with their texts.
    prepared: HashMap<String, String>,
    /// Whether the server prepared what was sent last, whatever came of executing it.
    parsed: bool,
    types: Arc<Types>,
    /// Where rows of COPY are read.
    copied: Option<Arc<Copied>>,
    /// Rows for the COPY that is sent next.
    pub made: Option<Vec<u8>>,
}

impl<'a> Link<'a> {
    /// Connects and logs in, unless it `stops` before.
    pub(crate) async fn open(turns: &'a Turns, to: &Server, stops: impl Fn() -> bool) -> Result<Self, LoginError> {
        let server = to.clone();
        match turns.aside(move || log_in(&server), stops).await {
            Some(session) => Self::new(turns, session?),
            None => Err(LoginError::Absent("nobody waits for it any more".to_owned())),
        }
    }

    /// Takes over a session, for the task whose turn it is.
    pub(crate) fn new(turns: &'a Turns, session: Session) -> Result<Self, LoginError> {
        let Session { stream, inbox, cancel_key, .. } = session;
        turns.watch(&stream).map_err(|error| LoginError::Absent(format!("its socket cannot be watched: {error}")))?;
        let (prepared, types) = (HashMap::new(), Arc::default());
        let out = Vec::with_capacity(4096);
        Ok(Self { cancel_key, turns, stream, inbox, out, prepared, parsed: false, types, copied: None, made: None })
    }

    /// Prepares statements with these types of their parameters.
    pub(crate) fn typed(mut self, types: &Arc<Types>) -> Self {
        self.types = Arc::clone(types);
        self
    }

    /// Sends rows of COPY that are in this capture.
    pub(crate) fn copying(mut self, copied: Option<&Arc<Copied>>) -> Self {
        self.copied = copied.cloned();
        self
    }

    /// Prepares a text without a name, and does not execute it.
    pub(crate) async fn prepare(&mut self, text: &str, types: &[u32], stops: &impl Fn() -> bool) -> Answer {
        if wire::parse_typed(&mut self.out, "", text, types).is_err() {
            return TOO_MANY;
        }
        wire::sync(&mut self.out);
        self.exchange((Protocol::Unnamed, None), None, stops).await.unwrap_or(Answer::Lost)
    }

    /// Sends a statement as it was sent, and waits for the end of its answer, or until `stops`. `rows` receives the answer.
    pub(crate) async fn call(&mut self, call: &Call, rows: Option<&mut Rows>, stops: &impl Fn() -> bool) -> Answer {
        let Ok(parses) = self.put(call) else {
            self.out.clear();
            return TOO_MANY;
        };
        let copied = (call.protocol, call.rows.as_deref().map(|parts| (parts, call.ending == GIVEN_UP)));
        let Ok(answer) = self.exchange(copied, rows, stops).await else { return Answer::Lost };
        self.note(call, parses, answer);
        answer
    }

    /// Sends a text that is no statement of the capture.
    pub(crate) async fn text(&mut self, text: &str, stops: &impl Fn() -> bool) -> Answer {
        wire::query_of(&mut self.out, |out| out.extend_from_slice(text.as_bytes()));
        self.exchange((Protocol::Text, None), None, stops).await.unwrap_or(Answer::Lost)
    }

    /// Puts the messages of a statement into the buffer. Whether it is prepared under its name by them. An error if it has more
    /// parameters than the protocol counts.
    fn put(&mut self, call: &Call) -> io::Result<bool> {
        if call.protocol == Protocol::Text {
            wire::query_of(&mut self.out, |out| out.extend_from_slice(call.text.as_bytes()));
            return Ok(false);
        }
        let known = call.protocol == Protocol::Named && self.prepared.get(&call.name) == Some(&call.text);
        if !known {
            if self.prepared.remove(&call.name).is_some() {
                wire::close(&mut self.out, &call.name);
            }
            let types = self.types.get(&call.text).map_or(&[][..], Vec::as_slice);
            wire::parse_typed(&mut self.out, &call.name, &call.text, types)?;
        }
        let values = call.values.iter().map(|value| value.as_deref().map(str::as_bytes));
        wire::execute(&mut self.out, &call.name, values)?;
        wire::sync(&mut self.out);
        Ok(call.protocol == Protocol::Named && !known)
    }

    /// Notes what the server has prepared now.
    fn note(&mut self, call: &Call, parses: bool, answer: Answer) {
        if parses && self.parsed {
            self.prepared.insert(call.name.clone(), call.text.clone());
        }
        if call.protocol != Protocol::Text || answer != Answer::Done {
            return;
        }
        let begins = |with: &str| {
            let text = call.text.trim_ascii_start();
            text.get(..with.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(with))
        };
        if !begins("DEALLOCATE") && !begins("DISCARD") {
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

    async fn exchange(
        &mut self,
        (protocol, copied): (Protocol, Option<(&[u64], bool)>),
        mut rows: Option<&mut Rows>,
        stops: &impl Fn() -> bool,
    ) -> io::Result<Answer> {
        self.flush(stops).await?;
        self.wait(stops).await?;
        let mut answer = Answer::Done;
        self.parsed = false;
        loop {
            match self.inbox.fill(&mut self.stream) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => (),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait(stops).await?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
                Err(error) => return Err(error),
            }
            while let Some(Frame { tag, body }) = self.inbox.next_frame()? {
                match (tag, &mut rows) {
                    (b'T', Some(rows)) => rows.describe(body),
                    (b'D', Some(rows)) => rows.row(body),
                    (b'1', _) => self.parsed = true,
                    (b'Z', _) => return Ok(answer),
                    (b'E', _) => {
                        let error = ServerError::parse(body);
                        if answer == Answer::Done {
                            answer = Answer::Failed(error.sqlstate.as_bytes().try_into().unwrap_or(*b"XX000"));
                        }
                    }
                    (b'G', _) => {
                        self.copy(copied, stops).await?;
                        // The Sync that was sent is ignored while the server waits for rows.
                        if protocol != Protocol::Text {
                            wire::sync(&mut self.out);
                        }
                        self.flush(stops).await?;
                    }
                    (b'2' | b'3' | b'A' | b'C' | b'D' | b'H' | b'I' | b'N' | b'S' | b'T' | b'c' | b'd', _) => (),
                    (b'n' | b's' | b't', _) => (),
                    (tag, _) => {
                        let why = format!("the message `{}` does not belong there", tag.escape_ascii());
                        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
                    }
                }
            }
        }
    }

    /// Sends the rows of a COPY by their places in the capture, and gives it up behind them if the application did.
    async fn copy(&mut self, copied: Option<(&[u64], bool)>, stops: &impl Fn() -> bool) -> io::Result<()> {
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
            let (copied, at) = (self.copied.clone().ok_or(io::ErrorKind::NotFound)?, *at);
            // To read a mebibyte and inflate it takes milliseconds, in which other sessions of the thread would be late.
            let read = self.turns.aside(move || copied.rows(at), stops).await.ok_or(io::ErrorKind::TimedOut)?;
            let rows = read.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.message))?;
            wire::copy_data(&mut self.out, rows.len());
            self.out.extend_from_slice(&rows);
            self.flush(stops).await?;
        }
        if given_up {
            wire::copy_fail(&mut self.out, "as the application did");
        } else {
            wire::copy_done(&mut self.out);
        }
        Ok(())
    }

    /// Sends what is in the buffer.
    async fn flush(&mut self, stops: &impl Fn() -> bool) -> io::Result<()> {
        let mut sent = 0;
        while sent < self.out.len() {
            match self.stream.write(&self.out[sent..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => sent += written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait_for_room(stops).await?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
                Err(error) => return Err(error),
            }
        }
        self.out.clear();
        while !self.stream.drained()? {
            self.wait_for_room(stops).await?;
        }
        Ok(())
    }

    /// Waits until something happens to the socket.
    async fn wait(&self, stops: &impl Fn() -> bool) -> io::Result<()> {
        let mut has_waited = false;
        while !self.turns.heard() {
            if has_waited && stops() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            pause().await;
            has_waited = true;
        }
        Ok(())
    }

    /// Waits until the socket takes more.
    async fn wait_for_room(&self, stops: &impl Fn() -> bool) -> io::Result<()> {
        self.turns.watch_writing(&self.stream, true)?;
        self.wait(stops).await?;
        self.turns.watch_writing(&self.stream, false)
    }

    /// Ends the session; whether the server hears it does not matter.
    pub(crate) fn close(mut self) {
        self.out.clear();
        wire::terminate(&mut self.out);
        let _ = self.stream.write_all(&self.out);
    }
}
