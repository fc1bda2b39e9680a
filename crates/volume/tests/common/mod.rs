//! A host in virtual time for the model's tests.

use pgdyno_volume::log::{RECORD_BYTES, Record};
use pgdyno_volume::replay::{Told, replay_with};
use pgdyno_volume::*;

pub const SECOND: Nanos = 1_000_000_000;

/// A volume with limits and a constant service time.
pub fn params(iops: Option<u64>, bytes_per_s: Option<u64>, service_ns: u64) -> VolumeParams {
    let bucket = |rate_per_s| BucketParams { rate_per_s, depth_ns: SECOND };
    let table = QuantileTable::constant(service_ns);
    VolumeParams {
        iops_limit: iops.map(bucket),
        throughput_limit: bytes_per_s.map(bucket),
        service_time: ServiceTimeParams { read: table.clone(), write: table },
        ..VolumeParams::unlimited(1 << 40)
    }
}

pub fn io(id: u64, op: Op, offset: u64, len: u32) -> Io {
    Io { id: IoId(id), op, offset, len }
}

/// (submitted, granted, done) of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    pub id: IoId,
    pub submitted_at: Nanos,
    pub done_at: Nanos,
}

/// Keeps `depth` random 4 KiB reads outstanding until `until`, and returns every completed request.
pub fn closed_loop(instance: &mut Instance, volume: VolumeId, depth: u64, until: Nanos) -> Vec<Life> {
    let mut events = Vec::new();
    let mut submitted = std::collections::BTreeMap::new();
    let mut done = Vec::new();
    let mut next_id = 0u64;
    let start = instance.now();
    let mut submit = |instance: &mut Instance, now: Nanos, submitted: &mut std::collections::BTreeMap<IoId, Nanos>| {
        // Odd multiples of 8 KiB never touch, so nothing merges.
        let request = io(next_id, Op::Read, (next_id.wrapping_mul(2_654_435_761) % (1 << 20)) * 8192, 4096);
        next_id += 1;
        instance.submit(now, volume, request);
        submitted.insert(request.id, now);
    };
    for _ in 0..depth {
        submit(instance, start, &mut submitted);
    }
    while let Some(now) = instance.next_event().filter(|now| *now <= until) {
        instance.advance(now.max(instance.now()), &mut events);
        for event in std::mem::take(&mut events) {
            if let Event::Done { id, .. } = event {
                done.push(Life { id, submitted_at: submitted[&id], done_at: now });
                submit(instance, now, &mut submitted);
            }
        }
    }
    done
}

/// A host that writes down what it tells an instance, and what that decides, as the emulator does.
#[derive(Default)]
pub struct Recorder {
    pub log: Vec<Record>,
    events: Vec<Event>,
}

impl Recorder {
    pub fn submit(&mut self, instance: &mut Instance, now: Nanos, volume: VolumeId, io: Io) {
        instance.submit(now, volume, io);
        self.log.push(Record::Submit { now, volume, io });
    }

    pub fn change(&mut self, instance: &mut Instance, now: Nanos, change: Change) {
        instance.change(now, change);
        self.log.push(Record::Change { now, change });
    }

    pub fn restore(&mut self, instance: &mut Instance, now: Nanos, volume: VolumeId, held: &Extents) {
        instance.restore(now, volume, held);
        self.log.extend(Record::text(&held.to_string()).chain([Record::Restore { now, volume }]));
    }

    pub fn advance(&mut self, instance: &mut Instance, now: Nanos) {
        instance.advance(now, &mut self.events);
        self.log.extend(self.events.drain(..).filter_map(|event| Record::of_event(&event)));
    }

    /// The whole log, when all that is outstanding is done.
    pub fn finish(mut self, instance: &mut Instance) -> Vec<Record> {
        self.advance(instance, u64::MAX / 2);
        self.log
    }
}

/// A log that was written as bytes and read again, which is the same, decides the same of so many `requests`.
pub fn assert_replays(
    instance: &mut Instance,
    log: &[Record],
    requests: usize,
    repeat: impl FnMut(&mut Instance, Told, &str) -> bool,
) {
    let bytes: Vec<[u8; RECORD_BYTES]> = log.iter().map(Record::encode).collect();
    let back: Vec<Record> = bytes.iter().filter_map(Record::decode).collect();
    assert_eq!(back, log);
    let result = replay_with(instance, back.into_iter(), repeat);
    assert_eq!((result.first_difference, result.identical), (None, requests as u64));
}

/// Of a log during which no volume came or became another.
pub fn nothing_told(_: &mut Instance, _: Told, _: &str) -> bool {
    false
}
