//! Credits: how long a burst lasts, what is left when they are gone, and that nothing is granted twice.

use crate::common::*;
use pgdyno_volume::*;
use proptest::prelude::*;

const UNIT: u32 = 256 << 10;
const MIB: u64 = 1 << 20;

/// gp2 of 100 GiB: 300 IOPS, bursts to 3,000, and a limit that saves nothing up itself.
fn gp2(initial: u64) -> VolumeParams {
    VolumeParams {
        iops_limit: Some(BucketParams { rate_per_s: 3_000, depth_ns: 0 }),
        iops_credit: Some(CreditParams { rate_per_s: 300, capacity: 5_400_000, initial }),
        ..params(None, None, 0)
    }
}

/// st1 of 1 TiB: 40 MiB/s, bursts to 250, 1 TiB of credits, 1 MiB as the least that is charged.
fn st1() -> VolumeParams {
    VolumeParams {
        throughput_limit: Some(BucketParams { rate_per_s: 250 * MIB, depth_ns: 0 }),
        throughput_credit: Some(CreditParams { rate_per_s: 40 * MIB, capacity: 1 << 40, initial: 1 << 40 }),
        accounting: Accounting { unit_bytes: MIB, merge_sequential: true },
        cost: Cost { whole_units: true, ..Cost::default() },
        ..params(None, None, 0)
    }
}

/// One random request of `len` bytes after the other, each at the instant of the last one's end.
struct Saturated {
    instance: Instance,
    volume: VolumeId,
    len: u32,
    next: u64,
    now: Nanos,
}

impl Saturated {
    fn new(params: VolumeParams, len: u32) -> Self {
        let mut instance = Instance::new(1);
        let volume = instance.add_volume(params);
        Self { instance, volume, len, next: 0, now: 0 }
    }

    /// The instant at which the next request is done.
    fn step(&mut self) -> Nanos {
        // Places that never touch, so that nothing merges.
        let offset = (self.next * 7_919 % 100_000) * 2 * u64::from(self.len);
        self.instance.submit(self.now, self.volume, io(self.next, Op::Read, offset, self.len));
        self.next += 1;
        let mut events = Vec::new();
        while let Some(at) = self.instance.next_event() {
            self.now = at;
            self.instance.advance(at, &mut events);
        }
        self.now
    }

    fn counters(&self) -> Counters {
        self.instance.counters(self.volume)
    }
}

/// When requests first come further apart than half way between the two rates.
fn knee_s(load: &mut Saturated, apart_ns: Nanos) -> f64 {
    let mut last = load.step();
    loop {
        let next = load.step();
        if next - last > apart_ns {
            return last as f64 / 1e9;
        }
        last = next;
    }
}

#[test]
fn forty_thousand_credits_last_fifteen_seconds_and_then_the_baseline_is_left() {
    let mut load = Saturated::new(gp2(40_000), 4096);
    let knee = knee_s(&mut load, 1_000_000);
    // 40,000 / (3,000 - 300): spent is what is used above the baseline.
    let expected = 40_000.0 / 2_700.0;
    assert!((knee / expected - 1.0).abs() < 0.005, "knee at {knee} s, expected {expected}");
    let (from, first) = (load.now, load.next);
    while load.now < from + 100 * SECOND {
        load.step();
    }
    assert!((load.next - first).abs_diff(30_000) <= 1, "{} in 100 s at 300/s", load.next - first);
    assert_eq!(load.counters().io_credits, Some(0));
}

/// The user guide's table: 100 GiB bursts for 2,000 s; and `BurstBalance` at each minute.
#[test]
fn a_full_bucket_lasts_two_thousand_seconds_and_the_balance_agrees_at_every_minute() {
    let mut load = Saturated::new(gp2(5_400_000), 16 * UNIT);
    let mut minute = 0;
    let (mut last, mut knee) = (0, None);
    while load.now < 2_200 * SECOND {
        let now = load.step();
        if knee.is_none() && now - last > 30_000_000 {
            knee = Some(last as f64 / 1e9);
        }
        last = now;
        if now / (60 * SECOND) > minute {
            minute = now / (60 * SECOND);
            let expected = (5_400_000.0 - 2_700.0 * now as f64 / 1e9).max(0.0) / 5.4;
            let balance = f64::from(load.counters().burst_balance_ppm.expect("it has credits"));
            // One request of 16 units and the 5 ms of catch-up are 31 of 5.4 million.
            assert!((balance - expected).abs() < 10.0, "minute {minute}: {balance} ppm, expected {expected}");
        }
    }
    let knee = knee.expect("the credits end");
    assert!((knee / 2_000.0 - 1.0).abs() < 0.001, "{knee} s");
    assert_eq!(minute, 36);
}

#[test]
fn throughput_credits_of_a_hard_disk_volume_end_when_the_bucket_is_empty() {
    let mut load = Saturated::new(st1(), 4 * MIB as u32);
    let knee = knee_s(&mut load, 50_000_000);
    let expected = (1u64 << 20) as f64 / 210.0;
    assert!((knee / expected - 1.0).abs() < 0.001, "knee at {knee} s, expected {expected}");
    let (from, first) = (load.now, load.next);
    while load.now < from + 100 * SECOND {
        load.step();
    }
    assert!((load.next - first).abs_diff(1_000) <= 1, "4 MiB each at 40 MiB/s");
    assert_eq!(load.counters().burst_balance_ppm, Some(0));
}

/// As while a snapshot of it is pending: neither the catch-up credit nor the balance moves what a second has by more than one request.
#[test]
fn a_volume_held_to_its_baseline_keeps_its_credits_and_bursts_again_at_the_instant_it_ends() {
    let mut load = Saturated::new(st1(), 4 * MIB as u32);
    let volume = load.volume;
    let in_a_second = |load: &mut Saturated| {
        let (from, first) = (load.now, load.next);
        while load.now < from + SECOND {
            load.step();
        }
        load.next - first
    };
    assert!(in_a_second(&mut load).abs_diff(62) <= 2, "4 MiB each at 250 MiB/s");
    let before = load.counters().throughput_credits_bytes.expect("it has credits");
    load.instance.change(load.now, Change::Baseline { volume, until: load.now + 100 * SECOND });
    // A second one that ends before does not shorten it.
    load.instance.change(load.now, Change::Baseline { volume, until: load.now + SECOND });
    let (from, first) = (load.now, load.next);
    while load.now < from + 100 * SECOND {
        load.step();
    }
    assert!((load.next - first).abs_diff(1_000) <= 2, "4 MiB each at 40 MiB/s");
    let after = load.counters().throughput_credits_bytes.expect("it has credits");
    assert!(before.abs_diff(after) <= 8 * MIB, "what is spent is what is earned");
    assert!(in_a_second(&mut load).abs_diff(62) <= 2, "the balance was not lost");
}

#[test]
fn a_volume_that_becomes_another_is_held_to_the_new_baseline_and_one_without_credits_to_nothing() {
    let mut load = Saturated::new(st1(), 4 * MIB as u32);
    let volume = load.volume;
    load.instance.change(0, Change::Baseline { volume, until: 100 * SECOND });
    let credit = CreditParams { rate_per_s: 80 * MIB, capacity: 2 << 40, initial: 2 << 40 };
    load.instance.modify(0, volume, &VolumeParams { throughput_credit: Some(credit), ..st1() });
    while load.now < 100 * SECOND {
        load.step();
    }
    assert!(load.next.abs_diff(2_000) <= 2, "4 MiB each at 80 MiB/s");
    let mut plain = Saturated::new(VolumeParams { throughput_credit: None, ..st1() }, 4 * MIB as u32);
    let volume = plain.volume;
    plain.instance.change(0, Change::Baseline { volume, until: 100 * SECOND });
    while plain.now < 10 * SECOND {
        plain.step();
    }
    assert!(plain.next.abs_diff(625) <= 2, "4 MiB each at 250 MiB/s");
}

#[test]
fn a_small_random_read_costs_a_hard_disk_volume_a_whole_unit_and_sequential_ones_share_it() {
    let spent = |touching: bool| {
        let mut instance = Instance::new(1);
        let volume = instance.add_volume(st1());
        for i in 0..64 {
            let offset = if touching { i * 16_384 } else { i * 4 * MIB };
            instance.submit(0, volume, io(i, Op::Read, offset, 16_384));
        }
        instance.advance(0, &mut Vec::new());
        instance.advance(SECOND, &mut Vec::new());
        // What is earned while the bucket is not full comes on top: a second of 40 MiB/s at most.
        (1u64 << 40) - instance.counters(volume).throughput_credits_bytes.unwrap()
    };
    assert!(spent(true) <= MIB, "{} bytes for 1 MiB in 64 pieces", spent(true));
    assert!((24 * MIB..=64 * MIB).contains(&spent(false)), "{} bytes for 64 places", spent(false));
}

#[test]
fn what_is_saved_is_no_more_than_the_bucket_holds() {
    let mut instance = Instance::new(1);
    let volume = instance.add_volume(gp2(0));
    assert_eq!(instance.counters(volume).io_credits, Some(0));
    instance.advance(60 * SECOND, &mut Vec::new());
    assert_eq!(instance.counters(volume).io_credits, Some(18_000), "300 each second");
    instance.advance(18_000 * SECOND, &mut Vec::new());
    assert_eq!(instance.counters(volume).io_credits, Some(5_400_000), "full after the guide's 18,000 s");
    instance.advance(1_000_000 * SECOND, &mut Vec::new());
    assert_eq!(instance.counters(volume).burst_balance_ppm, Some(1_000_000));
}

#[test]
fn a_volume_without_credits_has_no_balance() {
    let mut instance = Instance::new(1);
    let volume = instance.add_volume(params(Some(3_000), Some(MIB), 0));
    let Counters { io_credits, throughput_credits_bytes, burst_balance_ppm, .. } = instance.counters(volume);
    assert_eq!((io_credits, throughput_credits_bytes, burst_balance_ppm), (None, None, None));
}

/// An instance store of 103,125 reads or 35,000 writes: in the share of its time that reads leave, it writes.
#[test]
fn reads_and_writes_share_the_time_of_one_device() {
    let store = || VolumeParams {
        iops_limit: Some(BucketParams { rate_per_s: 103_125 * 56, depth_ns: 0 }),
        cost: Cost { read_tokens: 56, write_tokens: 165, whole_units: false },
        ..params(None, None, 0)
    };
    let per_second = |reads_of_four: u64| {
        let mut instance = Instance::new(1);
        let volume = instance.add_volume(store());
        for i in 0..200_000 {
            let op = if i % 4 < reads_of_four { Op::Read } else { Op::Write };
            instance.submit(0, volume, io(i, op, (i * 7_919 % 100_000) << 20, 4096));
        }
        let mut events = Vec::new();
        instance.advance(SECOND, &mut events);
        events.iter().filter(|event| matches!(event, Event::Done { .. })).count() as f64
    };
    for (reads_of_four, expected) in [
        (4, 103_125.0),
        (0, 35_000.0),
        (2, 2.0 / (1.0 / 103_125.0 + 1.0 / 35_000.0)),
        (3, 4.0 / (3.0 / 103_125.0 + 1.0 / 35_000.0)),
    ] {
        let done = per_second(reads_of_four);
        // 5 ms of the rate are let through early.
        assert!((done / expected - 1.005).abs() < 0.001, "{reads_of_four} reads of four: {done}, expected {expected}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever comes: no more by any instant than there was and was earned; and every grant comes at the instant at
    /// which two leaking levels in floating point, written down a second time, first allow it.
    #[test]
    fn grants_keep_both_limits_and_waste_neither(
        initial in 0u64..5_000,
        baseline in 10u64..1_000,
        above in 1u64..5_000,
        arrivals in prop::collection::vec((0u64..30_000_000, 1u32..20), 1..300),
    ) {
        let (capacity, burst) = (5_000u64, baseline + above);
        let mut instance = Instance::new(1);
        let volume = instance.add_volume(VolumeParams {
            iops_limit: Some(BucketParams { rate_per_s: burst, depth_ns: 0 }),
            iops_credit: Some(CreditParams { rate_per_s: baseline, capacity, initial }),
            ..params(None, None, 0)
        });
        let (mut now, mut events) = (0, Vec::new());
        for (i, (gap, units)) in arrivals.iter().enumerate() {
            now += gap;
            instance.submit(now, volume, io(i as u64, Op::Read, (i as u64) << 26, units * UNIT));
        }
        instance.advance(u64::MAX / 2, &mut events);
        let depth = 1.0 + burst as f64 * 0.005;
        // (level, rate, most) of the limit and of the credits.
        let mut levels = [(depth, burst as f64, depth), (initial as f64, baseline as f64, capacity as f64)];
        let (mut total, mut arrived_s, mut granted_s) = (0u64, 0.0, 0.0f64);
        for event in &events {
            let Event::Granted { id, done_at } = event else { continue };
            let (gap, units) = arrivals[id.0 as usize];
            arrived_s += gap as f64 / 1e9;
            let from_s = granted_s.max(arrived_s);
            let idle_s = from_s - granted_s;
            let filled = levels.map(|(level, rate, most)| ((level + idle_s * rate).min(most), rate, most));
            let wait_s = filled.map(|(level, rate, most)| (f64::from(units).min(most) - level) / rate);
            let wait_s = wait_s.into_iter().fold(0.0, f64::max);
            levels = filled.map(|(level, rate, most)| ((level + wait_s * rate).min(most) - f64::from(units), rate, most));
            granted_s = from_s + wait_s;
            prop_assert!((*done_at as f64 / 1e9 - granted_s).abs() < 1e-5, "{done_at} ns, expected {granted_s} s");
            total += u64::from(units);
            let earned = (u128::from(baseline) * u128::from(*done_at) / u128::from(SECOND)) as u64;
            prop_assert!(total <= initial + earned + 1, "{total} by {done_at} ns of {initial} + {earned}");
        }
        prop_assert_eq!(events.len(), 2 * arrivals.len());
    }

    #[test]
    fn looking_changes_neither_grants_nor_balance(
        arrivals in prop::collection::vec((0u64..5_000_000, any::<bool>(), 1u32..64), 1..200),
        looks in prop::collection::vec(0u64..5_000_000, 0..50),
    ) {
        let run = |look: bool| {
            let mut instance = Instance::new(5);
            let both = VolumeParams {
                iops_credit: Some(CreditParams { rate_per_s: 100, capacity: 500, initial: 50 }),
                throughput_credit: Some(CreditParams { rate_per_s: MIB, capacity: 8 * MIB, initial: MIB }),
                order: Order::Gamma,
                ..params(Some(2_000), Some(20 * MIB), 300_000)
            };
            let volume = instance.add_volume(both);
            let (mut now, mut events) = (0u64, Vec::new());
            for (i, (gap, write, pages)) in arrivals.iter().enumerate() {
                for part in looks.iter().filter(|part| look && **part <= *gap) {
                    instance.advance((now + part).max(instance.now()), &mut events);
                    instance.counters(volume);
                }
                now += gap;
                let op = if *write { Op::Write } else { Op::Read };
                instance.submit(now, volume, io(i as u64, op, (i as u64 % 97) << 20, pages * 4096));
            }
            instance.advance(u64::MAX / 2, &mut events);
            (events, instance.counters(volume))
        };
        prop_assert_eq!(run(false), run(true));
    }
}
