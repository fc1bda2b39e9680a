//! When transactions begin: in a closed loop as soon as a client is free, in an open one by a schedule of their own.

use crate::random::{Purpose, Random};
use crate::time::Nanos;

const NANOS_PER_S: f64 = 1e9;

/// Of a Poisson schedule so many arrivals that are left are counted one by one; the number of more is drawn at once, since
/// its distribution is hardly another than the normal one then.
const COUNTED_MAX: f64 = 1e6;

/// How transactions arrive.
#[derive(Clone, Debug, PartialEq)]
pub enum Pattern {
    /// Each client begins the next transaction when it is done with the one before and has thought.
    Closed(Think),
    /// Transactions arrive whether a client is free or not.
    Open {
        /// How they are spaced.
        spacing: Spacing,
        /// How their rate changes. After the last segment its final rate stays.
        segments: Vec<Segment>,
    },
}

/// How long a client waits between transactions of a closed loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Think {
    /// Not at all.
    None,
    /// Always as long, in nanoseconds.
    Constant(Nanos),
    /// Exponentially distributed with this mean, in nanoseconds, cut at ten times the mean as TPC-C's think time is.
    Exponential(Nanos),
}

impl Think {
    /// A pause of this kind.
    pub(crate) fn ns(self, random: &mut Random) -> Nanos {
        match self {
            Self::None => 0,
            Self::Constant(ns) => ns,
            Self::Exponential(mean) => (mean as f64 * random.exponential().min(10.0)) as Nanos,
        }
    }

    /// In a world that is so many times slower.
    pub(crate) fn slowed(self, dilation: u32) -> Self {
        let slowed = |ns: Nanos| ns.saturating_mul(u64::from(dilation.max(1)));
        match self {
            Self::None => Self::None,
            Self::Constant(ns) => Self::Constant(slowed(ns)),
            Self::Exponential(mean) => Self::Exponential(slowed(mean)),
        }
    }
}

/// How open arrivals are spaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// Evenly.
    Fixed,
    /// As independent events (a Poisson process); its rate may change with time.
    Poisson,
}

/// A part of an open schedule: the rate goes linearly from one value to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Segment {
    /// How long it takes.
    pub duration_ns: Nanos,
    /// Transactions per second where it begins.
    pub rate_begin_per_s: f64,
    /// Transactions per second where it ends.
    pub rate_end_per_s: f64,
}

/// Why a transaction was not begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skip {
    /// No client was free before it was later than allowed.
    Late,
    /// No client was free before the run ended.
    Ended,
}

/// What a free client is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// A transaction that is to begin at this time, which may be past.
    Begin(Nanos),
    /// A transaction that was to begin at this time and is not begun any more.
    Skip(Nanos, Skip),
    /// No transaction is left.
    None,
}

/// The schedule that the clients of one thread share.
///
/// The times of an open schedule are those at which the expected number of arrivals passes 1, 2, 3, … (evenly spaced)
/// or the sums of exponential values (Poisson; time rescaling, see Brown et al., Neural Computation 14, 2002). They are
/// never based anew on the present, so a stall leaves a backlog and not a gap.
#[derive(Clone, Debug)]
pub struct Arrivals {
    pattern: Pattern,
    random: Random,
    late_max_ns: Option<Nanos>,
    until: Option<Nanos>,
    expected: f64,
    next: Nanos,
    claimed: u64,
}

impl Arrivals {
    /// A schedule from time 0; `stream` numbers the thread. A host with several threads gives each its share of the
    /// rate.
    pub fn new(pattern: Pattern, seed: u64, stream: u32) -> Self {
        let random = Random::derived(seed, Purpose::Arrivals, stream, 0);
        let mut arrivals = Self { pattern, random, late_max_ns: None, until: None, expected: 0.0, next: 0, claimed: 0 };
        arrivals.step();
        arrivals
    }

    /// Of evenly spaced arrivals the first comes earlier by this part of the distance between two, and all others with it:
    /// so the threads of a host take turns. Nothing can have been claimed yet.
    #[must_use]
    pub fn ahead(mut self, part: f64) -> Self {
        if let Pattern::Open { spacing: Spacing::Fixed, segments } = &self.pattern {
            self.expected -= part;
            self.next = time_of(segments, self.expected);
        }
        self
    }

    /// Skips what could not begin within this time.
    #[must_use]
    pub fn late_max_ns(mut self, limit: Nanos) -> Self {
        self.late_max_ns = Some(limit);
        self
    }

    /// Begins nothing from this time on. What was scheduled before it and was not begun counts as skipped.
    #[must_use]
    pub fn until(mut self, end: Nanos) -> Self {
        self.until = Some(end);
        self
    }

    /// Whether transactions arrive on a schedule of their own.
    pub fn is_open(&self) -> bool {
        matches!(self.pattern, Pattern::Open { .. })
    }

    /// Whether an open schedule has nothing left before its end, whenever that is: all of it was claimed.
    pub fn is_exhausted(&self) -> bool {
        self.is_open() && (self.next == Nanos::MAX || self.until.is_some_and(|end| self.next >= end))
    }

    /// Whether nothing is begun any more.
    pub fn has_ended(&self, now: Nanos) -> bool {
        self.until.is_some_and(|end| now >= end)
    }

    /// The next transaction for a client that is free at `now`. When all clients are done, a host takes what is left
    /// of an open schedule by [`Arrivals::rest`].
    pub fn claim(&mut self, now: Nanos) -> Claim {
        let claim = self.take(now);
        self.claimed += u64::from(claim != Claim::None);
        claim
    }

    /// Whether what was to begin at this time is later than it may be.
    pub fn is_too_late(&self, at: Nanos, now: Nanos) -> bool {
        self.late_max_ns.is_some_and(|limit| now.saturating_sub(at) > limit)
    }

    /// Takes back a claim for this time, which is to come, if the end is before it now: it was put earlier meanwhile.
    /// True if it was taken back; it is then not to be begun, and counts as never scheduled.
    pub fn give_back(&mut self, at: Nanos) -> bool {
        let beyond = self.until.is_some_and(|end| at >= end);
        self.claimed -= u64::from(beyond);
        beyond
    }

    /// How many transactions were claimed, to be begun or skipped: each must come to an end.
    pub fn claimed(&self) -> u64 {
        self.claimed
    }

    /// Claims all that is left before the end at once, and returns how many: they were due and are not begun any more. None of
    /// a closed loop, or of a schedule without an end. It takes no longer for more of them.
    pub fn rest(&mut self) -> u64 {
        let (Some(end), Pattern::Open { spacing, segments }) = (self.until, &self.pattern) else { return 0 };
        if self.is_exhausted() {
            return 0;
        }
        let left = expected_by(segments, end) - self.expected;
        let mut count = 0;
        match spacing {
            Spacing::Poisson if left > COUNTED_MAX => {
                let deviation = libm::sqrt(left) * self.random.normal();
                // The next one is known.
                count = 1 + (left + deviation).max(0.0) as u64;
                self.next = Nanos::MAX;
            }
            Spacing::Poisson => (),
            Spacing::Fixed => {
                // The last ones are counted below, where nanoseconds decide.
                let skipped = libm::floor((left - 2.0).max(0.0));
                self.expected += skipped;
                self.next = time_of(segments, self.expected).max(self.next);
                count = skipped as u64;
            }
        }
        while !self.is_exhausted() {
            self.step();
            count += 1;
        }
        self.claimed += count;
        count
    }

    fn take(&mut self, now: Nanos) -> Claim {
        if self.has_ended(now) || self.is_exhausted() {
            return Claim::None;
        }
        if !self.is_open() {
            return Claim::Begin(now);
        }
        let at = self.next;
        self.step();
        if self.is_too_late(at, now) { Claim::Skip(at, Skip::Late) } else { Claim::Begin(at) }
    }

    /// How long to think before the next transaction.
    pub fn think_ns(&self, random: &mut Random) -> Nanos {
        match self.pattern {
            Pattern::Open { .. } => 0,
            Pattern::Closed(think) => think.ns(random),
        }
    }

    fn step(&mut self) {
        let Pattern::Open { spacing, segments } = &self.pattern else { return };
        self.expected += match spacing {
            Spacing::Fixed => 1.0,
            Spacing::Poisson => self.random.exponential(),
        };
        // Arrivals of one nanosecond keep their order.
        self.next = time_of(segments, self.expected).max(self.next);
    }
}

/// When the expected number of arrivals passes `expected`; never is `Nanos::MAX`.
fn time_of(segments: &[Segment], mut expected: f64) -> Nanos {
    let mut begin: Nanos = 0;
    for segment in segments {
        let seconds = segment.duration_ns as f64 / NANOS_PER_S;
        let arrivals = seconds * (segment.rate_begin_per_s + segment.rate_end_per_s) / 2.0;
        if expected <= arrivals && arrivals > 0.0 {
            return begin.saturating_add(nanos(segment.seconds_to(expected)));
        }
        expected -= arrivals;
        begin = begin.saturating_add(segment.duration_ns);
    }
    match segments.last() {
        Some(last) if last.rate_end_per_s > 0.0 => begin.saturating_add(nanos(expected / last.rate_end_per_s)),
        _ => Nanos::MAX,
    }
}

/// How many arrivals are expected before a time.
fn expected_by(segments: &[Segment], time: Nanos) -> f64 {
    let (mut begin, mut expected) = (0_u64, 0.0);
    for segment in segments {
        let left_ns = time.saturating_sub(begin);
        expected += segment.arrivals_in(left_ns.min(segment.duration_ns));
        if left_ns <= segment.duration_ns {
            return expected;
        }
        begin = begin.saturating_add(segment.duration_ns);
    }
    let rate_per_s = segments.last().map_or(0.0, |last| last.rate_end_per_s);
    expected + rate_per_s * time.saturating_sub(begin) as f64 / NANOS_PER_S
}

fn nanos(seconds: f64) -> Nanos {
    (seconds * NANOS_PER_S + 0.5) as Nanos
}

impl Segment {
    /// A part with one rate.
    pub fn constant(duration_ns: Nanos, rate_per_s: f64) -> Self {
        Self { duration_ns, rate_begin_per_s: rate_per_s, rate_end_per_s: rate_per_s }
    }

    /// How many arrivals are expected in the first part of it.
    fn arrivals_in(&self, part_ns: Nanos) -> f64 {
        let (seconds, part) = (self.duration_ns as f64 / NANOS_PER_S, part_ns as f64 / NANOS_PER_S);
        let slope = if seconds > 0.0 { (self.rate_end_per_s - self.rate_begin_per_s) / seconds } else { 0.0 };
        part * (self.rate_begin_per_s + slope * part / 2.0)
    }

    /// When `arrivals` of this segment are to be expected: the root of a·t + (b − a)/(2·T)·t² in the form that keeps
    /// its digits when the rate hardly changes.
    fn seconds_to(&self, arrivals: f64) -> f64 {
        let seconds = self.duration_ns as f64 / NANOS_PER_S;
        let slope = (self.rate_end_per_s - self.rate_begin_per_s) / seconds;
        let end = libm::sqrt((self.rate_begin_per_s * self.rate_begin_per_s + 2.0 * slope * arrivals).max(0.0));
        (2.0 * arrivals / (self.rate_begin_per_s + end)).min(seconds)
    }
}
