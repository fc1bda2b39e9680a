//! Messages of the server, cut out of what the socket gave.

use std::io;

/// What is read at a time. Answers of the known workloads fit, so that one call reads a whole one.
const READ_BYTES: usize = 16 * 1024;
/// No message of a sound server is longer; a length beyond it means that this is no PostgreSQL.
const MESSAGE_BYTES_MAX: usize = 1 << 30;

/// One message.
#[derive(Debug)]
pub struct Frame<'a> {
    /// Its type.
    pub tag: u8,
    /// What follows tag and length.
    pub body: &'a [u8],
}

/// A buffer up to this size is kept; a larger one goes once it is of no use.
const KEPT_BYTES: usize = 1 << 20;
/// From this size on a buffer goes as soon as it is empty.
const LARGE_BYTES: usize = 64 << 20;

/// Bytes that were read and not yet parsed. The buffer grows with the bytes that arrive of a message, not with the length that the
/// message claims, and shrinks behind it.
pub struct Inbox {
    buffer: Vec<u8>,
    begin: usize,
    end: usize,
}

impl Default for Inbox {
    fn default() -> Self {
        Self { buffer: vec![0; READ_BYTES], begin: 0, end: 0 }
    }
}

impl Inbox {
    /// Reads once. Zero bytes mean that the server closed the connection.
    pub fn fill(&mut self, source: &mut impl io::Read) -> io::Result<usize> {
        if self.begin == self.end {
            self.reset();
        } else if self.buffer.len() - self.end < READ_BYTES / 4 {
            self.buffer.copy_within(self.begin..self.end, 0);
            (self.begin, self.end) = (0, self.end - self.begin);
            if self.buffer.len() - self.end < READ_BYTES / 4 {
                self.grow();
            }
        }
        let read = source.read(&mut self.buffer[self.end..])?;
        self.end += read;
        Ok(read)
    }

    /// Begins at the buffer's front again. A large buffer whose last bytes filled less than a quarter of it is given back.
    fn reset(&mut self) {
        let length = self.buffer.len();
        if length > LARGE_BYTES || (length > KEPT_BYTES && self.end < length / 4) {
            self.buffer = vec![0; READ_BYTES];
        }
        (self.begin, self.end) = (0, 0);
    }

    /// Doubles the buffer, but for no more than the rest of the message in it and one read behind it.
    fn grow(&mut self) {
        let rest = self.head().map_or(0, |(_, length)| length + 1 + READ_BYTES);
        let length = (self.buffer.len() * 2).min(rest.max(self.buffer.len() + READ_BYTES));
        self.buffer.resize(length, 0);
    }

    /// The type of the next message, and its length as the protocol counts it; none until its first bytes are read.
    pub(crate) fn head(&self) -> Option<(u8, usize)> {
        let [tag, length @ ..] = *self.buffer[self.begin..self.end].first_chunk::<5>()?;
        Some((tag, u32::from_be_bytes(length) as usize))
    }

    /// The next complete message; none until more is read. An error if the bytes are not PostgreSQL's protocol.
    pub fn next_frame(&mut self) -> io::Result<Option<Frame<'_>>> {
        let Some((tag, length)) = self.head() else { return Ok(None) };
        if !(4..=MESSAGE_BYTES_MAX).contains(&length) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the answer is not PostgreSQL's protocol"));
        }
        if self.end - self.begin < length + 1 {
            return Ok(None);
        }
        let at = self.begin;
        self.begin += length + 1;
        Ok(Some(Frame { tag, body: &self.buffer[at + 5..self.begin] }))
    }
}

/// The values of a row (the body of `DataRow`), in order; NULL is none.
pub fn values(body: &[u8]) -> impl Iterator<Item = Option<&[u8]>> {
    let mut rest = body.get(2..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let length = i32::from_be_bytes(*length);
        let (value, next) = after.split_at(usize::try_from(length).unwrap_or(0).min(after.len()));
        rest = next;
        Some((length >= 0).then_some(value))
    })
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
            let mut inbox = Inbox::default();
            let mut found = Vec::new();
            while inbox.fill(&mut source).unwrap() > 0 {
                while let Some(frame) = inbox.next_frame().unwrap() {
                    found.push((frame.tag, frame.body.to_vec()));
                }
            }
            prop_assert_eq!(found, messages);
        }
    }

    #[test]
    fn a_length_that_cannot_be_is_refused() {
        let mut inbox = Inbox::default();
        inbox.fill(&mut Pieces(b"HTTP/1.1 400", 100)).unwrap();
        assert!(inbox.next_frame().is_err());
    }

    #[test]
    fn a_row_has_texts_and_nulls() {
        let body = b"\0\x03\0\0\0\x0242\xff\xff\xff\xff\0\0\0\0";
        assert_eq!(values(body).collect::<Vec<_>>(), [Some(b"42".as_slice()), None, Some(b"")]);
    }
}
