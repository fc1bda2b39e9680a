//! One direction of a connection: what was said and has not been handed on, with the instants at which it arrives.
//!
//! Time is an argument here, and no socket is seen: this is the part whose order and delays can be proven.

use std::collections::VecDeque;

use crate::tally::Tally;

/// Parts that may be under way: a sender of single bytes has no more of them, so that they take less memory than the bytes of a window.
const CHUNKS_MAX: usize = 16 << 10;

/// How what one side says comes to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It has no more to say; the other side may continue.
    Close,
    /// The connection broke: nothing more goes either way.
    Reset,
}

/// What was read at once.
struct Chunk {
    read_ns: u64,
    due_ns: u64,
    length: usize,
}

/// See the module. Instants are nanoseconds of one clock that never goes back.
pub(crate) struct Flow {
    delay_ns: u64,
    /// Nothing sets out before this: the handshake of the connection takes its round trip too.
    open_ns: u64,
    window_bytes: usize,
    bytes: VecDeque<u8>,
    /// How many bytes at the front have arrived, and wait for the receiver to take them.
    arrived: usize,
    /// What is still under way, in order.
    chunks: VecDeque<Chunk>,
    ending: Option<(Ending, u64)>,
    /// The last word has arrived; it may still wait for the receiver to take the bytes before it.
    ended: bool,
    over: bool,
}

impl Flow {
    /// A direction that takes `delay_ns`, on a connection that is open from `open_ns` on.
    pub(crate) fn new(delay_ns: u64, open_ns: u64, window_bytes: usize) -> Self {
        Self {
            delay_ns,
            open_ns,
            window_bytes,
            bytes: VecDeque::new(),
            arrived: 0,
            chunks: VecDeque::new(),
            ending: None,
            ended: false,
            over: false,
        }
    }

    /// How many bytes may be read from the sender; none once its last word is known.
    pub(crate) fn room(&self) -> usize {
        if self.over || self.ending.is_some() || self.chunks.len() >= CHUNKS_MAX {
            0
        } else {
            self.window_bytes.saturating_sub(self.bytes.len())
        }
    }

    /// Bytes that were read at `now`, at most [`Self::room`] of them.
    pub(crate) fn take_in(&mut self, now: u64, bytes: &[u8]) {
        debug_assert!(bytes.len() <= self.room());
        self.bytes.extend(bytes);
        self.chunks.push_back(Chunk { read_ns: now, due_ns: self.due(now), length: bytes.len() });
    }

    /// The sender's last word, read at `now`. A break replaces an end that came before it.
    pub(crate) fn finish(&mut self, now: u64, ending: Ending) {
        self.ending = Some((ending, self.due(now)));
        self.ended = false;
        self.over = false;
    }

    /// Nothing comes from here any more: the last byte was handed on, or the other side is gone.
    pub(crate) fn abandon(&mut self) {
        self.bytes.clear();
        self.chunks.clear();
        self.arrived = 0;
        self.ending = None;
        self.over = true;
    }

    /// Lets everything arrive that is due at `now`, and counts how late that is.
    pub(crate) fn arrive(&mut self, now: u64, tally: &mut Tally) {
        tally.held(self.bytes.len());
        while let Some(chunk) = self.chunks.front().filter(|chunk| chunk.due_ns <= now) {
            self.arrived += chunk.length;
            tally.arrived(chunk.length, now - chunk.read_ns, now - chunk.due_ns);
            self.chunks.pop_front();
        }
        self.ended |= self.ending.is_some_and(|(_, due)| due <= now);
    }

    /// Bytes that have arrived; empty when there are none. There may be more behind them.
    pub(crate) fn front(&self) -> &[u8] {
        let (first, _) = self.bytes.as_slices();
        &first[..first.len().min(self.arrived)]
    }

    /// The receiver took the first `count` bytes.
    pub(crate) fn consume(&mut self, count: usize) {
        debug_assert!(count <= self.arrived);
        self.bytes.drain(..count);
        self.arrived -= count;
    }

    /// The last word, once it has arrived. An end comes after the last byte; a break does not wait for a receiver that
    /// takes nothing.
    pub(crate) fn last_word(&self) -> Option<Ending> {
        let (ending, _) = self.ending.filter(|_| self.ended)?;
        (ending == Ending::Reset || self.bytes.is_empty()).then_some(ending)
    }

    /// Whether nothing more can be under way until some of it has arrived.
    #[cfg(test)]
    fn is_full_of_chunks(&self) -> bool {
        self.chunks.len() >= CHUNKS_MAX
    }

    /// Whether nothing comes from here any more.
    pub(crate) fn is_over(&self) -> bool {
        self.over
    }

    /// When something arrives that has not arrived yet; this may be now, or have been.
    pub(crate) fn next_arrival(&self) -> Option<u64> {
        let chunk = self.chunks.front().map(|chunk| chunk.due_ns);
        chunk.or(self.ending.filter(|_| !self.ended).map(|(_, due)| due))
    }

    fn due(&self, now: u64) -> u64 {
        now.max(self.open_ns) + self.delay_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DELAY_NS: u64 = 1000;

    /// What happens to a flow: time passes, bytes come, the receiver takes some.
    #[derive(Debug, Clone)]
    enum Step {
        Pass(u64),
        Read(usize),
        Take(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            (0_u64..3000).prop_map(Step::Pass),
            (1_usize..200).prop_map(Step::Read),
            (1_usize..200).prop_map(Step::Take),
        ];
        prop::collection::vec(step, 1..200)
    }

    proptest! {
        #[test]
        fn bytes_keep_their_order_and_their_delay_within_the_window(steps in steps(), open_ns in 0_u64..5000) {
            let window = 500;
            let mut flow = Flow::new(DELAY_NS, open_ns, window);
            let mut tally = Tally::new();
            let (mut now, mut sent, mut taken) = (0_u64, Vec::<u64>::new(), 0_usize);
            for step in steps {
                match step {
                    Step::Pass(ns) => now += ns,
                    Step::Read(wanted) => {
                        let count = wanted.min(flow.room());
                        let bytes: Vec<u8> = (0..count).map(|place| (sent.len() + place) as u8).collect();
                        sent.extend(std::iter::repeat_n(now, count));
                        flow.take_in(now, &bytes);
                    }
                    Step::Take(wanted) => {
                        flow.arrive(now, &mut tally);
                        let count = wanted.min(flow.front().len());
                        for (place, byte) in flow.front()[..count].iter().enumerate() {
                            prop_assert_eq!(*byte, (taken + place) as u8);
                            prop_assert!(now >= sent[taken + place].max(open_ns) + DELAY_NS);
                        }
                        flow.consume(count);
                        taken += count;
                    }
                }
                prop_assert!(sent.len() - taken <= window);
                prop_assert_eq!(flow.room(), window - (sent.len() - taken));
            }
            let end = now.max(open_ns) + DELAY_NS;
            flow.finish(now, Ending::Close);
            flow.arrive(end - 1, &mut tally);
            prop_assert_eq!(flow.last_word(), None);
            prop_assert_eq!(flow.next_arrival().map(|at| at >= end), Some(true));
            flow.arrive(end, &mut tally);
            prop_assert_eq!(flow.next_arrival(), None);
            while !flow.front().is_empty() {
                prop_assert_eq!(flow.last_word(), None);
                taken += flow.front().len();
                flow.consume(flow.front().len());
            }
            prop_assert_eq!(taken, sent.len(), "nothing is lost");
            prop_assert_eq!(flow.last_word(), Some(Ending::Close));
        }
    }

    #[test]
    fn a_break_does_not_wait_for_a_receiver_that_takes_nothing() {
        let mut flow = Flow::new(DELAY_NS, 0, 10);
        flow.take_in(0, b"unread");
        flow.finish(5, Ending::Close);
        flow.finish(7, Ending::Reset);
        flow.arrive(DELAY_NS + 6, &mut Tally::new());
        assert_eq!(flow.last_word(), None);
        flow.arrive(DELAY_NS + 7, &mut Tally::new());
        assert_eq!(flow.last_word(), Some(Ending::Reset));
    }

    #[test]
    fn the_next_arrival_is_said_until_it_has_come() {
        let mut flow = Flow::new(DELAY_NS, 0, 10);
        assert_eq!(flow.next_arrival(), None);
        flow.take_in(1, b"a");
        flow.finish(2, Ending::Close);
        assert_eq!(flow.next_arrival(), Some(DELAY_NS + 1));
        flow.arrive(DELAY_NS + 1, &mut Tally::new());
        assert_eq!(flow.next_arrival(), Some(DELAY_NS + 2), "also when it is late");
        flow.arrive(DELAY_NS + 9, &mut Tally::new());
        assert_eq!(flow.next_arrival(), None, "what is left waits for the receiver, not for a time");
    }

    #[test]
    fn single_bytes_are_under_way_in_a_limited_number_of_parts() {
        let mut flow = Flow::new(DELAY_NS, 0, 1 << 20);
        let mut read = 0;
        while flow.room() > 0 {
            flow.take_in(read, b"x");
            read += 1;
        }
        assert!(flow.is_full_of_chunks() && read < 1 << 15, "{read}");
        flow.arrive(DELAY_NS + 10, &mut Tally::new());
        assert!(flow.room() > 0);
    }
}
