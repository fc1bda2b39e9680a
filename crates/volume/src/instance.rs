//! The root of the model: an instance and the volumes attached to it.
//!
//! Limits that volumes share live here, which is why one process serves one instance.

use std::collections::VecDeque;

use crate::array::{Array, ArrayParams, Member};
use crate::counters::Counters;
use crate::extents::Extents;
use crate::io::{Change, Event, Io, Nanos, VolumeFault, VolumeId};
use crate::params::VolumeParams;
use crate::stage::instance_limit::{InstanceCounters, InstanceLimit, InstanceLimits, Passing};
use crate::volume::Volume;

/// An instance with its volumes. State depends on submits and changes alone; `advance` only reports.
#[derive(Clone, Debug)]
pub struct Instance {
    seed: u64,
    now: Nanos,
    /// What the volumes share; `None` is unlimited.
    limit: Option<InstanceLimit>,
    volumes: Vec<Attached>,
    arrays: Vec<Array>,
    /// What each [`VolumeId`] stands for.
    places: Vec<Place>,
    /// Pieces of the request that is just being cut.
    pieces: Vec<(usize, Io)>,
    /// Events that are due and not yet taken by `advance`.
    due: VecDeque<(Nanos, Event)>,
}

/// A volume at its place.
#[derive(Clone, Debug)]
struct Attached {
    volume: Volume,
    /// Whether its requests pass the instance's limits.
    limited: bool,
    /// Its requests that wait for the instance.
    waiting: usize,
    /// The array that it is a member of.
    array: Option<usize>,
}

/// A volume, or an array of them.
#[derive(Clone, Copy, Debug)]
enum Place {
    Volume(usize),
    Array(usize),
}

/// What happens next. Of one instant the instance comes first, then the volumes in their order, then the arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Pass,
    Volume(usize),
    Array(usize),
}

impl Instance {
    /// An instance without volumes and without limits; every random value of its volumes derives from `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            now: 0,
            limit: None,
            volumes: Vec::new(),
            arrays: Vec::new(),
            places: Vec::new(),
            pieces: Vec::with_capacity(1024),
            due: VecDeque::with_capacity(1024),
        }
    }

    /// An instance whose volumes share `limits`, with full reserves. Panics on a baseline of zero or above its maximum.
    pub fn with_limits(seed: u64, limits: InstanceLimits) -> Self {
        Self { limit: Some(InstanceLimit::new(limits)), ..Self::new(seed) }
    }

    /// Attaches a volume with full buckets, at any time. Panics on malformed parameters.
    pub fn add_volume(&mut self, params: VolumeParams) -> VolumeId {
        self.add(params, true, None)
    }

    /// Adds a volume that is inside the instance: the limits to the volumes outside it do not touch it.
    pub fn add_local_volume(&mut self, params: VolumeParams) -> VolumeId {
        self.add(params, false, None)
    }

    /// Attaches the volumes of an array, and the array, which is used like a volume. Panics on malformed parameters.
    pub fn add_array(&mut self, params: ArrayParams) -> VolumeId {
        self.add_members(params, true)
    }

    /// The same of volumes inside the instance, which its limits do not touch.
    pub fn add_local_array(&mut self, params: ArrayParams) -> VolumeId {
        self.add_members(params, false)
    }

    fn add_members(&mut self, params: ArrayParams, limited: bool) -> VolumeId {
        assert_eq!(params.broken_rule(), None, "an array keeps its rules");
        let array = self.arrays.len();
        let mut member = |local: bool| {
            let VolumeId(id) = self.add(params.member.clone(), local && limited, Some(array));
            let Place::Volume(volume) = self.places[usize::from(id)] else { unreachable!("a volume was added") };
            Member { volume, local }
        };
        let remote = if params.remote_round_trip_ns.is_some() { params.copies } else { 0 };
        let copies = |local: bool, count: u16| std::iter::repeat_n(local, usize::from(count));
        let columns = (0..params.columns)
            .map(|_| copies(true, params.copies).chain(copies(false, remote)).map(&mut member).collect())
            .collect();
        self.arrays.push(Array::new(params, columns));
        self.place(Place::Array(array))
    }

    fn add(&mut self, params: VolumeParams, limited: bool, array: Option<usize>) -> VolumeId {
        let id = self.place(Place::Volume(self.volumes.len()));
        let volume = Volume::new(id, self.seed, params, self.now);
        self.volumes.push(Attached { volume, limited, waiting: 0, array });
        id
    }

    fn place(&mut self, place: Place) -> VolumeId {
        let id = VolumeId(u16::try_from(self.places.len()).expect("at most 65,536 volumes"));
        self.places.push(place);
        id
    }

    /// The volumes that `volume` is made of, column by column: those of an array, or itself.
    pub fn members(&self, volume: VolumeId) -> Vec<VolumeId> {
        let named = |index: usize| {
            let is = |place: &Place| matches!(place, Place::Volume(other) if *other == index);
            let id = self.places.iter().position(is).expect("a volume has its place");
            VolumeId(u16::try_from(id).expect("at most 65,536 volumes"))
        };
        self.indices(volume).map(named).collect()
    }

    /// Submits a request at `now`. Panics when `now` goes back or the volume does not exist: both are bugs of the host.
    pub fn submit(&mut self, now: Nanos, volume: VolumeId, io: Io) {
        self.run_until(now);
        match self.places[usize::from(volume.0)] {
            Place::Volume(index) => self.submit_to(now, index, io),
            Place::Array(array) => {
                let mut pieces = std::mem::take(&mut self.pieces);
                let volumes = &self.volumes;
                let lost = |volume: usize| volumes[volume].volume.lost();
                self.arrays[array].submit(io, |volume| volumes[volume].outstanding(), lost, &mut pieces);
                for (index, piece) in pieces.drain(..) {
                    self.submit_to(now, index, piece);
                }
                self.pieces = pieces;
            }
        }
    }

    fn submit_to(&mut self, now: Nanos, index: usize, io: Io) {
        let attached = &mut self.volumes[index];
        match &mut self.limit {
            Some(limit) if attached.limited => {
                attached.waiting += 1;
                limit.push(Passing { volume: index, io, submitted_at: now });
            }
            _ => attached.volume.submit(now, now, io),
        }
    }

    /// Applies a change at `now`; what is granted stays as it is. Of an array each member is changed so.
    pub fn change(&mut self, now: Nanos, change: Change) {
        self.run_until(now);
        match change {
            Change::Limits { volume, iops_limit, throughput_limit } => {
                self.each(volume, |volume| volume.change_limits(now, iops_limit, throughput_limit));
            }
            Change::Credit { volume, level_ppm } => self.each(volume, |volume| volume.fill(now, level_ppm)),
            Change::Baseline { volume, until } => self.each(volume, |volume| volume.withhold_credits(now, until)),
            Change::Fault { volume, fault } => self.each(volume, |volume| volume.fail(now, fault)),
            Change::Heal { volume } => self.each(volume, |volume| volume.heal(now)),
            Change::InstanceCredit { level_ppm } => {
                if let Some(limit) = &mut self.limit {
                    limit.fill(level_ppm, now);
                }
            }
        }
    }

    /// Makes `volume` one of other parameters at `now`: other limits, another type, a larger size. Of an array each member
    /// becomes so. What waits is granted under the new limits, from the level that the buckets have.
    pub fn modify(&mut self, now: Nanos, volume: VolumeId, params: &VolumeParams) {
        self.run_until(now);
        self.each(volume, |volume| volume.modify(now, params.clone()));
        if let Place::Array(array) = self.places[usize::from(volume.0)] {
            self.arrays[array].modify(params.clone());
        }
    }

    /// Says at `now` which bytes of `volume` the snapshot holds that it was made from: they begin to come. Of an array each
    /// member has its part. Panics when some of them have been asked for before.
    pub fn restore(&mut self, now: Nanos, volume: VolumeId, held: &Extents) {
        self.run_until(now);
        match self.places[usize::from(volume.0)] {
            Place::Volume(index) => {
                for (offset, len) in held.iter() {
                    self.volumes[index].volume.hold_of_snapshot(now, offset, len);
                }
            }
            Place::Array(array) => {
                for (index, offset, len) in self.arrays[array].on_members(held) {
                    self.volumes[index].volume.hold_of_snapshot(now, offset, len);
                }
            }
        }
    }

    /// Appends every event up to and including `now` to `events`, in order of time.
    pub fn advance(&mut self, now: Nanos, events: &mut Vec<Event>) {
        self.run_until(now);
        events.extend(self.due.drain(..).map(|(_, event)| event));
    }

    /// When `advance` has something to say next, or something to do on the way there.
    pub fn next_event(&self) -> Option<Nanos> {
        let due = self.due.front().map(|(at, _)| *at);
        due.or_else(|| self.next_step().map(|(at, _)| at))
    }

    /// When a request is granted next, or passes the instance on its way there, if no other is submitted before. A host
    /// that wants to know no more than when requests complete has it from the grants, and need not come again for each
    /// completion.
    pub fn next_grant(&self) -> Option<Nanos> {
        let due = self.due.front().map(|(at, _)| *at);
        let grants = self.volumes.iter().filter_map(|attached| attached.volume.next_grant_at());
        due.or_else(|| grants.chain(self.next_pass()).min())
    }

    /// The latest instant that the model was told.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Counters of one volume. Of an array: its own requests and bytes, the I/O units of all members, and the time above a
    /// limit of the member that was longest above it.
    pub fn counters(&self, volume: VolumeId) -> Counters {
        let each = self.indices(volume).map(|index| self.volumes[index].volume.counters(self.now));
        let members = each.reduce(Counters::with).unwrap_or_default();
        match self.places[usize::from(volume.0)] {
            Place::Volume(_) => members,
            Place::Array(array) => members.under(self.arrays[array].counters),
        }
    }

    /// Faults of a volume that are in force at the latest instant or will be. Of an array those of each member, with its place
    /// among the members.
    pub fn faults(&self, volume: VolumeId) -> impl Iterator<Item = (usize, VolumeFault)> + '_ {
        let members = self.indices(volume).enumerate();
        members.flat_map(|(place, index)| self.volumes[index].volume.faults(self.now).map(move |fault| (place, fault)))
    }

    /// Counters of the instance, with its balances as of the last call; `None` without limits.
    pub fn instance_counters(&self) -> Option<InstanceCounters> {
        self.limit.as_ref().map(|limit| limit.counters(self.now))
    }

    /// Requests of one volume that are submitted and not completed, as of the last call.
    pub fn outstanding(&self, volume: VolumeId) -> usize {
        match self.places[usize::from(volume.0)] {
            Place::Volume(index) => self.volumes[index].outstanding(),
            Place::Array(array) => self.arrays[array].outstanding(),
        }
    }

    /// Indices of the volumes that `volume` stands for.
    fn indices(&self, volume: VolumeId) -> impl Iterator<Item = usize> + '_ {
        let (one, array) = match self.places[usize::from(volume.0)] {
            Place::Volume(index) => (Some(index), None),
            Place::Array(array) => (None, Some(&self.arrays[array])),
        };
        let members = array.into_iter().flat_map(Array::members).map(|member| member.volume);
        one.into_iter().chain(members)
    }

    fn each(&mut self, volume: VolumeId, mut change: impl FnMut(&mut Volume)) {
        let indices: Vec<usize> = self.indices(volume).collect();
        for index in indices {
            change(&mut self.volumes[index].volume);
        }
    }

    fn run_until(&mut self, now: Nanos) {
        assert!(now >= self.now, "time goes forward: {now} after {}", self.now);
        self.now = now;
        while let Some((_, step)) = self.next_step().filter(|(at, _)| *at <= now) {
            match step {
                Step::Pass => self.pass(),
                Step::Volume(index) => self.step(index),
                Step::Array(array) => self.due.extend(self.arrays[array].step()),
            }
        }
        for attached in &mut self.volumes {
            attached.volume.follow(now);
        }
    }

    /// Takes a volume's next step. What a member says is said by its array, if at all.
    fn step(&mut self, index: usize) {
        let attached = &mut self.volumes[index];
        let Some((at, event)) = attached.volume.step() else { return };
        let said = match attached.array {
            Some(array) => self.arrays[array].event(index, event),
            None => Some(event),
        };
        self.due.extend(said.map(|event| (at, event)));
    }

    fn pass(&mut self) {
        let passed = self.limit.as_mut().and_then(InstanceLimit::pass);
        if let Some((at, Passing { volume, io, submitted_at })) = passed {
            let attached = &mut self.volumes[volume];
            attached.waiting -= 1;
            attached.volume.submit(at, submitted_at, io);
        }
    }

    fn next_pass(&self) -> Option<Nanos> {
        self.limit.as_ref().and_then(InstanceLimit::next_at)
    }

    /// What comes first, and when.
    fn next_step(&self) -> Option<(Nanos, Step)> {
        let pass = self.next_pass().map(|at| (at, Step::Pass));
        let volumes = self.volumes.iter().enumerate();
        let events = volumes.filter_map(|(index, attached)| Some((attached.volume.next_event()?, Step::Volume(index))));
        let arrays = self.arrays.iter().enumerate();
        let done = arrays.filter_map(|(index, array)| Some((array.next_done()?, Step::Array(index))));
        events.chain(done).chain(pass).min()
    }
}

impl Attached {
    fn outstanding(&self) -> usize {
        self.waiting + self.volume.outstanding()
    }
}
