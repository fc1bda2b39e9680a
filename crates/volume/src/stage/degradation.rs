//! Periods in which a volume has only a part of its limits: what a provider leaves open that promises them for 99.9 % of a year.
//!
//! Time is divided into cycles of one length, and each has one period: where in the cycle it begins, how long it lasts and what is
//! left of the limits are drawn from the volume's seed by the number of the cycle. So whether a volume is degraded is a function of
//! seed and time, whatever was submitted. The first cycle is cut at a drawn place, so that every instant is as likely to be degraded.

use crate::io::{ALL_PPM, Nanos};
use crate::params::{BucketParams, CreditParams, DegradationParams};
use crate::seed::Stream;

/// The rates that a period takes a part of; `None` is no such limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    /// The limit on I/O units.
    pub iops: Option<BucketParams>,
    /// The limit on bytes.
    pub throughput: Option<BucketParams>,
    /// I/O credits: the rate at which they are earned, not those that there are.
    pub iops_credit: Option<CreditParams>,
    /// Throughput credits.
    pub throughput_credit: Option<CreditParams>,
}

/// The degradation of one volume.
#[derive(Clone, Debug)]
pub struct Degradation {
    params: DegradationParams,
    draws: Stream,
    /// The first cycle began so long before time 0.
    phase_ns: Nanos,
    rates: Rates,
    /// The last change of what is left, and what is left since.
    at: Nanos,
    left_ppm: u32,
    changes_at: Nanos,
    /// Time in periods before `at`.
    degraded_ns: Nanos,
}

/// A period, in time since the first cycle began.
struct Period {
    from: Nanos,
    until: Nanos,
    left_ppm: u32,
}

impl Degradation {
    /// As of `now`. Panics on parameters that break a rule.
    pub(crate) fn new(params: DegradationParams, rates: Rates, draws: Stream, now: Nanos) -> Self {
        assert_eq!(params.broken_rule(), None, "a degradation keeps its rules");
        let phase_ns = within(draws.draw(0), [0, params.cycle_ns() - 1]);
        let mut degradation =
            Self { params, draws, phase_ns, rates, at: now, left_ppm: ALL_PPM, changes_at: 0, degraded_ns: 0 };
        degradation.look(now);
        degradation
    }

    /// The same periods of other rates.
    pub fn change(&mut self, rates: Rates) {
        self.rates = rates;
    }

    /// The rates of a whole volume.
    pub fn whole(&self) -> Rates {
        self.rates
    }

    /// Its parameters.
    pub fn params(&self) -> DegradationParams {
        self.params
    }

    /// The rates that are left; at least one a second.
    pub fn rates(&self) -> Rates {
        let left = |rate: u64| (u128::from(rate) * u128::from(self.left_ppm) / u128::from(ALL_PPM)).max(1) as u64;
        let bucket = |params: BucketParams| BucketParams { rate_per_s: left(params.rate_per_s), ..params };
        let credit = |params: CreditParams| CreditParams { rate_per_s: left(params.rate_per_s), ..params };
        let Rates { iops, throughput, iops_credit, throughput_credit } = self.rates;
        Rates {
            iops: iops.map(bucket),
            throughput: throughput.map(bucket),
            iops_credit: iops_credit.map(credit),
            throughput_credit: throughput_credit.map(credit),
        }
    }

    /// When what is left changes next.
    pub fn changes_at(&self) -> Nanos {
        self.changes_at
    }

    /// Lets the change happen that is due at [`Self::changes_at`].
    pub fn pass(&mut self) {
        let now = self.changes_at;
        self.degraded_ns = self.degraded_ns(now);
        self.look(now);
    }

    /// Time in periods up to `now`, which is not after the next change.
    pub fn degraded_ns(&self, now: Nanos) -> Nanos {
        let here = if self.left_ppm < ALL_PPM { now.saturating_sub(self.at) } else { 0 };
        self.degraded_ns + here
    }

    fn look(&mut self, now: Nanos) {
        let since = now.saturating_add(self.phase_ns);
        let cycle = since / self.params.cycle_ns();
        let Period { from, until, left_ppm } = self.period(cycle);
        let (left_ppm, changes) = match since {
            since if since < from => (ALL_PPM, from),
            since if since < until => (left_ppm, until),
            _ => (ALL_PPM, self.period(cycle + 1).from),
        };
        (self.at, self.left_ppm, self.changes_at) = (now, left_ppm, changes.saturating_sub(self.phase_ns));
    }

    fn period(&self, cycle: u64) -> Period {
        let draw = |which: u64| self.draws.draw(cycle.wrapping_mul(3).wrapping_add(which));
        let lasts_ns = within(draw(1), self.params.lasts_ns);
        let cycle_ns = self.params.cycle_ns();
        let from = cycle.saturating_mul(cycle_ns).saturating_add(within(draw(2), [0, cycle_ns - lasts_ns]));
        let left_ppm = within(draw(3), self.params.left_ppm.map(u64::from)) as u32;
        Period { from, until: from.saturating_add(lasts_ns), left_ppm }
    }
}

/// A whole number of the range, all of them equally likely, from 64 uniform bits.
fn within(bits: u64, [low, high]: [u64; 2]) -> u64 {
    low + ((u128::from(bits) * (u128::from(high - low) + 1)) >> 64) as u64
}
