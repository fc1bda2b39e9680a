//! A host that is stalled answers late, and what arrives late finds its tokens: no bucket is too shallow for that.

use crate::common::*;
use pgdyno_volume::*;
use proptest::prelude::*;

/// One request outstanding, sent again when the last is done; once in 100 ms the answer is `stall_ns` late.
fn delivered(limits: (Option<u64>, Option<u64>), len: u32, depth_ns: u64, stall_ns: u64, until: Nanos) -> u64 {
    let bucket = |rate_per_s| BucketParams { rate_per_s, depth_ns };
    let limited = VolumeParams {
        iops_limit: limits.0.map(bucket),
        throughput_limit: limits.1.map(bucket),
        ..params(None, None, 0)
    };
    let mut instance = Instance::new(1);
    let volume = instance.add_volume(limited);
    instance.change(0, Change::Credit { volume, level_ppm: 0 });
    let (mut now, mut done, mut stalled_at, mut events) = (0, 0, 0, Vec::new());
    while now <= until {
        instance.submit(now, volume, io(done, Op::Read, done << 20, len));
        instance.advance(now, &mut events);
        now = instance.next_event().unwrap_or(now);
        done += 1;
        if now >= stalled_at + SECOND / 10 {
            now += stall_ns;
            stalled_at = now;
        }
        instance.advance(now, &mut events);
    }
    done
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_stall_of_a_few_milliseconds_costs_nothing(
        iops in 100u64..20_000,
        depth_ms in 0u64..20,
        stall_us in 0u64..5_000,
    ) {
        let done = delivered((Some(iops), None), 4096, depth_ms * 1_000_000, stall_us * 1_000, 4 * SECOND);
        prop_assert!(done.abs_diff(4 * iops) <= 1 + iops / 200, "{done} in 4 s at {iops}/s");
    }

    #[test]
    fn nor_does_it_cost_bytes(mib_per_s in 25u64..1_000, kib in 4u32..256, stall_us in 0u64..5_000) {
        let rate = mib_per_s << 20;
        let len = kib << 10;
        let bytes = delivered((None, Some(rate)), len, 0, stall_us * 1_000, 2 * SECOND) * u64::from(len);
        prop_assert!(bytes.abs_diff(2 * rate) <= u64::from(len) + rate / 200, "{bytes} in 2 s at {rate}/s");
    }
}

#[test]
fn a_longer_stall_costs_what_is_beyond_the_credit_and_no_more() {
    let done = delivered((Some(1_000), None), 4096, 0, 20_000_000, 10 * SECOND);
    // Of the 120 tokens of 100 ms and a stall 14 are lost: of those of the stall 5 are credit, 1 is the next request's.
    let expected = 10_000.0 * 106.0 / 120.0;
    assert!((done as f64 / expected - 1.0).abs() < 0.005, "{done}, expected {expected}");
}

#[test]
fn a_shallow_bucket_bursts_no_further_than_its_credit() {
    let bucket = Some(BucketParams { rate_per_s: 3_000, depth_ns: 0 });
    let mut instance = Instance::new(1);
    let volume = instance.add_volume(VolumeParams { iops_limit: bucket, ..params(None, None, 0) });
    let done = closed_loop(&mut instance, volume, 32, SECOND);
    assert_eq!(done.len(), 3_000 + 1 + 15, "the rate, one request, and 5 ms of the rate");
}
