//! Messages of the server, cut out of what the socket gave.

use std::io;

/// What is read at a time. Answers of the known workloads fit, so that one call reads a whole one.
const READ_BYTES: usize = 16 * 1024;
/// No message of a sound server is longer; a length beyond it means that this is no PostgreSQL.
const MESSAGE_BYTES_MAX: usize = 1 << 30;

/// One message.
#[derive(Debug)]
pub(crate) struct Frame<'a> {
    /// Its type.
    pub tag: u8,
    /// What follows tag and length.
    pub body: &'a [u8],
}

/// What has been read and not yet looked at. It grows to the longest message and stays so.
pub(crate) struct Inbox {
    buffer: Vec<u8>,
    begin: usize,
    end: usize,
}

impl Inbox {
    /// An empty one.
    pub(crate) fn new() -> Self {
        Self { buffer: vec![0; READ_BYTES], begin: 0, end: 0 }
    }

    /// Reads once. Zero bytes mean that the server has gone.
    pub(crate) fn fill(&mut self, source: &mut impl io::Read) -> io::Result<usize> {
        if self.begin == self.end {
            (self.begin, self.end) = (0, 0);
        } else if self.buffer.len() - self.end < READ_BYTES / 4 {
            self.buffer.copy_within(self.begin..self.end, 0);
            (self.begin, self.end) = (0, self.end - self.begin);
            if self.buffer.len() - self.end < READ_BYTES / 4 {
                self.buffer.resize(self.buffer.len() * 2, 0);
            }
        }
        let read = source.read(&mut self.buffer[self.end..])?;
        self.end += read;
        Ok(read)
    }

    /// The next whole message, or none before more is read.
    pub(crate) fn next(&mut self) -> io::Result<Option<Frame<'_>>> {
        let seen = &self.buffer[self.begin..self.end];
        let Some(head) = seen.first_chunk::<5>() else { return Ok(None) };
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        if !(4..=MESSAGE_BYTES_MAX).contains(&length) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the answer is not PostgreSQL's protocol"));
        }
        if seen.len() < length + 1 {
            return Ok(None);
        }
        let at = self.begin;
        self.begin += length + 1;
        Ok(Some(Frame { tag: self.buffer[at], body: &self.buffer[at + 5..self.begin] }))
    }
}

/// What the server says about an error or a notice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Said {
    /// Five characters of SQLSTATE.
    pub sqlstate: String,
    /// The message. It is all that is shown to others: what follows may hold values of rows.
    pub message: String,
    /// More of the message; empty where there is none.
    pub detail: String,
    /// What the server was at, a line for each thing: `COPY t, line 3, column a: "x"`; empty where it does not say.
    pub context: String,
    /// The column that a constraint is about; empty where there is none.
    pub column: String,
}

impl Said {
    /// Of the body of an error's message.
    pub(crate) fn of(body: &[u8]) -> Self {
        let mut said = Self::default();
        for field in body.split(|&byte| byte == 0) {
            let Some((&kind, value)) = field.split_first() else { break };
            let value = || String::from_utf8_lossy(value).into_owned();
            match kind {
                b'C' => said.sqlstate = value(),
                b'M' => said.message = value(),
                b'D' => said.detail = value(),
                b'W' => said.context = value(),
                b'c' => said.column = value(),
                _ => (),
            }
        }
        said
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(messages: &[(u8, Vec<u8>)]) -> Vec<u8> {
        let mut all = Vec::new();
        for (tag, body) in messages {
            all.push(*tag);
            all.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
            all.extend_from_slice(body);
        }
        all
    }

    /// Gives what it has in pieces.
    struct Pieces<'a>(&'a [u8], usize);

    impl io::Read for Pieces<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(self.0.len()).min(into.len());
            into[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    proptest! {
        #[test]
        fn messages_are_the_same_in_whatever_pieces_they_come(
            messages in prop::collection::vec((any::<u8>(), prop::collection::vec(any::<u8>(), 0..30_000)), 0..12),
            piece in 1_usize..20_000,
        ) {
            let all = written(&messages);
            let mut source = Pieces(&all, piece);
            let mut inbox = Inbox::new();
            let mut found = Vec::new();
            while inbox.fill(&mut source).unwrap() > 0 {
                while let Some(frame) = inbox.next().unwrap() {
                    found.push((frame.tag, frame.body.to_vec()));
                }
            }
            prop_assert_eq!(found, messages);
        }
    }

    #[test]
    fn a_length_that_cannot_be_is_refused() {
        let mut inbox = Inbox::new();
        inbox.fill(&mut Pieces(b"HTTP/1.1 400", 100)).unwrap();
        assert!(inbox.next().is_err());
    }

    #[test]
    fn of_an_error_its_state_and_message_are_kept() {
        let said = Said::of(b"SERROR\0VERROR\0C42P01\0Mrelation \"t\" does not exist\0P15\0\0");
        assert_eq!(said.sqlstate, "42P01");
        assert_eq!(said.message, "relation \"t\" does not exist");
    }
}
