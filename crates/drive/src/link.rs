//! A session during the run: statements go out, answers come in, and nothing waits.

use std::collections::VecDeque;
use std::io::{self, Write};

use pgdyno_workload::{Answer, Parameter, Protocol, SqlState, Statement, StatementId, Status};

use pgdyno_connection::{Frame, Inbox, ServerError, Session, Stream, values, wire};

/// An error that the server gave, whichever class it is of.
const UNKNOWN_STATE: SqlState = SqlState(*b"XX000");

/// One connection with what is under way on it.
pub(crate) struct Link {
    pub stream: Stream,
    inbox: Inbox,
    out: Vec<u8>,
    sent: usize,
    protocol: Protocol,
    /// ReadyForQuery messages that are still to come.
    awaited: u32,
    prepared: Vec<bool>,
    /// Statements whose parsing is not confirmed, in the order in which they were sent; none ends a segment.
    preparing: VecDeque<Option<usize>>,
    /// Statements of pipelines that are not answered, in the order in which they were sent; none ends a segment.
    pipelined: VecDeque<Option<StatementId>>,
    /// The statement that is waited for by itself.
    single: Option<StatementId>,
    /// Statements of pipelines that were answered since this was last emptied.
    pub answered: Vec<StatementId>,
    keep: bool,
    /// Where the session stood when it last said so.
    pub status: Status,
    /// The first refusal that the client was not told of.
    pub failure: Option<SqlState>,
    /// What the server said with it, or with the last one before.
    pub refusal: Option<ServerError>,
    /// The statement that it was about; none where it was the end of a pipeline's segment.
    pub refused: Option<StatementId>,
    answer: Answer,
}

impl Link {
    /// Takes over a session; `statements` is how many the workload has.
    pub(crate) fn new(session: Session, protocol: Protocol, statements: usize) -> Self {
        Self {
            stream: session.stream,
            inbox: session.inbox,
            out: Vec::with_capacity(4096),
            sent: 0,
            protocol,
            awaited: 0,
            prepared: vec![false; statements],
            preparing: VecDeque::new(),
            pipelined: VecDeque::new(),
            single: None,
            answered: Vec::new(),
            keep: false,
            status: Status::Idle,
            failure: None,
            refusal: None,
            refused: None,
            answer: Answer::default(),
        }
    }

    /// Whether an answer is under way.
    pub(crate) fn is_busy(&self) -> bool {
        self.awaited > 0
    }

    /// Whether something was put into the buffer and not all of it sent: a pipeline that is not at its end.
    pub(crate) fn has_unsent(&self) -> bool {
        !self.out.is_empty()
    }

    /// Puts a statement into the buffer, with the end of its segment unless it is pipelined.
    /// An error if it has more parameters than the protocol counts.
    pub(crate) fn put(&mut self, statement: &Statement<'_>, names: &[String]) -> io::Result<()> {
        self.keep = statement.keep;
        if self.keep {
            self.answer.clear();
        }
        self.single = (!statement.pipelined).then_some(statement.id);
        if self.protocol == Protocol::Simple {
            wire::query_of(&mut self.out, |out| statement.template.write_substituted(statement.parameters, out));
            self.awaited += 1;
            return Ok(());
        }
        let StatementId(id) = statement.id;
        let id = id as usize;
        let name = if self.protocol == Protocol::Prepared { names[id].as_str() } else { "" };
        if self.protocol == Protocol::Extended || !(self.prepared[id] || self.preparing.contains(&Some(id))) {
            wire::parse(&mut self.out, name, statement.template.numbered());
            self.preparing.push_back(Some(id));
        }
        let parameters = (0..statement.parameters.len()).map(|index| match statement.parameters.get(index) {
            Parameter::Text(text) => Some(text),
            Parameter::Null | Parameter::Undefined => None,
        });
        wire::execute(&mut self.out, name, parameters)?;
        if statement.pipelined {
            self.pipelined.push_back(Some(statement.id));
        } else {
            self.end_segment();
        }
        Ok(())
    }

    /// Ends a segment of a pipeline.
    pub(crate) fn sync(&mut self) {
        self.pipelined.push_back(None);
        self.end_segment();
    }

    fn end_segment(&mut self) {
        wire::sync(&mut self.out);
        self.preparing.push_back(None);
        self.awaited += 1;
    }

    /// What was answered, if the last statement wanted to know.
    pub(crate) fn kept(&self) -> Option<&Answer> {
        self.keep.then_some(&self.answer)
    }

    /// Sends what is in the buffer. True when everything is with the kernel, else the socket is to be watched.
    pub(crate) fn flush(&mut self) -> io::Result<bool> {
        while self.sent < self.out.len() {
            match self.stream.write(&self.out[self.sent..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => self.sent += written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
                Err(error) => return Err(error),
            }
        }
        self.out.clear();
        self.sent = 0;
        self.stream.drained()
    }

    /// Reads what there is. True when everything that was waited for has come.
    pub(crate) fn receive(&mut self) -> io::Result<bool> {
        loop {
            match self.inbox.fill(&mut self.stream) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => (),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            let complete = self.take_in()?;
            if complete || !self.stream.has_buffered_plaintext() {
                return Ok(complete);
            }
        }
    }

    /// Looks at each message that is there. True when the last awaited one was among them.
    fn take_in(&mut self) -> io::Result<bool> {
        let mut complete = false;
        while let Some(Frame { tag, body }) = self.inbox.next_frame()? {
            match tag {
                // An answer to nothing would be taken for that of the next statement.
                b'Z' if self.awaited == 0 => return Err(unexpected(tag)),
                b'Z' => {
                    self.status = match body {
                        b"T" => Status::InTransaction,
                        b"E" => Status::InFailedTransaction,
                        _ => Status::Idle,
                    };
                    // What is left of this segment was not parsed; the next ones are still to be answered.
                    while let Some(Some(_)) = self.preparing.pop_front() {}
                    while let Some(Some(_)) = self.pipelined.pop_front() {}
                    self.awaited -= 1;
                    complete = self.awaited == 0;
                }
                b'1' => {
                    if let (Some(Some(id)), Protocol::Prepared) = (self.preparing.pop_front(), self.protocol) {
                        self.prepared[id] = true;
                    }
                }
                b'E' => {
                    let error = ServerError::parse(body);
                    let state = error.sqlstate.as_bytes().try_into().map_or(UNKNOWN_STATE, SqlState);
                    // The server closes the connection after these, so the statement's outcome is that of a lost connection.
                    if error.ends_session() {
                        return Err(io::Error::new(io::ErrorKind::ConnectionAborted, error.message));
                    }
                    let statement = self.take_pipelined().or(self.single);
                    if self.failure.is_none() {
                        self.failure = Some(state);
                        self.refusal = Some(error);
                        self.refused = statement;
                    }
                }
                b'C' | b'I' => {
                    self.take_pipelined();
                }
                // The next connection would come to the same: this is no loss of one.
                b'G' | b'W' => return Err(io::Error::new(io::ErrorKind::Unsupported, "COPY wants rows of the client")),
                b'T' if self.keep => describe(&mut self.answer, body),
                b'D' if self.keep => row(&mut self.answer, body)?,
                b'2' | b'3' | b'A' | b'D' | b'H' | b'N' | b'S' | b'T' | b'c' | b'd' | b'n' | b's' | b't' => (),
                _ => return Err(unexpected(tag)),
            }
        }
        Ok(complete)
    }

    /// Notes that the first statement of the pipeline is answered; nothing where there is none.
    fn take_pipelined(&mut self) -> Option<StatementId> {
        let statement = *self.pipelined.front()?.as_ref()?;
        self.pipelined.pop_front();
        self.answered.push(statement);
        Some(statement)
    }

    /// Says good-bye; whether it is heard does not matter.
    pub(crate) fn close(mut self) {
        wire::terminate(&mut self.out);
        let _ = self.flush();
    }
}

/// Begins a result set with the names of its columns.
fn describe(answer: &mut Answer, body: &[u8]) {
    /// What follows a column's name: table, attribute, type, length, modifier, format.
    const REST_BYTES: usize = 18;
    let set = answer.begin_set();
    let mut rest = body.get(2..).unwrap_or_default();
    while let Some(end) = rest.iter().position(|&byte| byte == 0) {
        set.column(&String::from_utf8_lossy(&rest[..end]));
        rest = rest.get(end + 1 + REST_BYTES..).unwrap_or_default();
    }
}

/// Adds a row to the last result set.
fn row(answer: &mut Answer, body: &[u8]) -> io::Result<()> {
    let Some(set) = answer.last_set() else { return Ok(()) };
    set.begin_row();
    values(body)?.for_each(|value| set.value(value));
    Ok(())
}

fn unexpected(tag: u8) -> io::Error {
    let tag = tag.escape_ascii();
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("the server sent the message `{tag}`, which does not belong there"),
    )
}
