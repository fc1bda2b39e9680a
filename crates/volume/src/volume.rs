//! One volume: its stages, its queue and what is in flight.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::counters::Counters;
use crate::io::{Event, Io, IoId, IoResult, Nanos, VolumeFault, VolumeId};
use crate::params::{BucketParams, DegradationParams, VolumeParams};
use crate::seed::{Purpose, Stream};
use crate::stage::burst_credit::BurstCredit;
use crate::stage::degradation::{Degradation, Rates};
use crate::stage::fault::{Faults, Hit};
use crate::stage::first_touch::{FirstTouch, Progress};
use crate::stage::iops_limit::IopsLimit;
use crate::stage::queueing::{Queue, Waiting};
use crate::stage::service_time::ServiceTime;
use crate::stage::split_merge::{Charge, SplitMerge};
use crate::stage::throughput_limit::ThroughputLimit;

/// Above the 128 requests that a loop device keeps in flight, with room.
const EXPECTED_DEPTH: usize = 512;

/// A completion to come, ordered by time and then by submit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Completion {
    done_at: Nanos,
    id: IoId,
    result: IoResult,
}

#[derive(Clone, Debug)]
pub(crate) struct Volume {
    service_draws: Stream,
    size_bytes: u64,
    split_merge: SplitMerge,
    iops_limit: IopsLimit,
    throughput_limit: ThroughputLimit,
    iops_credit: BurstCredit,
    throughput_credit: BurstCredit,
    service_time: ServiceTime,
    faults: Faults,
    /// Of a volume that was made from a snapshot.
    first_touch: Option<Box<FirstTouch>>,
    degradation: Option<Box<Degradation>>,
    degradation_draws: Stream,
    queue: Queue,
    in_flight: BinaryHeap<Reverse<Completion>>,
    ordinal: u64,
    counters: Counters,
}

impl Volume {
    pub(crate) fn new(id: VolumeId, seed: u64, params: VolumeParams, now: Nanos) -> Self {
        let size_bytes = params.size_bytes;
        let split_merge = SplitMerge::new(params.accounting, params.cost);
        let degradation_draws = Stream::new(seed, id, Purpose::Degradation);
        let degradation = degraded(params.degradation, rates(&params), degradation_draws, now);
        let fetched = |params| FirstTouch::new(params, size_bytes, Stream::new(seed, id, Purpose::FirstTouch));
        let mut volume = Self {
            service_draws: Stream::new(seed, id, Purpose::ServiceTime),
            size_bytes,
            iops_limit: IopsLimit::new(params.iops_limit, split_merge.unit_tokens()),
            throughput_limit: ThroughputLimit::new(params.throughput_limit, params.accounting.unit_bytes),
            iops_credit: BurstCredit::new(params.iops_credit, now),
            throughput_credit: BurstCredit::new(params.throughput_credit, now),
            split_merge,
            service_time: ServiceTime::new(params.service_time),
            faults: Faults::new(Stream::new(seed, id, Purpose::Fault)),
            first_touch: params.first_touch.map(|params| Box::new(fetched(params))),
            degradation,
            degradation_draws,
            queue: Queue::new(params.order, EXPECTED_DEPTH, Stream::new(seed, id, Purpose::Order)),
            in_flight: BinaryHeap::with_capacity(EXPECTED_DEPTH),
            ordinal: 0,
            counters: Counters::default(),
        };
        volume.apply_rates(now);
        volume
    }

    /// Takes a request in at `now`. It was submitted at `submitted_at`, and waited for its instance since.
    pub(crate) fn submit(&mut self, now: Nanos, submitted_at: Nanos, io: Io) {
        self.follow(now);
        let mut service_ns = self.service_time.service_ns(&io, self.service_draws.draw(self.ordinal));
        self.ordinal += 1;
        let units = self.split_merge.units(submitted_at, &io);
        self.counters.count(&io);
        if self.queue.head_may_change() {
            self.hold(now);
        }
        // The device works while the instance paces, as it does while the volume does.
        service_ns = service_ns.saturating_sub(now - submitted_at);
        if let Some(first_touch) = &mut self.first_touch {
            service_ns = service_ns.saturating_add(first_touch.ready_at(now, &io) - now);
        }
        self.queue.push(Waiting { io, submitted_at: now, units, service_ns });
    }

    pub(crate) fn change_limits(&mut self, now: Nanos, iops: Option<BucketParams>, throughput: Option<BucketParams>) {
        self.hold(now);
        match &mut self.degradation {
            Some(degradation) => {
                let whole = degradation.whole();
                degradation.change(Rates { iops, throughput, ..whole });
                self.apply_rates(now);
            }
            None => {
                self.iops_limit.change(iops, now);
                self.throughput_limit.change(throughput, now);
            }
        }
    }

    /// Lets every change up to `now` happen of what is left of the limits.
    pub(crate) fn follow(&mut self, now: Nanos) {
        while let Some(at) = self.degradation.as_ref().map(|one| one.changes_at()).filter(|at| *at <= now) {
            self.hold(at);
            self.degradation.iter_mut().for_each(|one| one.pass());
            self.apply_rates(at);
        }
    }

    /// Takes the rates that a degraded volume has at `now`. Levels of buckets and credits stay; another volume does not change.
    fn apply_rates(&mut self, now: Nanos) {
        let Some(degradation) = &self.degradation else { return };
        let Rates { iops, throughput, iops_credit, throughput_credit } = degradation.rates();
        self.iops_limit.change(iops, now);
        self.throughput_limit.change(throughput, now);
        self.iops_credit.change(iops_credit, now);
        self.throughput_credit.change(throughput_credit, now);
    }

    /// Its snapshot holds these bytes, which begin to come at `now`. They are there already where its parameters say no more.
    pub(crate) fn hold_of_snapshot(&mut self, now: Nanos, offset: u64, len: u64) {
        if let Some(first_touch) = &mut self.first_touch {
            first_touch.hold(now, offset, len);
        }
    }

    /// Becomes a volume of other parameters at `now`: what waits is granted under the new ones, what is granted stays as it
    /// is. Levels of buckets and credits are kept where there were some. The order of waiting requests is not changed, nor how
    /// the blocks of its snapshot come; it is degraded at the same instants if it still is at all.
    pub(crate) fn modify(&mut self, now: Nanos, params: VolumeParams) {
        self.hold(now);
        self.iops_limit.change(params.iops_limit, now);
        self.throughput_limit.change(params.throughput_limit, now);
        self.iops_credit.change(params.iops_credit, now);
        self.throughput_credit.change(params.throughput_credit, now);
        match &mut self.degradation {
            Some(here) if Some(here.params()) == params.degradation => here.change(rates(&params)),
            here => *here = degraded(params.degradation, rates(&params), self.degradation_draws, now),
        }
        self.apply_rates(now);
        self.split_merge.modify(params.accounting, params.cost);
        self.service_time = ServiceTime::new(params.service_time);
        self.size_bytes = params.size_bytes;
    }

    pub(crate) fn fill(&mut self, now: Nanos, level_ppm: u32) {
        self.hold(now);
        self.iops_limit.fill(level_ppm, now);
        self.throughput_limit.fill(level_ppm, now);
    }

    /// Gives the baseline alone until `until`.
    pub(crate) fn withhold_credits(&mut self, now: Nanos, until: Nanos) {
        self.hold(now);
        self.iops_credit.withhold(until, self.split_merge.unit_tokens(), now);
        self.throughput_credit.withhold(until, self.split_merge.unit_bytes(), now);
    }

    /// Adds a fault at `now`.
    pub(crate) fn fail(&mut self, now: Nanos, fault: VolumeFault) {
        self.hold(now);
        self.faults.add(now, fault);
    }

    /// Ends the faults at `now`: what waits is granted from then on.
    pub(crate) fn heal(&mut self, now: Nanos) {
        self.hold(now);
        self.faults.heal();
    }

    /// Its faults that are in force or will be.
    pub(crate) fn faults(&self, now: Nanos) -> impl Iterator<Item = VolumeFault> + '_ {
        self.faults.pending(now)
    }

    /// Whether it is lost.
    pub(crate) fn lost(&self) -> bool {
        self.faults.lost()
    }

    /// Settles what the head has waited so far, before a change or an arrival at `now` alters what it waits for or
    /// who stands there.
    fn hold(&mut self, now: Nanos) {
        if let Some(grant) = self.next_grant() {
            self.count_waiting(&grant, now);
        }
        self.queue.hold_until(now);
    }

    fn count_waiting(&mut self, grant: &Grant, until: Nanos) {
        self.counters.exceeded_iops_ns += grant.iops_ready_at.min(until) - grant.from;
        self.counters.exceeded_throughput_ns += grant.throughput_ready_at.min(until) - grant.from;
    }

    /// What was counted, with the credits that are left at `now`.
    pub(crate) fn counters(&self, now: Nanos) -> Counters {
        let progress = self.first_touch.as_ref().map(|first_touch| first_touch.progress(now));
        let balances = [self.iops_credit.balance_ppm(now), self.throughput_credit.balance_ppm(now)];
        Counters {
            io_credits: self.iops_credit.balance(now),
            throughput_credits_bytes: self.throughput_credit.balance(now),
            burst_balance_ppm: balances.into_iter().flatten().min(),
            first_touch_blocks: self.first_touch.as_ref().map_or(0, |first_touch| first_touch.on_demand()),
            first_touch_ns: self.first_touch.as_ref().map_or(0, |first_touch| first_touch.waited_ns()),
            initialized_ppm: progress.map(Progress::ppm),
            degraded_ns: self.degradation.as_ref().map(|degradation| degradation.degraded_ns(now)),
            ..self.counters
        }
    }

    /// Requests submitted and not completed.
    pub(crate) fn outstanding(&self) -> usize {
        self.queue.len() + self.in_flight.len()
    }

    pub(crate) fn next_event(&self) -> Option<Nanos> {
        let granted = self.next_grant_at();
        let done = self.in_flight.peek().map(|Reverse(completion)| completion.done_at);
        granted.into_iter().chain(done).min()
    }

    /// When a request is granted next, or what is left of the limits changes while one waits.
    pub(crate) fn next_grant_at(&self) -> Option<Nanos> {
        let grant_at = self.next_grant().map(|grant| grant.at);
        grant_at.into_iter().chain(self.next_change()).min()
    }

    /// When what is left of the limits changes, if a request waits: otherwise it is soon enough when the next one comes.
    fn next_change(&self) -> Option<Nanos> {
        let degradation = self.degradation.as_ref().filter(|_| !self.queue.is_empty())?;
        Some(degradation.changes_at())
    }

    /// Takes the one step that is due at [`Self::next_event`]. A grant comes before a completion of the same instant, and a change of
    /// what is left of the limits, of which nothing is said, before both.
    pub(crate) fn step(&mut self) -> Option<(Nanos, Event)> {
        let grant = self.next_grant();
        let done_at = self.in_flight.peek().map(|Reverse(completion)| completion.done_at);
        if let Some(at) = self.next_change().filter(|at| self.next_event() == Some(*at)) {
            self.follow(at);
            return None;
        }
        match (grant, done_at) {
            (Some(grant), done_at) if done_at.is_none_or(|done_at| grant.at <= done_at) => self.grant(&grant),
            (_, Some(_)) => self.in_flight.pop().map(|Reverse(completion)| {
                (completion.done_at, Event::Done { id: completion.id, result: completion.result })
            }),
            _ => None,
        }
    }

    fn next_grant(&self) -> Option<Grant> {
        let (head, from) = self.queue.head()?;
        let charge = self.split_merge.charge(&head.io, head.units);
        let Charge { tokens, bytes } = charge;
        let iops_ready_at = self.iops_limit.ready_at(tokens, from).max(self.iops_credit.ready_at(tokens, from));
        let throughput_ready_at =
            self.throughput_limit.ready_at(bytes, from).max(self.throughput_credit.ready_at(bytes, from));
        let at = self.faults.granted_at(iops_ready_at.max(throughput_ready_at))?;
        Some(Grant { from, charge, iops_ready_at, throughput_ready_at, at })
    }

    fn grant(&mut self, grant: &Grant) -> Option<(Nanos, Event)> {
        let Waiting { io, submitted_at, units, service_ns } = self.queue.grant(grant.at)?;
        let Charge { tokens, bytes } = grant.charge;
        self.iops_limit.charge(tokens, grant.at);
        self.throughput_limit.charge(bytes, grant.at);
        self.iops_credit.charge(tokens, grant.at);
        self.throughput_credit.charge(bytes, grant.at);
        self.counters.io_units += u64::from(units);
        self.count_waiting(grant, grant.at);
        // The device works while the limiter paces: under saturation a latency is queue depth / IOPS, as measured on
        // EBS, and not that plus the service time (docs/decision/0003).
        let Hit { added_ns, failed } = self.faults.hit(grant.at, &io);
        let done_at = grant.at.max(submitted_at.saturating_add(service_ns)).saturating_add(added_ns);
        if !failed {
            self.counters.granted(io.op, done_at - submitted_at);
        }
        let in_range = io.offset.checked_add(u64::from(io.len)).is_some_and(|end| end <= self.size_bytes);
        self.split_merge.granted(io.id, done_at);
        let id = io.id;
        let result = IoResult::of(in_range, failed);
        self.in_flight.push(Reverse(Completion { done_at, id, result }));
        Some((grant.at, result.granted(id, done_at)))
    }
}

/// The rates of a volume that is whole.
fn rates(params: &VolumeParams) -> Rates {
    Rates {
        iops: params.iops_limit,
        throughput: params.throughput_limit,
        iops_credit: params.iops_credit,
        throughput_credit: params.throughput_credit,
    }
}

fn degraded(params: Option<DegradationParams>, rates: Rates, draws: Stream, now: Nanos) -> Option<Box<Degradation>> {
    params.map(|params| Box::new(Degradation::new(params, rates, draws, now)))
}

/// When the head of the queue can pass, and which limit it waits for.
struct Grant {
    /// Since when it stands at the head.
    from: Nanos,
    charge: Charge,
    iops_ready_at: Nanos,
    throughput_ready_at: Nanos,
    at: Nanos,
}
