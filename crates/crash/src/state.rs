//! One content of the volumes after a cut.

use crate::draw::Random;
use crate::fate::Fate;
use crate::history::{BLOCK_BYTES, History, Request, digest};
use crate::reading::{Lie, Reading};

/// A request that was not durable, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undecided {
    /// Its number.
    pub request: u32,
    /// What stays.
    pub fate: Fate,
}

/// Where the bytes of a block are.
#[derive(Debug)]
enum Content<'a> {
    Log(&'a [u8]),
    Made(Vec<u8>),
    Zeros,
}

/// The content of all volumes after a cut. What no block of it names is zeros.
#[derive(Debug)]
pub struct State<'a> {
    volumes: Vec<Vec<(u64, Content<'a>)>>,
    /// What was not durable, in the order in which it came.
    pub undecided: Vec<Undecided>,
    /// The request that a lie of the device spoilt.
    pub spoilt: Option<u32>,
    hash: u128,
}

impl<'a> State<'a> {
    /// Puts it together. `position`: where the block is cut that has this place among those of its volume; `durable`: the event with
    /// which a request became durable.
    pub(crate) fn compose(
        history: &'a History,
        position: impl Fn(usize, usize) -> u32,
        durable: impl Fn(u32) -> u32,
        undecided: Vec<Undecided>,
        reading: &Reading,
        random: Random,
    ) -> Self {
        let fate = |request: u32| {
            let found = undecided.binary_search_by_key(&request, |one| one.request);
            found.ok().map(|place| &undecided[place].fate)
        };
        let mut hash = 0_u128;
        let mut volumes: Vec<Vec<(u64, Content<'a>)>> = Vec::new();
        let mut last_writers = Vec::new();
        for volume in 0..history.log().header().volumes.len() {
            let mut blocks = Vec::with_capacity(history.blocks(volume).len());
            for (place, (&block, writers)) in history.blocks(volume).iter().enumerate() {
                let position = position(volume, place);
                let before = writers.partition_point(|request| history.requests()[*request as usize].came < position);
                let settled = writers[..before].iter().rposition(|request| durable(*request) < position);
                let base = settled.map(|place| writers[place]);
                let above = settled.map_or(0, |place| place + 1);
                let torn =
                    writers[above..before].iter().any(|request| fate(*request).is_some_and(|one| *one != Fate::Lost));
                if !torn {
                    let Some(base) = base else { continue };
                    let request = &history.requests()[base as usize];
                    hash = hash.wrapping_add(history.digest(request, block));
                    blocks.push((block, history.bytes(request, block).map_or(Content::Zeros, Content::Log)));
                    last_writers.push((volume, blocks.len() - 1, base));
                    continue;
                }
                let mut bytes = vec![0; BLOCK_BYTES as usize];
                for request in base.iter().chain(&writers[above..before]) {
                    let over =
                        if Some(*request) == base { &Fate::Whole } else { fate(*request).unwrap_or(&Fate::Lost) };
                    overlay(&mut bytes, history, &history.requests()[*request as usize], block, over);
                }
                hash = hash.wrapping_add(digest(volume as u8, block, &bytes));
                blocks.push((block, Content::Made(bytes)));
            }
            volumes.push(blocks);
        }
        let mut state = Self { volumes, undecided, spoilt: None, hash };
        last_writers.retain(|(volume, _, _)| reading.lie_of(*volume) != Lie::None);
        state.spoil(history, &last_writers, reading.lie, random);
        state
    }

    /// Applies what a device does to a write that was durable.
    fn spoil(&mut self, history: &'a History, durable: &[(usize, usize, u32)], lie: Lie, mut random: Random) {
        let spoils =
            [Lie::WriteLost, Lie::WriteShort, Lie::WriteZeros, Lie::WriteMisdirected, Lie::BlocksSwapped, Lie::BitRot];
        if durable.is_empty() || !spoils.contains(&lie) {
            return;
        }
        let mut draw = |bound: usize| random.below(bound as u64) as usize;
        let (volume, place, request) = durable[draw(durable.len())];
        self.spoilt = Some(request);
        self.hash = self.hash.wrapping_add((u128::from(request) << 64) | place as u128);
        if lie == Lie::BitRot {
            let bit = draw(BLOCK_BYTES as usize * 8);
            self.hash = self.hash.wrapping_add((bit as u128) << 96);
            let (_, content) = &mut self.volumes[volume][place];
            let mut bytes = content.bytes().to_vec();
            bytes[bit / 8] ^= 1 << (bit % 8);
            *content = Content::Made(bytes);
            return;
        }
        if lie == Lie::BlocksSwapped {
            let others = durable.iter().filter(|one| one.0 == volume && one.1 != place);
            let others: Vec<usize> = others.map(|one| one.1).collect();
            if others.is_empty() {
                return;
            }
            let other = others[draw(others.len())];
            self.hash = self.hash.wrapping_add((other as u128) << 96);
            let blocks = &mut self.volumes[volume];
            let [one, two] = [place, other].map(|at| blocks[at].1.bytes().to_vec());
            blocks[place].1 = Content::Made(two);
            blocks[other].1 = Content::Made(one);
            return;
        }
        let spoilt = &history.requests()[request as usize];
        let (first, end) = (spoilt.offset / BLOCK_BYTES, (spoilt.offset + spoilt.len) / BLOCK_BYTES);
        let first = if lie == Lie::WriteShort { first + (end - first) / 2 } else { first };
        let blocks = &mut self.volumes[volume];
        for (block, content) in blocks.iter_mut().filter(|(block, _)| (first..end).contains(block)) {
            // What was there before it: the writer before, wherever it is durable too.
            let writers = &history.blocks(volume)[block];
            let before = writers
                .iter()
                .rev()
                .skip_while(|writer| **writer >= request)
                .map(|writer| &history.requests()[*writer as usize]);
            let zeros = lie == Lie::WriteZeros;
            let old = before.into_iter().next().filter(|_| !zeros).and_then(|before| history.bytes(before, *block));
            *content = old.map_or(Content::Zeros, Content::Log);
        }
        if lie == Lie::WriteMisdirected {
            let elsewhere: Vec<usize> =
                (0..blocks.len()).filter(|place| !(first..end).contains(&blocks[*place].0)).collect();
            if elsewhere.is_empty() {
                return;
            }
            let target = elsewhere[draw(elsewhere.len())];
            self.hash = self.hash.wrapping_add((target as u128) << 96);
            for step in 0..(end - first) as usize {
                let Some((_, content)) = blocks.get_mut(target + step) else { break };
                *content = history.bytes(spoilt, first + step as u64).map_or(Content::Zeros, Content::Log);
            }
        }
    }

    /// A name of the content: two states of one are equal, and others differ but for an accident of 1 in 2^64 for billions.
    pub fn hash(&self) -> u128 {
        self.hash
    }

    /// Gives the blocks of a volume that may differ from zeros to `put`, each with its first byte, in order.
    ///
    /// # Errors
    /// The first of `put`.
    pub fn write<E>(&self, volume: usize, mut put: impl FnMut(u64, &[u8]) -> Result<(), E>) -> Result<(), E> {
        for (block, content) in &self.volumes[volume] {
            put(block * BLOCK_BYTES, content.bytes())?;
        }
        Ok(())
    }
}

impl Content<'_> {
    fn bytes(&self) -> &[u8] {
        const ZEROS: [u8; BLOCK_BYTES as usize] = [0; BLOCK_BYTES as usize];
        match self {
            Self::Log(bytes) => bytes,
            Self::Made(bytes) => bytes,
            Self::Zeros => &ZEROS,
        }
    }
}

/// Lays what stays of a request in a block over what was there.
fn overlay(bytes: &mut [u8], history: &History, request: &Request, block: u64, fate: &Fate) {
    let begin = block * BLOCK_BYTES - request.offset;
    let ranges = match fate {
        Fate::Lost => return,
        Fate::Whole => &[(0, request.len)][..],
        Fate::Torn(ranges) => ranges,
    };
    for &(from, to) in ranges {
        let (from, to) = (from.max(begin), to.min(begin + BLOCK_BYTES));
        if from < to {
            let (from, to) = ((from - begin) as usize, (to - begin) as usize);
            match history.bytes(request, block) {
                Some(new) => bytes[from..to].copy_from_slice(&new[from..to]),
                None => bytes[from..to].fill(0),
            }
        }
    }
}
