//! Every type and array under an instance's limits, with volumes that come, change, are restored from snapshots and fail: decided again,
//! all is the same.
//!
//! The log is never kept: a record is replayed, by way of its bytes, as soon as the host has written it.

use std::collections::VecDeque;

use pgdyno_catalog::{InstanceType, Storage, types};
use pgdyno_volume::log::Record;
use pgdyno_volume::replay::{Replay, Told, replay_with};
use pgdyno_volume::{
    ALL_PPM, BucketParams, Change, Effect, Event, Extents, Instance, Io, IoId, Nanos, Op, VolumeFault, VolumeId,
};

const ARRAYS: [&str; 4] = [
    "4xgp3:iops=4000,chunk=64KiB",
    "raid10:4xgp3:size=50GiB,chunk=16KiB",
    "2xio2bx:iops=9000,multi_az=1.5ms",
    "gp3:iops=9000,multi_az=0.7ms",
];
/// Volumes that were made from a snapshot, in each way in which their blocks come.
const RESTORED: [&str; 4] =
    ["gp3:iops=9000,init=lazy", "io2bx:iops=9000,init=200MiB/s", "4xgp3:iops=4000,init=lazy_half", "gp3:init=fsr"];
/// Volumes that have only a part of their limits at times.
const DEGRADED: [&str; 2] = ["gp3:iops=9000,degraded=50%", "4xgp2:size=200GiB,degraded=promise"];
/// The bytes that their snapshots hold, of those that are asked for.
const HELD: [(u64, u64); 2] = [(0, 300 << 20), (700 << 20, 200 << 20)];
const MS: Nanos = 1_000_000;
/// What goes wrong for 400 ms, each on a volume that is drawn.
const FAULTS: [Effect; 4] = [
    Effect::Pause,
    Effect::Latency { added_ns: 30 * MS },
    Effect::Error { begin: 0, end: 1 << 29, once: false },
    Effect::Error { begin: 1 << 28, end: 1 << 30, once: true },
];
/// From this intervention on the first volume is lost.
const LOST_AFTER: u64 = 8;
const JOINS: &str = "8xgp3:chunk=128KiB";
const BECOMES: [&str; 4] =
    ["gp3:size=200GiB,iops=16000,throughput=500", "io2bx:size=300GiB,iops=5000", "gp2:size=400GiB", "st1:size=2TiB"];
/// What a host does.
#[derive(Clone, Copy)]
struct Run {
    seed: u64,
    /// The instance whose limits the volumes share.
    instance: &'static str,
    /// One request in so many is of 256 KiB, the others are of 8 KiB.
    large_one_in: u64,
}

const fn run(seed: u64, instance: &'static str, large_one_in: u64) -> Run {
    Run { seed, instance, large_one_in }
}

/// Instances that bind for half an hour or for ever, in throughput or (few large requests) in IOPS, and one that is far
/// above its volumes.
const RUNS: [Run; 8] = [
    run(17, "a1.medium", 8),
    run(18, "a1.large", 8),
    run(19, "t3.nano", 8),
    run(20, WIDE, 8),
    run(21, "a1.medium", 1_000),
    run(22, "t3.micro", 1_000),
    run(23, "t3.nano", 1_000),
    run(24, WIDE, 1_000),
];
const WIDE: &str = "r5b.24xlarge";
/// Ten million requests in all.
const REQUESTS_OF_A_RUN: u64 = 1_250_000;
const DEPTH: usize = 256;
/// Requests between two interventions: each kind comes twice in the short test.
const INTERVENE_EVERY: u64 = 15_000;
/// Volumes that join a run: more would make it slow, and are attached like these.
const JOINS_AT_MOST: u64 = 4;

fn specs() -> Vec<String> {
    let arrays = ARRAYS.iter().map(|spec| (*spec).to_owned());
    let others = DEGRADED.iter().chain(&RESTORED).map(|spec| (*spec).to_owned());
    types().unwrap().into_iter().map(|one| one.default_spec).chain(arrays).chain(others).collect()
}

fn instance(run: Run) -> (Instance, Vec<VolumeId>) {
    let limits = InstanceType::parse(run.instance).unwrap().ebs.unwrap().model;
    let mut instance = Instance::with_limits(run.seed, limits);
    let volumes = specs().iter().map(|spec| Storage::parse(spec).unwrap().add_to(&mut instance)).collect();
    (instance, volumes)
}

/// What a host did beside submitting requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Interventions {
    joined: u64,
    modified: u64,
    credits: u64,
    limits: u64,
    faults: u64,
    healed: u64,
}

/// A host that keeps requests outstanding, and the log that it writes, record by record.
struct Host {
    run: Run,
    instance: Instance,
    volumes: Vec<VolumeId>,
    now: Nanos,
    left: u64,
    ordinal: u64,
    outstanding: usize,
    bits: u64,
    events: Vec<Event>,
    log: VecDeque<Record>,
    done: Interventions,
    /// FNV-1a of every decision: the same on every machine.
    digest: u64,
}

impl Host {
    fn new(run: Run, requests: u64) -> Self {
        let (instance, volumes) = instance(run);
        let (events, log, done) = (Vec::new(), VecDeque::new(), Interventions::default());
        let (bits, digest) = (run.seed, 0xcbf2_9ce4_8422_2325);
        let (now, left, ordinal, outstanding) = (0, requests, 0, 0);
        let mut host =
            Self { run, instance, volumes, now, left, ordinal, outstanding, bits, events, log, done, digest };
        let mut held = Extents::default();
        HELD.iter().for_each(|(offset, len)| held.push(*offset, *len));
        for volume in host.restored() {
            host.instance.restore(0, volume, &held);
            host.log.extend(Record::text(&held.to_string()).chain([Record::Restore { now: 0, volume }]));
        }
        host
    }

    /// The volumes that were made from a snapshot: the last ones that were there at first.
    fn restored(&self) -> Vec<VolumeId> {
        let first = specs().len() - RESTORED.len();
        self.volumes[first..first + RESTORED.len()].to_vec()
    }

    /// A generator of its own (xorshift64): the test is the same everywhere.
    fn draw(&mut self, below: u64) -> u64 {
        self.bits ^= self.bits << 13;
        self.bits ^= self.bits >> 7;
        self.bits ^= self.bits << 17;
        self.bits % below
    }

    fn draw_volume(&mut self) -> VolumeId {
        let which = self.draw(self.volumes.len() as u64) as usize;
        self.volumes[which]
    }

    fn advance(&mut self, to: Nanos) {
        self.now = self.now.max(to);
        self.instance.advance(self.now, &mut self.events);
        for event in self.events.drain(..) {
            if let Event::Granted { id, done_at } | Event::Failing { id, done_at } = event {
                self.digest =
                    [id.0, done_at].iter().fold(self.digest, |hash, word| (hash ^ word).wrapping_mul(0x100_0000_01b3));
            }
            self.log.extend(Record::of_event(&event));
            self.outstanding -= usize::from(matches!(event, Event::Done { .. }));
        }
    }

    fn submit(&mut self) {
        let now = self.now + self.draw(60_000);
        self.advance(now);
        if self.ordinal % INTERVENE_EVERY == INTERVENE_EVERY - 1 {
            self.intervene(self.ordinal / INTERVENE_EVERY);
        }
        let op = if self.draw(3) == 0 { Op::Write } else { Op::Read };
        let len = if self.draw(self.run.large_one_in) == 0 { 256 << 10 } else { 8 << 10 };
        let io = Io { id: IoId(self.ordinal), op, offset: self.draw(1 << 14) * 65_536, len };
        let volume = self.draw_volume();
        self.instance.submit(self.now, volume, io);
        self.log.push_back(Record::Submit { now: self.now, volume, io });
        self.ordinal += 1;
        self.outstanding += 1;
        self.left -= 1;
    }

    /// What a user does to volumes at work, each in its turn.
    fn intervene(&mut self, nth: u64) {
        let (now, volume) = (self.now, self.draw_volume());
        match nth % 7 {
            0 => self.change(Change::InstanceCredit { level_ppm: 20 }),
            1 if self.done.joined < JOINS_AT_MOST => {
                self.volumes.push(Storage::parse(JOINS).unwrap().add_to(&mut self.instance));
                self.log.extend(Record::text(JOINS).chain([Record::Attach { now }]));
                self.done.joined += 1;
            }
            2 => self.change(Change::Credit { volume, level_ppm: 300_000 }),
            3 => {
                let limit = |rate_per_s, depth_ns| Some(BucketParams { rate_per_s, depth_ns });
                let (iops_limit, throughput_limit) = (limit(7_000, 50_000_000), limit(300 << 20, 1_000_000_000));
                self.change(Change::Limits { volume, iops_limit, throughput_limit });
            }
            4 => {
                let (from, until) = (now, now + 400 * MS);
                for effect in FAULTS {
                    let volume = self.draw_volume();
                    let fault = VolumeFault { from, until, reads: true, writes: true, share_ppm: ALL_PPM / 2, effect };
                    self.change(Change::Fault { volume, fault });
                }
                if nth >= LOST_AFTER {
                    let (volume, share_ppm, effect) = (self.volumes[0], ALL_PPM, Effect::Lose);
                    let fault = VolumeFault { from, until: Nanos::MAX, reads: true, writes: true, share_ppm, effect };
                    self.change(Change::Fault { volume, fault });
                }
            }
            5 => self.change(Change::Heal { volume }),
            _ => {
                let spec = BECOMES[self.done.modified as usize % BECOMES.len()];
                self.instance.modify(now, volume, Storage::parse(spec).unwrap().member().params());
                self.log.extend(Record::text(spec).chain([Record::Modify { now, volume }]));
                self.done.modified += 1;
            }
        }
    }

    fn change(&mut self, change: Change) {
        match change {
            Change::Limits { .. } => self.done.limits += 1,
            Change::Credit { .. } | Change::InstanceCredit { .. } => self.done.credits += 1,
            Change::Fault { .. } => self.done.faults += 1,
            Change::Heal { .. } => self.done.healed += 1,
            // It is held in crates/volume/tests/burst_credit.rs.
            Change::Baseline { .. } => unreachable!("this host takes no snapshot"),
        }
        self.instance.change(self.now, change);
        self.log.push_back(Record::Change { now: self.now, change });
    }
}

impl Iterator for Host {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        while self.log.is_empty() {
            let ended = self.left == 0;
            match self.instance.next_event() {
                Some(at) if ended || self.outstanding >= DEPTH => self.advance(at),
                None if ended => return None,
                _ => self.submit(),
            }
        }
        self.log.pop_front().map(|record| Record::decode(&record.encode()).expect("a record that was written"))
    }
}

/// Replays what `host` writes, on an instance as `run` has it.
fn replayed(host: &mut Host, run: Run) -> Replay {
    let repeat = |instance: &mut Instance, told: Told, spec: &str| {
        let storage = Storage::parse(spec).unwrap();
        match told {
            Told::Attach => {
                storage.add_to(instance);
            }
            Told::Modify { now, volume } => instance.modify(now, volume, storage.member().params()),
        }
        true
    };
    replay_with(&mut instance(run).0, host, repeat)
}

/// All of a run is decided again as it was; returns the host as it ended.
fn all_identical(run: Run, requests: u64) -> Host {
    let mut host = Host::new(run, requests);
    let result = replayed(&mut host, run);
    assert_eq!(result.first_difference, None);
    assert_eq!((result.submits, result.grants, result.identical), (requests, requests, requests));
    let Interventions { joined, modified, credits, limits, faults, healed } = host.done;
    assert!(joined > 0 && modified > 0 && credits > 0 && limits > 0, "{:?}", host.done);
    assert!(faults > FAULTS.len() as u64 && healed > 0, "{:?}", host.done);
    for (volume, spec) in host.restored().into_iter().zip(RESTORED) {
        let counters = host.instance.counters(volume);
        let waits = !spec.ends_with("fsr");
        assert_eq!(counters.first_touch_blocks > 0, waits, "{spec} of {counters:?}");
    }
    let instance = host.instance.instance_counters().unwrap();
    let bound_ns = instance.exceeded_iops_ns + instance.exceeded_throughput_ns;
    assert_eq!(bound_ns > 0, run.instance != WIDE, "whether the instance was what they waited for");
    for volume in &host.volumes {
        let counters = host.instance.counters(*volume);
        assert!(counters.read_ops > 0 && counters.write_ops > 0, "{volume:?} was idle");
    }
    host
}

#[test]
fn a_quarter_of_a_million_requests_are_decided_again_as_they_were() {
    all_identical(RUNS[0], 250_000);
}

#[test]
fn another_seed_decides_otherwise_and_is_caught() {
    let mut host = Host::new(RUNS[0], 10_000);
    assert!(replayed(&mut host, Run { seed: RUNS[0].seed + 1, ..RUNS[0] }).first_difference.is_some());
}

/// The measurement: one run of the ten million, and what it was.
#[expect(clippy::disallowed_macros, reason = "a measurement says its figures; `make bench ONLY=replay` reads them")]
fn measured(run: Run) {
    let host = all_identical(run, REQUESTS_OF_A_RUN);
    let Interventions { joined, modified, credits, limits, faults, healed } = host.done;
    let Run { seed, instance: name, .. } = run;
    let instance = host.instance.instance_counters().unwrap();
    println!(
        "replayed seed={seed} instance={name} volumes={} requests={REQUESTS_OF_A_RUN} joined={joined} modified={modified} \
         credits={credits} limits={limits} faults={faults} healed={healed} virtual_s={} exceeded_iops_s={} exceeded_throughput_s={} digest={:016x}",
        host.volumes.len(),
        host.now / 1_000_000_000,
        instance.exceeded_iops_ns / 1_000_000_000,
        instance.exceeded_throughput_ns / 1_000_000_000,
        host.digest,
    );
}

/// A test for each run, so that the machine's cores share them.
macro_rules! ten_million_requests {
    ($($name:ident: $run:expr;)*) => {$(
        #[test]
        #[ignore = "a measurement, minutes: `make bench ONLY=replay`"]
        fn $name() {
            measured(RUNS[$run]);
        }
    )*};
}

ten_million_requests! {
    ten_million_requests_1: 0;
    ten_million_requests_2: 1;
    ten_million_requests_3: 2;
    ten_million_requests_4: 3;
    ten_million_requests_5: 4;
    ten_million_requests_6: 5;
    ten_million_requests_7: 6;
    ten_million_requests_8: 7;
}
