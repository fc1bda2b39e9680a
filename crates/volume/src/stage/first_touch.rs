//! First touch: a volume that was made from a snapshot is there at once, and its blocks come when they are asked for.
//!
//! The snapshot's blocks are fetched one after the other at a shared rate, in the order of their addresses; a block that a
//! request asks for is fetched next, and the request waits for it. Each block is fetched once. A block that the snapshot lacks
//! is zeros at once. Since one fetch follows the other without a pause, the n-th begins at an instant that depends on n alone,
//! whatever was asked for: how much of the volume is there is a function of time.

use crate::io::{ALL_PPM, Io, Nanos};
use crate::params::FirstTouchParams;
use crate::seed::Stream;
use crate::stage::service_time::lookup;

const NANO: u128 = 1_000_000_000;

/// Above the requests that a loop device keeps in flight.
const EXPECTED_COMING: usize = 512;

/// The blocks of a snapshot on their way to a volume.
#[derive(Clone, Debug)]
pub struct FirstTouch {
    params: FirstTouchParams,
    draws: Stream,
    ordinal: u64,
    /// One bit for each block whose fetch has not begun.
    absent: Vec<u64>,
    /// The word of `absent` before which there is none.
    next_word: usize,
    /// Blocks that the snapshot holds.
    held: u64,
    /// Fetches begun.
    begun: u64,
    restored_at: Nanos,
    /// Blocks whose fetch has begun, and when each is there.
    coming: Vec<(u64, Nanos)>,
    on_demand: u64,
    waited_ns: Nanos,
}

/// How far the blocks of a snapshot have come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Blocks that the snapshot holds.
    pub held: u64,
    /// Of these, the fetched ones.
    pub fetched: u64,
    /// When the last one is fetched.
    pub ready_at: Nanos,
}

impl Progress {
    /// The share that has been fetched, in parts per million; of nothing it is all.
    pub fn ppm(self) -> u32 {
        let share = u128::from(self.fetched) * u128::from(ALL_PPM);
        u32::try_from(share.checked_div(u128::from(self.held)).unwrap_or(u128::from(ALL_PPM))).unwrap_or(ALL_PPM)
    }
}

impl FirstTouch {
    /// Of a volume of so many bytes, before it is known what its snapshot holds. Panics on malformed parameters.
    pub(crate) fn new(params: FirstTouchParams, size_bytes: u64, draws: Stream) -> Self {
        assert!(params.block_bytes > 0 && params.bytes_per_s > 0, "blocks are fetched, at some rate");
        if let Some(rule) = params.fetch.broken_rule() {
            panic!("first touch: {rule}");
        }
        let blocks = size_bytes.div_ceil(params.block_bytes);
        let words = usize::try_from(blocks.div_ceil(64)).expect("a bit for each block fits into memory");
        Self {
            params,
            draws,
            ordinal: 0,
            absent: vec![0; words],
            next_word: 0,
            held: 0,
            begun: 0,
            restored_at: 0,
            coming: Vec::with_capacity(EXPECTED_COMING),
            on_demand: 0,
            waited_ns: 0,
        }
    }

    /// The snapshot holds these bytes, and its blocks begin to come at `now`. Panics when some have been asked for before.
    pub fn hold(&mut self, now: Nanos, offset: u64, len: u64) {
        assert_eq!(self.begun, 0, "what a snapshot holds is known before it is read");
        self.restored_at = now;
        for block in self.blocks(offset, len) {
            let (word, bit) = place(block);
            let Some(word) = self.absent.get_mut(word) else { break };
            self.held += u64::from(*word & bit == 0);
            *word |= bit;
        }
    }

    /// When everything that `io` touches is there, if it comes at `now`. What is not on its way is fetched next.
    pub fn ready_at(&mut self, now: Nanos, io: &Io) -> Nanos {
        if self.begun == self.held && self.coming.is_empty() {
            return now;
        }
        self.fetch_until(now);
        self.coming.retain(|(_, there_at)| *there_at > now);
        let ready_at = self.blocks(io.offset, u64::from(io.len)).map(|block| self.there_at(now, block)).max();
        let ready_at = ready_at.unwrap_or(now);
        self.waited_ns = self.waited_ns.saturating_add(ready_at - now);
        ready_at
    }

    /// How far the blocks have come at `now`.
    pub fn progress(&self, now: Nanos) -> Progress {
        let ended = self.turns_in(now.saturating_sub(self.restored_at));
        let ready_at = if self.held == 0 { self.restored_at } else { self.turn_at(self.held) };
        Progress { held: self.held, fetched: ended.min(self.held), ready_at }
    }

    /// Blocks that were fetched because a request asked for them.
    pub fn on_demand(&self) -> u64 {
        self.on_demand
    }

    /// Time for which requests waited for blocks.
    pub fn waited_ns(&self) -> Nanos {
        self.waited_ns
    }

    fn blocks(&self, offset: u64, len: u64) -> std::ops::Range<u64> {
        let block_bytes = self.params.block_bytes;
        offset / block_bytes..offset.saturating_add(len).div_ceil(block_bytes)
    }

    /// Fetches in the background what had its turn before `now`.
    fn fetch_until(&mut self, now: Nanos) {
        let elapsed = now.saturating_sub(self.restored_at);
        // A turn that begins at this instant is left to the request that comes now.
        let due = elapsed.checked_sub(1).map_or(0, |before| self.turns_in(before) + 1).min(self.held);
        // What is there already is not on its way: after a long pause that is most, and goes a word at a time.
        let there = due.min(self.turns_in(elapsed));
        while self.begun < there {
            let left = there - self.begun;
            let word = &mut self.absent[self.next_word];
            let blocks = u64::from(word.count_ones());
            if blocks <= left {
                *word = 0;
                self.begun += blocks;
                self.next_word += 1;
            } else {
                for _ in 0..left {
                    *word &= *word - 1;
                }
                self.begun += left;
            }
        }
        while self.begun < due {
            while self.absent[self.next_word] == 0 {
                self.next_word += 1;
            }
            let block = self.next_word as u64 * 64 + u64::from(self.absent[self.next_word].trailing_zeros());
            self.begin(block, 0);
        }
    }

    /// When a block is there that a request touches at `now`.
    fn there_at(&mut self, now: Nanos, block: u64) -> Nanos {
        let (word, bit) = place(block);
        if self.absent.get(word).is_none_or(|word| word & bit == 0) {
            let coming = self.coming.iter().find(|(other, _)| *other == block);
            return coming.map_or(now, |(_, there_at)| *there_at);
        }
        let fetch_ns = lookup(&self.params.fetch, self.params.block_bytes, self.draws.draw(self.ordinal));
        self.ordinal += 1;
        self.on_demand += 1;
        self.begin(block, now.saturating_add(fetch_ns))
    }

    /// Gives a block the next turn. It is there when the turn ends, and not before `earliest`: the way to the store and the
    /// shared rate overlap, as service time and limits do (docs/decision/0003).
    fn begin(&mut self, block: u64, earliest: Nanos) -> Nanos {
        let (word, bit) = place(block);
        self.absent[word] &= !bit;
        self.begun += 1;
        let there_at = self.turn_at(self.begun).max(earliest);
        self.coming.push((block, there_at));
        there_at
    }

    /// When the turn of fetch `number` begins, counted from 0, which is when the one before it ends.
    fn turn_at(&self, number: u64) -> Nanos {
        let bytes = u128::from(number) * u128::from(self.params.block_bytes);
        let ns = (bytes * NANO).div_ceil(u128::from(self.params.bytes_per_s));
        self.restored_at.saturating_add(u64::try_from(ns).unwrap_or(Nanos::MAX))
    }

    /// Whole turns that fit into so much time.
    fn turns_in(&self, ns: Nanos) -> u64 {
        let turns = u128::from(ns) * u128::from(self.params.bytes_per_s) / (u128::from(self.params.block_bytes) * NANO);
        u64::try_from(turns).unwrap_or(u64::MAX)
    }
}

/// The word of a block, and its bit there.
fn place(block: u64) -> (usize, u64) {
    (usize::try_from(block / 64).unwrap_or(usize::MAX), 1 << (block % 64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::{IoId, Op, VolumeId};
    use crate::params::QuantileTable;
    use crate::seed::Purpose;

    const BLOCK: u64 = 512 << 10;

    /// Of so many blocks, 1,000 of which come in a second.
    fn restored(blocks: u64) -> FirstTouch {
        let fetch = QuantileTable::constant(0);
        let params = FirstTouchParams { block_bytes: BLOCK, bytes_per_s: 1_000 * BLOCK, fetch };
        let mut touch = FirstTouch::new(params, blocks * BLOCK, Stream::new(1, VolumeId(0), Purpose::FirstTouch));
        touch.hold(0, 0, blocks * BLOCK);
        touch
    }

    fn read(offset: u64) -> Io {
        Io { id: IoId(0), op: Op::Read, offset, len: 4096 }
    }

    #[test]
    fn blocks_that_came_while_nothing_was_asked_for_are_not_kept_as_on_their_way() {
        let blocks = 1 << 20;
        let mut touch = restored(blocks);
        let room = touch.coming.capacity();
        // A little before the end: 1,048.576 s.
        let now = 1_048_000_000_000;
        assert_eq!(touch.ready_at(now, &read(0)), now, "the first block is there");
        assert!(touch.coming.len() <= 1, "{} are on their way", touch.coming.len());
        assert_eq!(touch.coming.capacity(), room, "no memory is asked for under the lock");
        assert_eq!(touch.begun, 1_048_000, "the next one has its turn now");
        assert!(touch.ready_at(now, &read((blocks - 1) * BLOCK)) > now, "the last one is not");
    }

    /// As with requests that come all the time, to the nanosecond.
    #[test]
    fn a_pause_changes_nothing_of_what_comes_after_it() {
        let mut asked_often = restored(4_000);
        let mut asked_once = restored(4_000);
        for ms in 0..1_777 {
            asked_often.ready_at(ms * 1_000_000 + 1, &read(0));
        }
        for block in [1_776, 1_777, 1_778, 1_900, 3_999] {
            let now = 1_777_300_000;
            let io = read(block * BLOCK);
            assert_eq!(asked_often.ready_at(now, &io), asked_once.ready_at(now, &io), "block {block}");
            assert_eq!(asked_often.begun, asked_once.begun);
        }
    }
}
