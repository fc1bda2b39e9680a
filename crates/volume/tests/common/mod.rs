//! A host in virtual time for the model's tests.
#![allow(dead_code, missing_docs, reason = "each test file uses a part of it")]

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
