//! Arrays: one volume to the host, several to the limits.
//!
//! A request is cut at chunks and its pieces go to the members, each with its limits, its state and its place under the
//! instance's; it is done when the last piece is. Pieces of one request that are adjacent on a member are one request there,
//! as the kernel merges them on their way. Where a column has copies, a write goes to all of them and a read to the one
//! with the fewest requests outstanding, in turn where they are equal.
//!
//! A copy may be remote: then it is behind a round trip, takes writes only and is none of the instance's volumes. That a
//! request reaches it half a round trip later is the same as that its clock is so much behind, so the whole round trip is
//! added to when the copy says that it is done.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use serde::{Deserialize, Serialize};

use crate::counters::Counters;
use crate::extents::Extents;
use crate::io::{Event, Io, IoId, IoResult, Nanos, Op};
use crate::params::VolumeParams;

/// Requests to an array, and their pieces, before memory is asked for.
const EXPECTED_REQUESTS: usize = 512;
const EXPECTED_PIECES: usize = 8 * EXPECTED_REQUESTS;

/// An extent is cut into parts of this size, as a request's length is 32 bits.
const EXTENT_PART_BYTES: u64 = 1 << 30;

/// An array of equal volumes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArrayParams {
    /// Members that the content is striped over.
    pub columns: u16,
    /// Volumes of the instance that have the same content: 1 for RAID-0, 2 for RAID-10.
    pub copies: u16,
    /// Bytes of one column before the next one's turn.
    pub chunk_bytes: u64,
    /// Every volume has a synchronous copy elsewhere, this far away and back. `None`: there is none.
    pub remote_round_trip_ns: Option<Nanos>,
    /// Each of the volumes.
    pub member: VolumeParams,
}

impl ArrayParams {
    /// Bytes that the array holds: whole chunks of each column.
    pub fn size_bytes(&self) -> u64 {
        self.member.size_bytes / self.chunk_bytes * self.chunk_bytes * u64::from(self.columns)
    }

    /// Volumes of the instance.
    pub fn members(&self) -> u32 {
        u32::from(self.columns) * u32::from(self.copies)
    }

    /// The first rule that the parameters break, if any.
    pub fn broken_rule(&self) -> Option<&'static str> {
        if self.columns == 0 || self.copies == 0 {
            return Some("an array has members");
        }
        if self.chunk_bytes == 0 || !self.chunk_bytes.is_multiple_of(4096) {
            return Some("a chunk is a multiple of 4 KiB");
        }
        if self.chunk_bytes > self.member.size_bytes {
            return Some("a chunk is not larger than a member");
        }
        None
    }
}

/// A piece of a request on one column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub column: usize,
    /// Where on the column's members.
    pub offset: u64,
    pub len: u32,
}

/// The pieces of a request, in the order of their chunks.
pub(crate) fn pieces(columns: u64, chunk: u64, offset: u64, len: u32) -> impl Iterator<Item = Piece> {
    let last_byte = offset.saturating_add(u64::from(len).max(1) - 1);
    let (first, last) = (offset / chunk, last_byte / chunk);
    let touched = (last - first + 1).min(columns);
    (first..first + touched).map(move |chunk_first| {
        let chunk_last = chunk_first + (last - chunk_first) / columns * columns;
        let begin = chunk_first / columns * chunk + if chunk_first == first { offset % chunk } else { 0 };
        let end = chunk_last / columns * chunk + if chunk_last == last { last_byte % chunk + 1 } else { chunk };
        let piece = if len == 0 { 0 } else { u32::try_from(end - begin).unwrap_or(u32::MAX) };
        Piece { column: (chunk_first % columns) as usize, offset: begin, len: piece }
    })
}

/// A member: a volume of the model.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    /// Its index among the instance's volumes.
    pub volume: usize,
    /// Whether reads go to it.
    pub local: bool,
}

/// A request whose pieces are under way.
#[derive(Clone, Copy, Debug)]
struct Pending {
    id: IoId,
    in_range: bool,
    /// A piece of it fails.
    failed: bool,
    /// Pieces that are not granted.
    missing: u32,
    done_at: Nanos,
}

/// A completion to come, ordered by time and then by the host's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Completion {
    done_at: Nanos,
    id: IoId,
    result: IoResult,
}

/// An array: which volumes it is made of, and what is under way on them.
#[derive(Clone, Debug)]
pub(crate) struct Array {
    params: ArrayParams,
    /// Of each column, its copies.
    columns: Vec<Vec<Member>>,
    requests: Slab<Pending>,
    /// Of each piece, the place of its request.
    pieces: Slab<usize>,
    completions: BinaryHeap<Reverse<Completion>>,
    /// Requests taken in, for names that are not used twice and for reads in turn.
    ordinal: u64,
    /// Requests and bytes as they came in.
    pub counters: Counters,
}

impl Array {
    pub fn new(params: ArrayParams, columns: Vec<Vec<Member>>) -> Self {
        Self {
            params,
            columns,
            requests: Slab::new(EXPECTED_REQUESTS),
            pieces: Slab::new(EXPECTED_PIECES),
            completions: BinaryHeap::with_capacity(EXPECTED_REQUESTS),
            ordinal: 0,
            counters: Counters::default(),
        }
    }

    /// Its members have become volumes of other parameters.
    pub fn modify(&mut self, member: VolumeParams) {
        self.params.member = member;
    }

    /// Its volumes, column by column.
    pub fn members(&self) -> impl Iterator<Item = Member> + '_ {
        self.columns.iter().flatten().copied()
    }

    /// Where extents of the array lie: each part with the volume that has it, all copies of it.
    pub fn on_members<'a>(&'a self, extents: &'a Extents) -> impl Iterator<Item = (usize, u64, u64)> + 'a {
        let (count, chunk) = (self.columns.len() as u64, self.params.chunk_bytes);
        let parts = extents.iter().flat_map(|(offset, len)| {
            let begins = (0..len).step_by(EXTENT_PART_BYTES as usize);
            begins.map(move |at| (offset + at, EXTENT_PART_BYTES.min(len - at) as u32))
        });
        let on_columns = parts.flat_map(move |(offset, len)| pieces(count, chunk, offset, len));
        on_columns.flat_map(|piece| {
            let members = self.columns[piece.column].iter();
            members.map(move |member| (member.volume, piece.offset, u64::from(piece.len)))
        })
    }

    /// Takes a request in and appends its pieces to `out`, each with the volume that it is for. `load` says how many
    /// requests a volume has outstanding, `lost` whether it is lost: the array does without it while the column has a copy.
    pub fn submit(
        &mut self,
        io: Io,
        load: impl Fn(usize) -> usize,
        lost: impl Fn(usize) -> bool,
        out: &mut Vec<(usize, Io)>,
    ) {
        self.counters.count(&io);
        let end = io.offset.checked_add(u64::from(io.len));
        let in_range = end.is_some_and(|end| end <= self.params.size_bytes());
        let request = self.requests.insert(Pending { id: io.id, in_range, failed: false, missing: 0, done_at: 0 });
        let turn = self.ordinal as usize;
        let (count, chunk) = (self.columns.len() as u64, self.params.chunk_bytes);
        for piece in pieces(count, chunk, io.offset, io.len) {
            let members = &self.columns[piece.column];
            let survived = members.iter().any(|member| member.local && !lost(member.volume));
            let usable = |member: &Member| !survived || !lost(member.volume);
            let chosen = match io.op {
                Op::Write => None,
                Op::Read => least_loaded(members, turn, usable, &load),
            };
            let asked = |member: &&Member| usable(member) && chosen.is_none_or(|volume| volume == member.volume);
            for member in members.iter().filter(asked) {
                let place = self.pieces.insert(request);
                // A name of its own: a volume may remember it for longer than the piece is outstanding.
                let id = name(self.ordinal, place);
                self.ordinal += 1;
                self.requests.get_mut(request).missing += 1;
                out.push((member.volume, Io { id, offset: piece.offset, len: piece.len, ..io }));
            }
        }
    }

    /// What the event of a volume means for the array: a grant, if it was the last that a request waited for.
    pub fn event(&mut self, volume: usize, event: Event) -> Option<Event> {
        let (id, done_at, failed) = match event {
            Event::Granted { id, done_at } => (id, done_at, false),
            Event::Failing { id, done_at } => (id, done_at, true),
            Event::Done { .. } => return None,
        };
        let remote = self.columns.iter().flatten().any(|member| member.volume == volume && !member.local);
        let away_ns = self.params.remote_round_trip_ns.filter(|_| remote).unwrap_or(0);
        let request = self.pieces.remove(place_of(id));
        let pending = self.requests.get_mut(request);
        pending.missing -= 1;
        pending.failed |= failed;
        pending.done_at = pending.done_at.max(done_at.saturating_add(away_ns));
        if pending.missing > 0 {
            return None;
        }
        let Pending { id, in_range, failed, done_at, .. } = self.requests.remove(request);
        let result = IoResult::of(in_range, failed);
        self.completions.push(Reverse(Completion { done_at, id, result }));
        Some(result.granted(id, done_at))
    }

    /// When the next request is complete.
    pub fn next_done(&self) -> Option<Nanos> {
        self.completions.peek().map(|Reverse(completion)| completion.done_at)
    }

    /// Takes the completion that is due at [`Self::next_done`].
    pub fn step(&mut self) -> Option<(Nanos, Event)> {
        let Reverse(Completion { done_at, id, result }) = self.completions.pop()?;
        Some((done_at, Event::Done { id, result }))
    }

    /// Requests submitted and not completed.
    pub fn outstanding(&self) -> usize {
        self.requests.len() + self.completions.len()
    }
}

/// Bits of a piece's name that are its place; the rest is its ordinal.
const PLACE_BITS: u32 = 24;

fn name(ordinal: u64, place: usize) -> IoId {
    assert!(place < 1 << PLACE_BITS, "more pieces are outstanding than a host can have");
    IoId(ordinal << PLACE_BITS | place as u64)
}

fn place_of(id: IoId) -> usize {
    (id.0 & ((1 << PLACE_BITS) - 1)) as usize
}

/// The local copy with the fewest requests outstanding, beginning with the one whose turn it is.
fn least_loaded(
    members: &[Member],
    turn: usize,
    usable: impl Fn(&Member) -> bool,
    load: impl Fn(usize) -> usize,
) -> Option<usize> {
    let in_turn = (0..members.len()).map(|i| &members[(turn + i) % members.len()]);
    in_turn
        .filter(|member| member.local && usable(member))
        .map(|member| member.volume)
        .min_by_key(|volume| load(*volume))
}

/// Values at places that are used again.
#[derive(Clone, Debug)]
struct Slab<T> {
    values: Vec<T>,
    free: Vec<usize>,
}

impl<T: Copy> Slab<T> {
    fn new(expected: usize) -> Self {
        Self { values: Vec::with_capacity(expected), free: Vec::with_capacity(expected) }
    }

    fn insert(&mut self, value: T) -> usize {
        if let Some(place) = self.free.pop() {
            self.values[place] = value;
            return place;
        }
        self.values.push(value);
        self.values.len() - 1
    }

    fn get_mut(&mut self, place: usize) -> &mut T {
        &mut self.values[place]
    }

    fn remove(&mut self, place: usize) -> T {
        self.free.push(place);
        self.values[place]
    }

    fn len(&self) -> usize {
        self.values.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn chunks_take_turns() {
        let all = |offset, len| pieces(4, 65_536, offset, len).collect::<Vec<_>>();
        let piece = |column, offset, len| Piece { column, offset, len };
        assert_eq!(all(0, 65_536), [piece(0, 0, 65_536)]);
        assert_eq!(all(65_536, 8_192), [piece(1, 0, 8_192)]);
        assert_eq!(all(4 * 65_536 + 4_096, 4_096), [piece(0, 65_536 + 4_096, 4_096)]);
        assert_eq!(all(61_440, 8_192), [piece(0, 61_440, 4_096), piece(1, 0, 4_096)]);
        // Six chunks on four columns: the first two columns have two, which are adjacent there.
        let [a, b, c, d] = all(0, 6 * 65_536)[..] else { panic!("four pieces") };
        assert_eq!((a, b), (piece(0, 0, 131_072), piece(1, 0, 131_072)));
        assert_eq!((c, d), (piece(2, 0, 65_536), piece(3, 0, 65_536)));
    }

    proptest! {
        /// Byte by byte: chunk `c` lies on column `c % n`, as the `c / n`-th there.
        #[test]
        fn every_byte_is_where_the_layout_says_and_once(
            columns in 1u64..9, chunk in 1u64..9, offset in 0u64..1_000, len in 1u32..200,
        ) {
            let mut wanted: Vec<(usize, u64)> = (offset..offset + u64::from(len))
                .map(|byte| (byte / chunk, byte % chunk))
                .map(|(c, rest)| ((c % columns) as usize, c / columns * chunk + rest))
                .collect();
            let found = pieces(columns, chunk, offset, len);
            let mut found: Vec<(usize, u64)> =
                found.flat_map(|p| (p.offset..p.offset + u64::from(p.len)).map(move |at| (p.column, at))).collect();
            wanted.sort_unstable();
            found.sort_unstable();
            prop_assert_eq!(found, wanted);
        }
    }
}
