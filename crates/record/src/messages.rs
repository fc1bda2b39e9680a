//! Cuts what one side says into messages (PostgreSQL's documentation, "Message Formats").

use std::rc::Rc;

use crate::ledger::{Held, Ledger};

/// Longer bodies are not kept whole, and shorter ones not if the session has no room for them: see [`Ledger`].
const BODY_BYTES_MAX: usize = 48 << 20;
/// A part of a body takes memory ahead of what follows: a quarter of what there is.
const GROWTH: usize = 4;
/// More than this is given back after a message that needed it.
const BODY_BYTES_USUAL: usize = 64 << 10;
/// Tag and length.
const HEAD_BYTES: usize = 5;

/// A message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Message<'a> {
    pub tag: u8,
    pub body: &'a [u8],
    /// Whether the body is all of it.
    pub whole: bool,
}

/// See the module.
pub(crate) struct Messages {
    head: [u8; HEAD_BYTES],
    headed: usize,
    /// Bytes of the body that have not come.
    left: usize,
    wanted: bool,
    kept: Vec<u8>,
    held: Held,
    cut: bool,
    /// It is another protocol.
    pub foreign: bool,
}

impl Messages {
    /// Of a session with this ledger.
    pub(crate) fn new(ledger: &Rc<Ledger>) -> Self {
        let held = Held::new(ledger, 0);
        let head = [0; HEAD_BYTES];
        Self { head, headed: 0, left: 0, wanted: false, kept: Vec::new(), held, cut: false, foreign: false }
    }

    /// Goes on with `bytes`, and calls `each` with every message of a tag that is `wanted` once it is there.
    pub(crate) fn feed(&mut self, mut bytes: &[u8], wanted: impl Fn(u8) -> bool, mut each: impl FnMut(Message<'_>)) {
        while !self.foreign {
            if self.headed < HEAD_BYTES {
                let count = bytes.len().min(HEAD_BYTES - self.headed);
                self.head[self.headed..self.headed + count].copy_from_slice(&bytes[..count]);
                self.headed += count;
                bytes = &bytes[count..];
                if self.headed < HEAD_BYTES {
                    return;
                }
                let length = u32::from_be_bytes([self.head[1], self.head[2], self.head[3], self.head[4]]) as usize;
                // The length counts itself.
                let Some(left) = length.checked_sub(4) else {
                    self.foreign = true;
                    return;
                };
                (self.left, self.wanted) = (left, wanted(self.head[0]));
            }
            let (now, rest) = bytes.split_at(bytes.len().min(self.left));
            bytes = rest;
            self.left -= now.len();
            if self.left > 0 {
                self.keep(now);
                return;
            }
            self.headed = 0;
            if self.wanted {
                self.give(now, &mut each);
            }
        }
    }

    fn keep(&mut self, part: &[u8]) {
        if !self.wanted || self.cut {
            return;
        }
        let count = part.len().min(BODY_BYTES_MAX - self.kept.len());
        let spare = self.kept.capacity() - self.kept.len();
        let growth = if count > spare { count.max(self.kept.len() / GROWTH) } else { 0 };
        if growth > 0 && !self.held.ledger().allows(growth) {
            self.cut = true;
            return;
        }
        self.kept.reserve_exact(growth);
        self.kept.extend_from_slice(&part[..count]);
        self.held.set(self.kept.capacity());
        self.cut |= count < part.len();
    }

    fn give(&mut self, last: &[u8], each: &mut impl FnMut(Message<'_>)) {
        let tag = self.head[0];
        if self.kept.is_empty() && !self.cut {
            return each(Message { tag, body: last, whole: true });
        }
        self.keep(last);
        each(Message { tag, body: &self.kept, whole: !self.cut });
        self.cut = false;
        self.kept.clear();
        self.kept.shrink_to(BODY_BYTES_USUAL);
        self.held.set(self.kept.capacity());
    }
}

/// Reads fields of a body in order; each is none behind the end.
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(crate) fn of(body: &'a [u8]) -> Self {
        Self { rest: body }
    }

    /// The next bytes.
    pub(crate) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (found, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(found)
    }

    /// A text up to its zero; all that is left where that is cut away.
    pub(crate) fn text(&mut self) -> Option<&'a [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        let end = self.rest.iter().position(|byte| *byte == 0);
        let found = &self.rest[..end.unwrap_or(self.rest.len())];
        self.rest = end.map_or(&[], |end| &self.rest[end + 1..]);
        Some(found)
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        self.bytes(1).map(|found| found[0])
    }

    pub(crate) fn i16(&mut self) -> Option<i16> {
        Some(i16::from_be_bytes(self.bytes(2)?.try_into().ok()?))
    }

    pub(crate) fn i32(&mut self) -> Option<i32> {
        Some(i32::from_be_bytes(self.bytes(4)?.try_into().ok()?))
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.i32().map(i32::cast_unsigned)
    }

    pub(crate) fn i64(&mut self) -> Option<i64> {
        Some(i64::from_be_bytes(self.bytes(8)?.try_into().ok()?))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// How many bytes have not been read.
    pub(crate) fn left(&self) -> usize {
        self.rest.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ledger::Total;

    fn messages() -> Messages {
        Messages::new(&Ledger::new(&Total::default()))
    }

    fn message(tag: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).unwrap();
        [&[tag][..], &length.to_be_bytes()[..], body].concat()
    }

    proptest! {
        #[test]
        fn messages_come_whole_however_they_are_cut(
            sent in prop::collection::vec((prop::sample::select(vec![b'Q', b'd', b'S']), prop::collection::vec(any::<u8>(), 0..40)), 1..20),
            cuts in prop::collection::vec(1_usize..30, 1..60),
        ) {
            let stream: Vec<u8> = sent.iter().flat_map(|(tag, body)| message(*tag, body)).collect();
            let (mut messages, mut found, mut rest, mut at) = (messages(), Vec::new(), stream.as_slice(), 0);
            while !rest.is_empty() {
                let (now, later) = rest.split_at(cuts[at % cuts.len()].min(rest.len()));
                messages.feed(now, |tag| tag != b'd', |one| {
                    assert!(one.whole);
                    found.push((one.tag, one.body.to_vec()));
                });
                (rest, at) = (later, at + 1);
            }
            let wanted: Vec<_> = sent.into_iter().filter(|(tag, _)| *tag != b'd').collect();
            prop_assert_eq!(found, wanted);
        }
    }

    #[test]
    fn a_body_that_is_too_long_is_cut_and_what_follows_is_not() {
        let long = message(b'Q', &vec![b'x'; BODY_BYTES_MAX + 10]);
        let (mut messages, mut found) = (messages(), Vec::new());
        for part in [long.as_slice(), &message(b'Q', b"next")].concat().chunks(1 << 20) {
            messages.feed(part, |_| true, |one| found.push((one.body.len(), one.whole)));
        }
        assert_eq!(found, [(BODY_BYTES_MAX, false), (4, true)]);
    }

    #[test]
    fn another_protocol_is_told() {
        let mut messages = messages();
        messages.feed(&[b'G', 0, 0, 0, 1, 9, 9], |_| true, |_| panic!("it has no message"));
        assert!(messages.foreign);
    }
}
