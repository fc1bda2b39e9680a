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

/// The values of a row (the body of `DataRow`), in order; NULL is none. An error if its counts and lengths are not those of its bytes.
pub fn values(body: &[u8]) -> io::Result<impl Iterator<Item = Option<&[u8]>>> {
    let malformed = || io::Error::new(io::ErrorKind::InvalidData, "a row whose lengths do not add up");
    let (count, row) = body.split_first_chunk::<2>().ok_or_else(malformed)?;
    let mut rest = row;
    for _ in 0..u16::from_be_bytes(*count) {
        (_, rest) = split_value(rest).ok_or_else(malformed)?;
    }
    if !rest.is_empty() {
        return Err(malformed());
    }
    let mut rest = row;
    Ok(std::iter::from_fn(move || {
        let value;
        (value, rest) = split_value(rest)?;
        Some(value)
    }))
}

/// The first value of a row, and the rest of it.
fn split_value(row: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    let (length, rest) = row.split_first_chunk::<4>()?;
    match i32::from_be_bytes(*length) {
        -1 => Some((None, rest)),
        length => rest.split_at_checked(usize::try_from(length).ok()?).map(|(value, rest)| (Some(value), rest)),
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
        #![proptest_config(ProptestConfig::with_cases(48))]

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
        assert_eq!(values(body).unwrap().collect::<Vec<_>>(), [Some(b"42".as_slice()), None, Some(b"")]);
    }

    #[test]
    fn a_row_whose_lengths_do_not_add_up_is_refused() {
        for body in [
            &b""[..],
            b"\0",
            b"\0\x02\0\0\0\x0242",
            b"\0\x01\0\0\0\x0342",
            b"\0\x01\0\0\0\x0142",
            b"\0\x01\xff\xff\xff\xfe",
            b"\xff\xff\0\0\0\0",
        ] {
            assert!(values(body).is_err(), "{body:?}");
        }
    }

    /// Sends the head of a message, and then so many bytes of it.
    struct Claims {
        head: [u8; 5],
        sent: usize,
        left: usize,
    }

    impl io::Read for Claims {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            if self.sent == 0 {
                into[..5].copy_from_slice(&self.head);
                self.sent = 5;
                return Ok(5);
            }
            let count = self.left.min(into.len());
            into[..count].fill(b'x');
            self.left -= count;
            Ok(count)
        }
    }

    fn read_all(inbox: &mut Inbox, length: usize, sent: usize) -> (usize, usize) {
        let [a, b, c, d] = (length as u32).to_be_bytes();
        let mut source = Claims { head: [b'D', a, b, c, d], sent: 0, left: sent };
        let (mut frames, mut largest) = (0, 0);
        while inbox.fill(&mut source).unwrap() > 0 {
            largest = largest.max(inbox.buffer.len());
            while inbox.next_frame().unwrap().is_some() {
                frames += 1;
            }
        }
        (frames, largest)
    }

    #[test]
    fn the_buffer_grows_with_what_arrives_and_not_with_what_is_announced() {
        let (frames, largest) = read_all(&mut Inbox::default(), MESSAGE_BYTES_MAX, 1 << 20);
        assert_eq!(frames, 0);
        assert!(largest <= 4 << 20, "{largest}");
        let length = (5 << 20) + 4;
        let (frames, largest) = read_all(&mut Inbox::default(), length, length - 4);
        assert_eq!(frames, 1);
        assert!(largest <= length + 1 + READ_BYTES, "{largest}");
    }

    #[test]
    fn the_buffer_shrinks_behind_a_large_message() {
        let mut inbox = Inbox::default();
        for (large, smalls) in [(5 << 20, 2), (70 << 20, 0)] {
            assert_eq!(read_all(&mut inbox, large + 4, large).0, 1);
            for _ in 0..smalls {
                assert_eq!(read_all(&mut inbox, 104, 100).0, 1);
            }
            assert_eq!(inbox.buffer.len(), READ_BYTES, "behind {large} bytes");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn whatever_bytes_arrive_are_cut_or_refused_within_bounds(
            bytes in prop::collection::vec(any::<u8>(), 0..40_000),
            piece in 1_usize..20_000,
        ) {
            let mut source = Pieces(&bytes, piece);
            let mut inbox = Inbox::default();
            let mut taken = 0;
            'all: while inbox.fill(&mut source).unwrap() > 0 {
                loop {
                    match inbox.next_frame() {
                        Ok(Some(frame)) => {
                            taken += frame.body.len() + 5;
                            if let Ok(row) = values(frame.body) {
                                let bytes: usize = row.map(|value| 4 + value.map_or(0, <[u8]>::len)).sum();
                                prop_assert_eq!(bytes + 2, frame.body.len());
                            }
                        }
                        Ok(None) => break,
                        Err(_) => break 'all,
                    }
                }
            }
            prop_assert!(taken <= bytes.len());
            prop_assert!(inbox.buffer.len() <= 4 * bytes.len() + 2 * READ_BYTES);
        }
    }
}
