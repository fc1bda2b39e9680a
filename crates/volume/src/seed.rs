//! Random values as a pure function of (seed, volume, purpose, ordinal).
//!
//! No stream is shared: the service time of one request never depends on how many others drew before it, nor on the
//! order in which requests are granted.

use crate::io::VolumeId;

/// The finalizer of SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014).
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// What a volume draws random values for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// How long a request takes; the ordinal is the request's.
    ServiceTime = 0,
    /// Which requests a fault hits; the ordinal counts the questions.
    Fault = 1,
    /// Who is granted next; the ordinal counts the choices.
    Order = 2,
    /// How long a block takes that is asked for before it is there; the ordinal counts these blocks.
    FirstTouch = 3,
    /// When a volume is degraded, and how far; the ordinal is that of the period and of what is drawn of it.
    Degradation = 4,
}

/// The random values of one volume for one purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stream(u64);

impl Stream {
    pub fn new(seed: u64, volume: VolumeId, purpose: Purpose) -> Self {
        let stream = mix(seed.wrapping_add(GOLDEN.wrapping_mul(u64::from(volume.0) + 1)));
        // The salt is far above any ordinal, so the streams of two purposes do not overlap.
        let purpose = purpose as u64;
        Self(stream ^ (purpose & 3) << 62 ^ (purpose >> 2) << 61)
    }

    /// 64 uniform bits.
    pub fn draw(self, ordinal: u64) -> u64 {
        mix(self.0.wrapping_add(GOLDEN.wrapping_mul(ordinal.wrapping_add(1))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(seed: u64, volume: u16) -> Stream {
        Stream::new(seed, VolumeId(volume), Purpose::ServiceTime)
    }

    #[test]
    fn draws_are_uniform_and_differ_by_every_argument() {
        let n = 100_000u64;
        let stream = service(1, 0);
        let mean = (0..n).map(|i| (stream.draw(i) >> 11) as f64 / (1u64 << 53) as f64).sum::<f64>() / n as f64;
        assert!((mean - 0.5).abs() < 0.005, "mean {mean}");
        assert_ne!(stream.draw(0), stream.draw(1));
        assert_ne!(stream.draw(0), service(2, 0).draw(0));
        assert_ne!(stream.draw(0), service(1, 1).draw(0));
        let of = |purpose| Stream::new(1, VolumeId(0), purpose).draw(0);
        assert_ne!(stream.draw(0), of(Purpose::Order));
        assert_ne!(stream.draw(0), of(Purpose::Fault));
        assert_ne!(of(Purpose::Order), of(Purpose::Fault));
        for other in [Purpose::ServiceTime, Purpose::Fault, Purpose::Order] {
            assert_ne!(of(Purpose::FirstTouch), of(other));
            assert_ne!(of(Purpose::Degradation), of(other));
        }
        assert_ne!(of(Purpose::Degradation), of(Purpose::FirstTouch));
    }
}
