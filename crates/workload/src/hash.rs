//! pgbench's hash functions and its permutation, value for value.

use crate::random::Random;

/// FNV-1a of the value's eight bytes, lowest first, with the seed mixed into the offset basis (`hash_fnv1a`).
pub fn fnv1a(value: i64, seed: i64) -> i64 {
    const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x100_0000_01b3;
    let start = OFFSET_BASIS ^ seed as u64;
    value.to_le_bytes().iter().fold(start, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME)) as i64
}

/// MurmurHash2 (64 bit, Austin Appleby) of the value's eight bytes (`hash_murmur2`, and `hash`).
pub fn murmur2(value: i64, seed: i64) -> i64 {
    const FACTOR: u64 = 0xc6a4_a793_5bd1_e995;
    const SHIFT: u32 = 47;
    let mut block = (value as u64).wrapping_mul(FACTOR);
    block ^= block >> SHIFT;
    let start = seed as u64 ^ FACTOR.wrapping_mul(8);
    let mut hash = (start ^ block.wrapping_mul(FACTOR)).wrapping_mul(FACTOR);
    hash ^= hash >> SHIFT;
    hash = hash.wrapping_mul(FACTOR);
    (hash ^ (hash >> SHIFT)) as i64
}

/// How often the permutation mixes (PostgreSQL 14 and later).
const ROUNDS: u32 = 6;

/// A pseudorandom permutation of `0..size` (`permute`); 0 where there is nothing to permute.
///
/// Each round maps the lower and then the upper part of the range, as large as a power of two fits, onto itself by an
/// odd factor, a mask and a rotation by one bit, and then moves everything by a random distance.
pub fn permute(value: i64, size: i64, seed: i64) -> i64 {
    if size < 2 {
        return 0;
    }
    let mut random = Random::new(seed as u64);
    let size = size as u64;
    let bits = 63 - size.leading_zeros();
    let mask = (1u64 << bits) - 1;
    let mut place = value as u64 % size;
    for _ in 0..ROUNDS {
        place = mix_below(place, mask, bits, &mut random);
        place = size - 1 - mix_below(size - 1 - place, mask, bits, &mut random);
        let shift = random.up_to(size - 1);
        // u128, as the sum may pass 2^64.
        place = ((u128::from(place) + u128::from(shift)) % u128::from(size)) as u64;
    }
    place as i64
}

fn mix_below(place: u64, mask: u64, bits: u32, random: &mut Random) -> u64 {
    let factor = (random.bits() & mask) | 1;
    let flips = random.bits() & mask;
    if place > mask {
        return place;
    }
    let mixed = (place.wrapping_mul(factor) ^ flips) & mask;
    ((mixed << 1) & mask) | (mixed >> (bits - 1))
}
