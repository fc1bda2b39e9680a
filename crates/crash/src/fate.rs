//! What becomes of the writes that were not durable when the power went.

use crate::draw::Random;
use crate::reading::{Reading, Tearing};

/// Up to so many outcomes all are enumerated: those of eight writes that are there or not.
const ENUMERATED: u64 = 256;

/// Which parts of an undecided write stay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// None of it.
    Lost,
    /// All of it.
    Whole,
    /// These of its bytes, as ranges from its beginning.
    Torn(Vec<(u64, u64)>),
}

/// The fates of undecided writes, given by the ends of the parts of each ([`Reading::parts`]), in the state of this number at an
/// instant of this number.
///
/// Where there are few outcomes, the numbers go through all of them, in an order that the seed decides, and `None` says
/// that they are through. Else each write is lost, whole or torn by a draw.
pub(crate) fn fates(reading: &Reading, parts: &[Vec<u64>], seed: u64, instant: u64, state: u64) -> Option<Vec<Fate>> {
    let outcomes = |ends: &Vec<u64>| outcomes(reading.tearing, ends.len());
    let all = parts.iter().map(outcomes).try_fold(1_u64, u64::checked_mul).filter(|all| *all <= ENUMERATED);
    let Some(all) = all else {
        let mut random = Random::derived(seed, 2, instant ^ (state << 48));
        return Some(parts.iter().map(|ends| drawn(reading.tearing, ends, &mut random)).collect());
    };
    let mut order: Vec<u64> = (0..all).collect();
    let mut random = Random::derived(seed, 3, instant);
    for place in (1..order.len()).rev() {
        order.swap(place, random.below(place as u64 + 1) as usize);
    }
    let mut rest = *order.get(usize::try_from(state).ok()?)?;
    let each = parts.iter().map(|ends| {
        let count = outcomes(ends);
        let which = rest % count;
        rest /= count;
        outcome(reading.tearing, ends, which)
    });
    Some(each.collect())
}

/// How many fates a write of so many parts can have.
fn outcomes(tearing: Tearing, parts: usize) -> u64 {
    match tearing {
        Tearing::Whole => 2,
        Tearing::Prefix(_) => parts as u64 + 1,
        Tearing::Pieces(_) => 1_u64.checked_shl(parts as u32).unwrap_or(u64::MAX),
    }
}

/// The fate of this number.
fn outcome(tearing: Tearing, ends: &[u64], which: u64) -> Fate {
    match tearing {
        Tearing::Whole => torn(ends, |_| which == 1),
        Tearing::Prefix(_) => torn(ends, |part| (part as u64) < which),
        Tearing::Pieces(_) => torn(ends, |part| (which >> part) & 1 == 1),
    }
}

/// A third is lost, a third is whole; of the rest anything.
fn drawn(tearing: Tearing, ends: &[u64], random: &mut Random) -> Fate {
    match (random.below(3), tearing) {
        (0, _) => Fate::Lost,
        (1, _) => Fate::Whole,
        (_, Tearing::Whole) => outcome(tearing, ends, random.below(2)),
        (_, Tearing::Prefix(_)) => outcome(tearing, ends, random.below(ends.len() as u64 + 1)),
        (_, Tearing::Pieces(_)) => torn(ends, |_| random.below(2) == 1),
    }
}

fn torn(ends: &[u64], mut stays: impl FnMut(usize) -> bool) -> Fate {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    let mut begin = 0;
    for (part, &end) in ends.iter().enumerate() {
        if stays(part) {
            match ranges.last_mut() {
                Some(last) if last.1 == begin => last.1 = end,
                _ => ranges.push((begin, end)),
            }
        }
        begin = end;
    }
    match (ranges.as_slice(), ends.last()) {
        ([], _) => Fate::Lost,
        ([(0, end)], Some(len)) if end == len => Fate::Whole,
        _ => Fate::Torn(ranges),
    }
}
