//! The root of the model: an instance and the volumes attached to it.
//!
//! Limits that volumes share live here, which is why one process serves one instance.

use std::collections::VecDeque;

use crate::counters::Counters;
use crate::io::{Change, Event, Io, Nanos, VolumeId};
use crate::params::VolumeParams;
use crate::volume::Volume;

/// An instance with its volumes. State depends on submits and changes alone; `advance` only reports.
#[derive(Clone, Debug)]
pub struct Instance {
    seed: u64,
    now: Nanos,
    volumes: Vec<Volume>,
    /// Events that are due and not yet taken by `advance`.
    due: VecDeque<(Nanos, Event)>,
}

impl Instance {
    /// An instance without volumes; every random value of its volumes derives from `seed`.
    pub fn new(seed: u64) -> Self {
        Self { seed, now: 0, volumes: Vec::new(), due: VecDeque::with_capacity(1024) }
    }

    /// Attaches a volume with full buckets. Panics on malformed parameters.
    pub fn add_volume(&mut self, params: VolumeParams) -> VolumeId {
        let id = VolumeId(u16::try_from(self.volumes.len()).expect("at most 65,536 volumes"));
        self.volumes.push(Volume::new(id, self.seed, params));
        id
    }

    /// Submits a request at `now`. Panics when `now` goes back or the volume does not exist: both are bugs of the host.
    pub fn submit(&mut self, now: Nanos, volume: VolumeId, io: Io) {
        self.run_until(now);
        self.volumes[usize::from(volume.0)].submit(now, io);
    }

    /// Applies a change at `now`; what is granted stays as it is.
    pub fn change(&mut self, now: Nanos, change: Change) {
        self.run_until(now);
        match change {
            Change::Limits { volume, iops_limit, throughput_limit } => {
                self.volumes[usize::from(volume.0)].change_limits(now, iops_limit, throughput_limit);
            }
            Change::Credit { volume, level_ppm } => self.volumes[usize::from(volume.0)].fill(now, level_ppm),
        }
    }

    /// Appends every event up to and including `now` to `events`, in order of time.
    pub fn advance(&mut self, now: Nanos, events: &mut Vec<Event>) {
        self.run_until(now);
        events.extend(self.due.drain(..).map(|(_, event)| event));
    }

    /// When `advance` has something to say next.
    pub fn next_event(&self) -> Option<Nanos> {
        let due = self.due.front().map(|(at, _)| *at);
        due.or_else(|| self.volumes.iter().filter_map(Volume::next_event).min())
    }

    /// When a request is granted next, if no other is submitted before. A host that wants to know no more than when
    /// requests complete has it from the grants, and need not come again for each completion.
    pub fn next_grant(&self) -> Option<Nanos> {
        let due = self.due.front().map(|(at, _)| *at);
        due.or_else(|| self.volumes.iter().filter_map(Volume::next_grant_at).min())
    }

    /// The latest instant that the model was told.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Counters of one volume.
    pub fn counters(&self, volume: VolumeId) -> Counters {
        self.volumes[usize::from(volume.0)].counters(self.now)
    }

    /// Requests of one volume that are submitted and not completed, as of the last call.
    pub fn outstanding(&self, volume: VolumeId) -> usize {
        self.volumes[usize::from(volume.0)].outstanding()
    }

    fn run_until(&mut self, now: Nanos) {
        assert!(now >= self.now, "time goes forward: {now} after {}", self.now);
        self.now = now;
        while let Some(volume) = self.next_volume(now) {
            if let Some(event) = self.volumes[volume].step() {
                self.due.push_back(event);
            }
        }
    }

    /// The volume whose next event comes first, if that is due; the lower index wins a tie.
    fn next_volume(&self, now: Nanos) -> Option<usize> {
        let next = |(index, volume): (usize, &Volume)| volume.next_event().map(|at| (at, index));
        self.volumes.iter().enumerate().filter_map(next).min().filter(|(at, _)| *at <= now).map(|(_, index)| index)
    }
}
