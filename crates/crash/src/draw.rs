//! What is drawn: instants by stratum, and fates.

use crate::log::WriteLog;

/// `SplitMix64` (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence of a seed, what it is for, and a number.
    pub fn derived(seed: u64, purpose: u64, number: u64) -> Self {
        let stream = Self(seed).bits() ^ purpose;
        let stream = Self(stream).bits() ^ number;
        Self(Self(stream).bits())
    }

    /// 64 uniform bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let a = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let b = (a ^ (a >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        b ^ (b >> 31)
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }
}

/// A kind of instants: the intervals that are of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stratum {
    /// What it is called.
    pub name: String,
    /// First and last nanosecond of each interval, on the log's clock.
    pub intervals: Vec<(u64, u64)>,
}

/// Positions of a log by stratum. A position is the number of events that came before the cut.
#[derive(Clone, Debug)]
pub struct Strata {
    /// Name, and first and last position of each interval.
    positions: Vec<(String, Vec<(u32, u32)>)>,
}

impl Strata {
    /// Those of `asked` that have an event in the log.
    pub fn of(log: &WriteLog, asked: &[Stratum]) -> Self {
        let events = log.events();
        let place = |ns: u64| events.partition_point(|event| event.at_ns < ns) as u32;
        let positions = asked.iter().map(|stratum| {
            let found = stratum.intervals.iter().map(|&(from, to)| (place(from), place(to.saturating_add(1))));
            (stratum.name.clone(), found.filter(|(first, last)| first < last).collect::<Vec<_>>())
        });
        Self { positions: positions.filter(|(_, found)| !found.is_empty()).collect() }
    }

    /// Whether there is nothing to draw from.
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    /// The instant of this number: its stratum and its position. The strata take turns.
    ///
    /// # Panics
    /// Where there is nothing to draw from.
    pub fn draw(&self, seed: u64, number: u64) -> (&str, u32) {
        let mut random = Random::derived(seed, 1, number);
        let (name, intervals) = &self.positions[(number % self.positions.len() as u64) as usize];
        let (first, last) = intervals[random.below(intervals.len() as u64) as usize];
        (name, first + random.below(u64::from(last - first) + 1) as u32)
    }
}
