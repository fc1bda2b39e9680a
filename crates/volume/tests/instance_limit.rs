//! What the volumes of an instance share: bandwidth and IOPS, for ever and for half an hour.

use crate::common::*;
use pgdyno_volume::log::Record;
use pgdyno_volume::*;
use proptest::prelude::*;

const KIB: u32 = 1 << 10;

fn limits(iops: (u64, u64), mb_per_s: (u64, u64)) -> InstanceLimits {
    let rate = |(baseline_per_s, maximum_per_s), depth_ns| InstanceRate { baseline_per_s, maximum_per_s, depth_ns };
    let bytes = (mb_per_s.0 * 1_000_000, mb_per_s.1 * 1_000_000);
    InstanceLimits { iops: rate(iops, SECOND / 4), throughput: rate(bytes, SECOND) }
}

/// An instance of 12,000 IOPS, which does not burst.
fn steady() -> InstanceLimits {
    limits((12_000, 12_000), (10_000, 10_000))
}

/// Keeps `depth` random reads outstanding on each volume until `until`; completions by volume, after `from`.
fn drive(instance: &mut Instance, volumes: &[VolumeId], depth: u64, len: u32, from: Nanos, until: Nanos) -> Vec<u64> {
    let (mut done, mut events, mut next_id) = (vec![0; volumes.len()], Vec::new(), 0);
    let mut submit = |instance: &mut Instance, now: Nanos, volume: usize| {
        // The volume is in the id; odd multiples never touch, so nothing merges.
        let id = next_id * volumes.len() as u64 + volume as u64;
        let place = (next_id.wrapping_mul(2_654_435_761) % (1 << 18)) * 2 * u64::from(len);
        next_id += 1;
        instance.submit(now, volumes[volume], io(id, Op::Read, place, len));
    };
    let start = instance.now();
    for volume in 0..volumes.len() {
        (0..depth).for_each(|_| submit(instance, start, volume));
    }
    while let Some(now) = instance.next_event().filter(|now| *now <= until) {
        let now = now.max(instance.now());
        instance.advance(now, &mut events);
        for event in std::mem::take(&mut events) {
            if let Event::Done { id, .. } = event {
                let volume = (id.0 % volumes.len() as u64) as usize;
                done[volume] += u64::from(now > from);
                submit(instance, now, volume);
            }
        }
    }
    done
}

#[test]
fn two_volumes_of_10_000_share_an_instance_of_12_000() {
    let mut instance = Instance::with_limits(1, steady());
    let volumes = [0, 1].map(|_| instance.add_volume(params(Some(10_000), None, 300_000)));
    let done = drive(&mut instance, &volumes, 64, 4 * KIB, 5 * SECOND, 25 * SECOND);
    let sum: u64 = done.iter().sum();
    // 20 s at 12,000/s: the bar is 0.3 %.
    assert!(sum.abs_diff(240_000) <= 720, "{sum}");
    assert!(done[0].abs_diff(done[1]) <= sum / 100, "neither is preferred: {done:?}");
    let counters = instance.instance_counters().unwrap();
    assert!(counters.exceeded_iops_ns > 15 * SECOND, "the instance is what they wait for");
    assert_eq!((counters.exceeded_throughput_ns, counters.iops_balance_ppm), (0, None));
}

#[test]
fn a_volume_below_the_instances_limit_has_its_own() {
    let mut instance = Instance::with_limits(1, steady());
    let slow = instance.add_volume(params(Some(1_000), None, 300_000));
    let fast = instance.add_volume(params(Some(8_000), None, 300_000));
    let done = drive(&mut instance, &[slow, fast], 32, 4 * KIB, 5 * SECOND, 15 * SECOND);
    assert!(done[0].abs_diff(10_000) <= 10 && done[1].abs_diff(80_000) <= 80, "{done:?}");
}

#[test]
fn the_burst_ends_when_its_reserve_is_empty() {
    // r6g.large: 3,600 IOPS and for half an hour 20,000. An eighth of the reserve lasts 225 s.
    let mut instance = Instance::with_limits(1, limits((3_600, 20_000), (10_000, 10_000)));
    let volume = instance.add_volume(params(None, None, 300_000));
    instance.change(0, Change::InstanceCredit { level_ppm: 125_000 });
    assert_eq!(instance.instance_counters().unwrap().iops_balance_ppm, Some(125_000));
    let done = drive(&mut instance, &[volume], 64, 4 * KIB, SECOND, 224 * SECOND);
    assert!(done[0].abs_diff(223 * 20_000) <= 2 * 20_000, "the maximum, to the end: {}", done[0]);
    let left = instance.instance_counters().unwrap().iops_balance_ppm.unwrap();
    assert!(left <= 700, "one second of 1,800 is left: {left} ppm");
    let mut events = Vec::new();
    instance.advance(226 * SECOND, &mut events);
    // Requests that were outstanding have their answers; from here on the baseline.
    let done = drive(&mut instance, &[volume], 64, 4 * KIB, 230 * SECOND, 330 * SECOND);
    assert!(done[0].abs_diff(360_000) <= 100, "the baseline after it: {}", done[0]);
}

#[test]
fn an_idle_instance_saves_up_again() {
    let mut instance = Instance::with_limits(1, limits((3_600, 20_000), (100, 400)));
    instance.add_volume(params(None, None, 0));
    instance.change(0, Change::InstanceCredit { level_ppm: 0 });
    let mut events = Vec::new();
    // 30 minutes of 16,400/s at 3,600/s: 8,200 s.
    instance.advance(4_100 * SECOND, &mut events);
    let half = instance.instance_counters().unwrap();
    assert!(half.iops_balance_ppm.unwrap().abs_diff(500_000) <= 1, "{half:?}");
    instance.advance(8_200 * SECOND, &mut events);
    let full = instance.instance_counters().unwrap();
    assert_eq!((full.iops_balance_ppm, full.throughput_balance_ppm), (Some(1_000_000), Some(1_000_000)));
}

#[test]
fn bandwidth_binds_where_requests_are_large() {
    let mut instance = Instance::with_limits(1, limits((12_000, 12_000), (200, 200)));
    let volumes = [0, 1, 2].map(|_| instance.add_volume(params(Some(3_000), None, 300_000)));
    let done = drive(&mut instance, &volumes, 16, 256 * KIB, 5 * SECOND, 25 * SECOND);
    let mb_per_s = done.iter().sum::<u64>() as f64 * 262_144.0 / 20e6;
    assert!((mb_per_s / 200.0 - 1.0).abs() < 0.003, "{mb_per_s} MB/s");
    assert!(instance.instance_counters().unwrap().exceeded_throughput_ns > 15 * SECOND);
}

#[test]
fn a_request_above_256_kib_counts_as_several_and_a_local_volume_as_none() {
    let mut instance = Instance::with_limits(1, steady());
    let volume = instance.add_volume(params(None, None, 0));
    let local = instance.add_local_volume(params(None, None, 0));
    instance.submit(0, volume, io(1, Op::Write, 0, 1024 * KIB));
    instance.submit(0, local, io(2, Op::Write, 0, 1024 * KIB));
    let mut events = Vec::new();
    instance.advance(0, &mut events);
    assert_eq!(events.len(), 4, "both are granted and done: {events:?}");
    let counters = instance.instance_counters().unwrap();
    assert_eq!((counters.ops, counters.bytes), (4, 1 << 20));
}

#[test]
fn the_device_works_while_the_instance_paces() {
    let mut instance = Instance::with_limits(1, limits((100, 100), (10_000, 10_000)));
    let volume = instance.add_volume(params(None, None, 30_000_000));
    let depth = 64;
    // Drained: from here on a request passes every 10 ms.
    let done = drive(&mut instance, &[volume], depth, 4 * KIB, 5 * SECOND, 25 * SECOND);
    assert!(done[0].abs_diff(2_000) <= 2, "{done:?}");
    assert_eq!(instance.outstanding(volume), depth as usize);
}

type Arrival = (u64, bool, u32, u8);

/// A host that advances when it happens to wake, and logs as the emulator does.
fn record(arrivals: &[Arrival], instance: &mut Instance, extra: bool) -> Vec<Record> {
    let volumes = [700, 2_000, 300].map(|iops| instance.add_volume(params(Some(iops), Some(40 << 20), 400_000)));
    let (mut host, mut now) = (Recorder::default(), 0);
    for (i, (gap, write, pages, which)) in arrivals.iter().enumerate() {
        now += gap;
        let op = if *write { Op::Write } else { Op::Read };
        let volume = volumes[usize::from(*which) % volumes.len()];
        let request = io(i as u64, op, (i as u64 % 9_973) * 8_192, pages * 4_096);
        host.submit(instance, now, volume, request);
        if i % 37 == 0 {
            let change = Change::InstanceCredit { level_ppm: 250_000 - (i as u32 * 331) % 250_000 };
            host.change(instance, now, change);
        }
        if extra || i % 3 == 0 {
            host.advance(instance, now + if extra { gap / 2 } else { 0 });
        }
        now = now.max(instance.now());
    }
    host.finish(instance)
}

proptest! {
    #[test]
    fn a_log_replays_identically(
        arrivals in prop::collection::vec((0u64..2_000_000, any::<bool>(), 1u32..128, any::<u8>()), 1..400),
        extra in any::<bool>(),
    ) {
        // Small enough that the reserve runs dry.
        let limits = limits((400, 900), (10, 25));
        let log = record(&arrivals, &mut Instance::with_limits(11, limits), extra);
        let mut instance = Instance::with_limits(11, limits);
        for iops in [700, 2_000, 300] {
            instance.add_volume(params(Some(iops), Some(40 << 20), 400_000));
        }
        assert_replays(&mut instance, &log, arrivals.len(), nothing_told);
    }

    #[test]
    fn never_above_the_maximum_nor_above_reserve_and_baseline(
        arrivals in prop::collection::vec((0u64..4_000_000, any::<bool>(), 1u32..64, any::<u8>()), 1..300),
    ) {
        let limits = limits((50, 300), (10_000, 10_000));
        let mut instance = Instance::with_limits(5, limits);
        let volumes = [0, 1].map(|_| instance.add_volume(params(None, None, 0)));
        instance.change(0, Change::InstanceCredit { level_ppm: 1_000 });
        let (mut events, mut now) = (Vec::new(), 0);
        for (i, (gap, _, _, which)) in arrivals.iter().enumerate() {
            now += gap;
            instance.submit(now, volumes[usize::from(*which) % 2], io(i as u64, Op::Read, i as u64 * 8_192, 4_096));
        }
        instance.advance(u64::MAX / 2, &mut events);
        let granted: Vec<Nanos> = events.iter().filter_map(|event| match event {
            Event::Granted { done_at, .. } => Some(*done_at),
            Event::Failing { .. } | Event::Done { .. } => None,
        }).collect();
        prop_assert_eq!(granted.len(), arrivals.len());
        let allowed = |rate: u128, saved: u128, ns: u128| saved + rate * ns / u128::from(SECOND) + 1;
        for (from, first) in granted.iter().enumerate() {
            for (more, at) in granted[from..].iter().enumerate() {
                let ns = u128::from(at - first);
                let ops = more as u128 + 1;
                prop_assert!(ops <= allowed(300, 75, ns), "{ops} in {ns} ns, above the maximum");
                // The reserve holds 450,000, of which 450 are left.
                prop_assert!(ops <= allowed(50, 451 + 50 * u128::from(granted[0]) / u128::from(SECOND), ns) || from > 0);
            }
        }
    }
}
