//! Random values as a function of (seed, client, transaction ordinal).
//!
//! Each transaction starts a sequence of its own: what it asks for never depends on how many others ran before it, on
//! another client, or on how often it was tried.

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014).
#[derive(Clone, Debug)]
pub struct SplitMix(u64);

impl SplitMix {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Uniform in `[0, 1)`, of 53 bits.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// 64 uniform bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let a = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let b = (a ^ (a >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        b ^ (b >> 31)
    }
}

/// What a sequence is for: the same seed gives unrelated values for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The parameters of transactions.
    Parameters = 1,
    /// When transactions arrive.
    Arrivals = 2,
    /// Which script a transaction runs.
    Mix = 3,
    /// How long a user thinks.
    Think = 4,
    /// The rows that tables begin with.
    Rows = 5,
    /// What a client keeps for the whole run, such as its home.
    Terminal = 6,
}

/// xoroshiro128** 1.0 (Blackman, Vigna, 2018), seeded by SplitMix64: PostgreSQL's generator since version 15, so that
/// what is defined by it (`permute`) gives pgbench's values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Random {
    low: u64,
    high: u64,
}

impl Random {
    /// The sequence of one seed.
    pub fn new(seed: u64) -> Self {
        let mut source = SplitMix(seed);
        let (low, high) = (source.bits(), source.bits());
        // All zeros would stay zeros for ever.
        if low == 0 && high == 0 { Self { low: 1, high: 0 } } else { Self { low, high } }
    }

    /// The sequence of one client's transaction, or of whatever else has a number.
    pub fn derived(seed: u64, purpose: Purpose, client: u32, ordinal: u64) -> Self {
        let stream = SplitMix(seed ^ ((purpose as u64) << 56)).bits();
        let client = SplitMix(stream ^ u64::from(client)).bits();
        Self::new(SplitMix(client ^ ordinal).bits())
    }

    /// 64 uniform bits.
    pub fn bits(&mut self) -> u64 {
        let value = self.low.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let mixed = self.high ^ self.low;
        self.low = self.low.rotate_left(24) ^ mixed ^ (mixed << 16);
        self.high = mixed.rotate_left(37);
        value
    }

    /// Uniform in `[0, 1)`, of 52 bits.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 12) as f64 / (1u64 << 52) as f64
    }

    /// Uniform in `0..=max`, without bias: values beyond `max` are drawn again.
    pub fn up_to(&mut self, max: u64) -> u64 {
        if max == 0 {
            return 0;
        }
        let shift = max.leading_zeros();
        loop {
            let value = self.bits() >> shift;
            if value <= max {
                return value;
            }
        }
    }

    /// Uniform in `min..=max`; `min` where the range is empty.
    pub fn between(&mut self, min: i64, max: i64) -> i64 {
        if max <= min {
            return min;
        }
        min.wrapping_add(self.up_to((max as u64).wrapping_sub(min as u64)) as i64)
    }

    /// Exponential with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -libm::log(1.0 - self.unit())
    }

    /// Normal with mean 0 and standard deviation 1 (Box and Muller, 1958).
    pub fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.unit()));
        radius * libm::sin(2.0 * core::f64::consts::PI * (1.0 - self.unit()))
    }
}
