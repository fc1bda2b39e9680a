//! Which row: the distributions that benchmarks draw keys from.
//!
//! All are functions of a [`Random`] and of a range `min..=max`, computed with software floating point (libm), so that a
//! seed gives the same keys on every machine.

use serde::Deserialize;

use crate::random::Random;

/// Maps `fraction`, in `[0, 1)`, onto `min..=max` in equal parts.
fn spread(fraction: f64, min: i64, max: i64) -> i64 {
    let count = (max as f64) - (min as f64) + 1.0;
    min.saturating_add((count * fraction) as i64).min(max)
}

/// pgbench's `random_exponential`: the density falls by the factor exp(−`decay`) over the range (PostgreSQL 18,
/// documentation of pgbench). `decay` is above 0.
pub fn exponential(random: &mut Random, min: i64, max: i64, decay: f64) -> i64 {
    let cut = libm::exp(-decay);
    let uniform = 1.0 - random.unit();
    spread(-libm::log(cut + (1.0 - cut) * uniform) / decay, min, max)
}

/// pgbench's `random_gaussian`: a normal distribution in the middle of the range, cut `width` standard deviations from
/// it on both sides (PostgreSQL 18, documentation of pgbench). `width` is at least 2, so that few values are redrawn.
pub fn gaussian(random: &mut Random, min: i64, max: i64, width: f64) -> i64 {
    let deviation = loop {
        let value = random.normal();
        if value >= -width && value < width {
            break value;
        }
    };
    spread((deviation + width) / (2.0 * width), min, max)
}

/// Zipf's law over `1..=count`: the k-th value has probability proportional to k^−`exponent`, for any exponent above 0.
///
/// By rejection-inversion (Hörmann, Derflinger: "Rejection-inversion to generate variates from monotone discrete
/// distributions", ACM TOMACS 6, 1996): no table, at most two tries in the mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Zipf {
    count: u64,
    exponent: f64,
    area_first: f64,
    area_last: f64,
    accept: f64,
}

impl Zipf {
    /// A law over `1..=count`.
    pub fn new(count: u64, exponent: f64) -> Self {
        let mut zipf = Self { count, exponent, area_first: 0.0, area_last: 0.0, accept: 0.0 };
        zipf.area_first = zipf.area(1.5) - 1.0;
        zipf.area_last = zipf.area(count as f64 + 0.5);
        zipf.accept = 2.0 - zipf.area_inverse(zipf.area(2.5) - zipf.density(2.0));
        zipf
    }

    /// Whether this is the law of these parameters.
    pub fn is(&self, count: u64, exponent: f64) -> bool {
        self.count == count && self.exponent == exponent
    }

    /// A value of `1..=count`.
    pub fn draw(&self, random: &mut Random) -> u64 {
        loop {
            let area = self.area_last + random.unit() * (self.area_first - self.area_last);
            let x = self.area_inverse(area);
            let value = ((x + 0.5) as u64).clamp(1, self.count);
            let k = value as f64;
            if k - x <= self.accept || area >= self.area(k + 0.5) - self.density(k) {
                return value;
            }
        }
    }

    fn density(&self, x: f64) -> f64 {
        libm::exp(-self.exponent * libm::log(x))
    }

    /// The integral of the density from 1 to x, in a form that also holds near exponent 1.
    fn area(&self, x: f64) -> f64 {
        let log = libm::log(x);
        let power = (1.0 - self.exponent) * log;
        let ratio = if power.abs() > 1e-8 { libm::expm1(power) / power } else { 1.0 + power / 2.0 };
        ratio * log
    }

    fn area_inverse(&self, area: f64) -> f64 {
        let power = (area * (1.0 - self.exponent)).max(-1.0);
        let ratio = if power.abs() > 1e-8 { libm::log1p(power) / power } else { 1.0 - power / 2.0 };
        libm::exp(ratio * area)
    }
}

/// TPC-C's non-uniform values: NURand(`a`, `min`, `max`) with the constant `c` (TPC-C 5.11, 2.1.6).
pub fn nurand(random: &mut Random, a: i64, min: i64, max: i64, c: i64) -> i64 {
    let bits = random.between(0, a) | random.between(min, max);
    (bits + c) % (max - min + 1) + min
}

/// How sysbench 1.0.20 draws ids (`--rand-type`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SysbenchKeys {
    /// All alike.
    Uniform,
    /// The mean of several uniform values ([`SysbenchShape::iterations`]).
    Gaussian,
    /// 1.0.20's default: one draw in four like `Gaussian`, the others in a narrow band at the middle.
    ///
    /// The documentation says 1 % of the rows (`--rand-spec-pct`) get 75 % of the draws (`--rand-spec-res`). As the value
    /// that chose the band, at least 1/4 by then, also chooses the place within it, the band is 0.75 % of the rows, from
    /// 0.4975 to 0.5050 of the table (observed with 1.0.20 on Debian, 2026-11).
    #[default]
    Special,
    /// u to the power of ln h / ln (1 − h) ([`SysbenchShape::pareto_h`]): with 0.2, 80 % of the draws are in the first
    /// 20 % of the rows.
    Pareto,
}

/// The settings of these distributions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SysbenchShape {
    /// How many uniform values the bell is made of (`--rand-spec-iter`), at least 1.
    pub iterations: u32,
    /// How much of the table the band is said to be, per cent (`--rand-spec-pct`).
    pub band_percent: u32,
    /// How many of the draws fall into the band, per cent (`--rand-spec-res`).
    pub band_draws_percent: u32,
    /// Between 0 and 1 (`--rand-pareto-h`).
    pub pareto_h: f64,
}

impl SysbenchShape {
    /// What 1.0.20 takes unless it is told.
    pub const DEFAULT: Self = Self { iterations: 12, band_percent: 1, band_draws_percent: 75, pareto_h: 0.2 };

    fn bell(&self, random: &mut Random) -> f64 {
        (0..self.iterations).map(|_| random.unit()).sum::<f64>() / f64::from(self.iterations)
    }

    fn special(&self, random: &mut Random, range: f64) -> f64 {
        let choice = random.unit();
        if choice < 1.0 - f64::from(self.band_draws_percent) / 100.0 {
            return self.bell(random) * range;
        }
        let band = range * f64::from(self.band_percent) / 100.0;
        range / 2.0 - band / 2.0 + choice * (band + 1.0)
    }
}

impl SysbenchKeys {
    /// An id of `min..=max` by the default settings.
    pub fn draw(self, random: &mut Random, min: i64, max: i64) -> i64 {
        self.draw_shaped(&SysbenchShape::DEFAULT, random, min, max)
    }

    /// An id of `min..=max`.
    pub fn draw_shaped(self, shape: &SysbenchShape, random: &mut Random, min: i64, max: i64) -> i64 {
        let count = (max - min + 1) as f64;
        let offset = match self {
            Self::Uniform => random.unit() * count,
            Self::Gaussian => shape.bell(random) * count,
            Self::Special => shape.special(random, (max - min) as f64),
            Self::Pareto => {
                let power = libm::log(shape.pareto_h) / libm::log(1.0 - shape.pareto_h);
                libm::pow(random.unit(), power) * count
            }
        };
        min + (offset as i64).min(max - min)
    }
}
