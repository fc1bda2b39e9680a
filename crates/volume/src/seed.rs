//! Random values as a pure function of (seed, volume, request ordinal).
//!
//! No stream is shared, so the value of one request never depends on how many others drew before it.

use crate::io::VolumeId;

/// The finalizer of SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014).
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// 64 uniform bits for one request of one volume.
pub(crate) fn draw(seed: u64, volume: VolumeId, ordinal: u64) -> u64 {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let stream = mix(seed.wrapping_add(GOLDEN.wrapping_mul(u64::from(volume.0) + 1)));
    mix(stream.wrapping_add(GOLDEN.wrapping_mul(ordinal.wrapping_add(1))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_uniform_and_differ_by_every_argument() {
        let n = 100_000u64;
        let mean = (0..n).map(|i| (draw(1, VolumeId(0), i) >> 11) as f64 / (1u64 << 53) as f64).sum::<f64>() / n as f64;
        assert!((mean - 0.5).abs() < 0.005, "mean {mean}");
        assert_ne!(draw(1, VolumeId(0), 0), draw(2, VolumeId(0), 0));
        assert_ne!(draw(1, VolumeId(0), 0), draw(1, VolumeId(1), 0));
        assert_ne!(draw(1, VolumeId(0), 0), draw(1, VolumeId(0), 1));
    }
}
