//! Every type and array under an instance's limits, with volumes that come and change: decided again, all is the same.

use std::collections::VecDeque;

use pgdyno_catalog::{InstanceType, Storage, types};
use pgdyno_volume::log::Record;
use pgdyno_volume::replay::{Replay, Told, replay_with};
use pgdyno_volume::{Change, Event, Instance, Io, IoId, Nanos, Op, VolumeId};

const ARRAYS: [&str; 4] = [
    "4xgp3:iops=4000,chunk=64KiB",
    "raid10:4xgp3:size=50GiB,chunk=16KiB",
    "2xio2bx:iops=9000,multi_az=1.5ms",
    "gp3:iops=9000,multi_az=0.7ms",
];
const JOINS: &str = "8xgp3:chunk=128KiB";
const BECOMES: [&str; 2] = ["gp3:size=200GiB,iops=16000,throughput=500", "io2bx:size=300GiB,iops=5000"];
const DEPTH: usize = 256;
const SEED: u64 = 17;

fn specs() -> Vec<String> {
    let arrays = ARRAYS.iter().map(|spec| (*spec).to_owned());
    types().unwrap().into_iter().map(|one| one.default_spec).chain(arrays).collect()
}

fn instance() -> (Instance, Vec<VolumeId>) {
    let limits = InstanceType::parse("r6g.xlarge").unwrap().ebs.unwrap().model;
    let mut instance = Instance::with_limits(SEED, limits);
    let volumes = specs().iter().map(|spec| Storage::parse(spec).unwrap().add_to(&mut instance)).collect();
    (instance, volumes)
}

/// A host that keeps requests outstanding, and the log that it writes, record by record.
struct Host {
    instance: Instance,
    volumes: Vec<VolumeId>,
    now: Nanos,
    left: u64,
    ordinal: u64,
    outstanding: usize,
    bits: u64,
    events: Vec<Event>,
    log: VecDeque<Record>,
}

impl Host {
    fn new(requests: u64) -> Self {
        let (instance, volumes) = instance();
        let (events, log) = (Vec::new(), VecDeque::new());
        Self { instance, volumes, now: 0, left: requests, ordinal: 0, outstanding: 0, bits: SEED, events, log }
    }

    /// A generator of its own (xorshift64): the test is the same everywhere.
    fn draw(&mut self, below: u64) -> u64 {
        self.bits ^= self.bits << 13;
        self.bits ^= self.bits >> 7;
        self.bits ^= self.bits << 17;
        self.bits % below
    }

    fn advance(&mut self, to: Nanos) {
        self.now = self.now.max(to);
        self.instance.advance(self.now, &mut self.events);
        for event in self.events.drain(..) {
            self.log.extend(Record::of_event(&event));
            self.outstanding -= usize::from(matches!(event, Event::Done { .. }));
        }
    }

    fn submit(&mut self) {
        let now = self.now + self.draw(60_000);
        self.advance(now);
        if self.ordinal % 50_000 == 49_999 {
            self.intervene();
        }
        let which = self.draw(self.volumes.len() as u64) as usize;
        let op = if self.draw(3) == 0 { Op::Write } else { Op::Read };
        let len = if self.draw(8) == 0 { 256 << 10 } else { 8 << 10 };
        let io = Io { id: IoId(self.ordinal), op, offset: self.draw(1 << 14) * 65_536, len };
        let volume = self.volumes[which];
        self.instance.submit(self.now, volume, io);
        self.log.push_back(Record::Submit { now: self.now, volume, io });
        self.ordinal += 1;
        self.outstanding += 1;
        self.left -= 1;
    }

    fn intervene(&mut self) {
        let (now, nth) = (self.now, self.ordinal / 50_000);
        let told = |log: &mut VecDeque<Record>, spec: &str, record| {
            log.extend(Record::text(spec));
            log.push_back(record);
        };
        match nth % 3 {
            0 => {
                let change = Change::InstanceCredit { level_ppm: 20 };
                self.instance.change(now, change);
                self.log.push_back(Record::Change { now, change });
            }
            1 if self.volumes.len() < 2 * specs().len() => {
                self.volumes.push(Storage::parse(JOINS).unwrap().add_to(&mut self.instance));
                told(&mut self.log, JOINS, Record::Attach { now });
            }
            _ => {
                let spec = BECOMES[nth as usize % BECOMES.len()];
                let volume = self.volumes[0];
                self.instance.modify(now, volume, Storage::parse(spec).unwrap().member().params());
                told(&mut self.log, spec, Record::Modify { now, volume });
            }
        }
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

fn replayed(requests: u64) -> Replay {
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
    replay_with(&mut instance().0, Host::new(requests), repeat)
}

fn all_identical(requests: u64) {
    let result = replayed(requests);
    assert_eq!(result.first_difference, None);
    assert_eq!((result.submits, result.identical), (requests, requests));
}

#[test]
fn a_quarter_of_a_million_requests_are_decided_again_as_they_were() {
    all_identical(250_000);
}

#[test]
#[ignore = "a minute: `cargo test --release -p pgdyno-catalog --test replay -- --ignored`"]
fn ten_million_requests_are_decided_again_as_they_were() {
    all_identical(10_000_000);
}
