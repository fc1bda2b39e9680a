//! The ideal host: what it is told late, it asks for in time.

use crate::common::*;
use pgdyno_volume::log::Record;
use pgdyno_volume::*;

/// Requests as a slow host recorded them: each 10 ms after the one before.
fn slow(requests: u64, volume: VolumeId) -> Vec<Record> {
    let submit =
        |i: u64| Record::Submit { now: SECOND + i * 10_000_000, volume, io: io(i % 7, Op::Read, i << 20, 4096) };
    let empty = Record::Change { now: SECOND, change: Change::Credit { volume, level_ppm: 0 } };
    std::iter::once(empty).chain((0..requests).map(submit)).collect()
}

fn ideal(params: VolumeParams, requests: u64, depth: usize) -> Vec<Record> {
    let mut instance = Instance::new(3);
    let volume = instance.add_volume(params);
    let mut out = Vec::new();
    pgdyno_volume::closed_loop::closed_loop(&mut instance, slow(requests, volume).into_iter(), depth, |record| {
        out.push(record)
    });
    out
}

fn last_done_at(log: &[Record]) -> Nanos {
    let done_at = |record: &Record| if let Record::Grant { done_at, .. } = record { Some(*done_at) } else { None };
    log.iter().filter_map(done_at).max().expect("something was granted")
}

#[test]
fn below_the_limit_requests_follow_each_other_without_a_gap() {
    let log = ideal(params(None, None, 500_000), 1_000, 1);
    assert_eq!(last_done_at(&log), SECOND + 1_000 * 500_000);
    let log = ideal(params(None, None, 500_000), 1_000, 4);
    assert_eq!(last_done_at(&log), SECOND + 1_000 / 4 * 500_000, "four at a time");
}

#[test]
fn above_the_limit_the_rate_is_the_limits() {
    let log = ideal(params(Some(2_000), None, 100_000), 4_000, 32);
    let took = last_done_at(&log) - SECOND;
    assert!(took.abs_diff(2 * SECOND) <= SECOND / 2_000, "took {took} ns");
}

#[test]
fn what_it_writes_is_a_log_that_replays() {
    let log = ideal(params(Some(2_000), None, 900_000), 3_000, 8);
    let submits = log.iter().filter(|record| matches!(record, Record::Submit { .. })).count() as u64;
    assert_eq!(submits, 3_000);
    let mut instance = Instance::new(3);
    instance.add_volume(params(Some(2_000), None, 900_000));
    let result = replay::replay(&mut instance, log.into_iter());
    assert_eq!((result.identical, result.first_difference), (3_000, None));
}

#[test]
#[should_panic(expected = "at least one request")]
fn a_depth_of_nothing_is_a_bug() {
    ideal(params(None, None, 1), 1, 0);
}
