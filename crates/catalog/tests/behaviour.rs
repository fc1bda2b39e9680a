//! Every volume type as the model runs it: what is published about rates over time comes out, a recorded run replays,
//! and no request is lost.

use pgdyno_catalog::{Resolved, types};
use pgdyno_volume::closed_loop::closed_loop;
use pgdyno_volume::log::Record;
use pgdyno_volume::replay::replay;
use pgdyno_volume::{Counters, Event, Instance, Io, IoId, Nanos, Op, VolumeId};
use proptest::prelude::*;

const SECOND: Nanos = 1_000_000_000;
const MIB: u32 = 1 << 20;

fn resolved(text: &str) -> Resolved {
    Resolved::parse(text).unwrap_or_else(|error| panic!("{text}: {error:?}"))
}

fn attached(spec: &str) -> (Instance, VolumeId) {
    let mut instance = Instance::new(7);
    let volume = instance.add_volume(resolved(spec).params);
    (instance, volume)
}

/// Random requests, `depth` outstanding, until `until`: when each was done, in order.
struct Load {
    instance: Instance,
    volume: VolumeId,
    size_bytes: u64,
    len: u32,
    op: Op,
    next: u64,
}

impl Load {
    fn new(spec: &str, op: Op, len: u32, depth: u64) -> Self {
        let (instance, volume) = attached(spec);
        let mut load = Self { instance, volume, size_bytes: resolved(spec).size_bytes, len, op, next: 0 };
        for _ in 0..depth {
            load.submit(0);
        }
        load
    }

    fn submit(&mut self, now: Nanos) {
        // Every second place, in an order without neighbours, so that nothing merges.
        let places = self.size_bytes / u64::from(self.len) / 2;
        let offset = (self.next.wrapping_mul(2_654_435_761) % places) * 2 * u64::from(self.len);
        self.instance.submit(now, self.volume, Io { id: IoId(self.next), op: self.op, offset, len: self.len });
        self.next += 1;
    }

    fn run(&mut self, until: Nanos) -> u64 {
        let (mut done, mut events) = (0, Vec::new());
        while let Some(now) = self.instance.next_event().filter(|now| *now <= until) {
            self.instance.advance(now.max(self.instance.now()), &mut events);
            for event in std::mem::take(&mut events) {
                if matches!(event, Event::Done { .. }) {
                    done += 1;
                    self.submit(now);
                }
            }
        }
        self.instance.advance(until, &mut events);
        done
    }

    fn counters(&self) -> Counters {
        self.instance.counters(self.volume)
    }
}

fn assert_near(what: &str, value: f64, expected: f64, tolerance: f64) {
    assert!((value / expected - 1.0).abs() <= tolerance, "{what}: {value}, expected {expected} ± {tolerance}");
}

/// The instant at which the rate falls from one to the other, which is not before nine tenths of `by_s`.
fn knee_s(load: &mut Load, fast_per_s: f64, slow_per_s: f64, by_s: f64) -> f64 {
    let window = (40.0 / slow_per_s * 1e9) as u64;
    let mut now = (by_s * 0.9 * 1e9) as u64;
    load.run(now);
    while now as f64 / 1e9 < by_s * 2.0 {
        let done = load.run(now + window) as f64 / (window as f64 / 1e9);
        // What the window still had at the higher rate says where in it the knee is.
        let share = (done - slow_per_s) / (fast_per_s - slow_per_s);
        if share < 0.98 {
            return (now as f64 + share.max(0.0) * window as f64) / 1e9;
        }
        now += window;
    }
    panic!("no knee by twice {by_s} s");
}

#[test]
fn forty_thousand_credits_of_gp2_last_as_published_and_leave_the_baseline() {
    let mut load = Load::new("gp2:size=100GiB,credits=40000", Op::Read, 8192, 32);
    let expected = 40_000.0 / 2_700.0;
    let knee = knee_s(&mut load, 3_000.0, 300.0, expected);
    assert_near("knee, s", knee, expected, 0.005);
    let done = load.run(load.instance.now() + 100 * SECOND);
    assert!(done.abs_diff(30_000) <= 2, "{done} in 100 s at 300/s");
    assert_eq!(load.counters().io_credits, Some(0));
}

/// 5.4 million credits and `BurstBalance`, at every minute.
#[test]
fn a_full_gp2_lasts_two_thousand_seconds() {
    let mut load = Load::new("gp2:size=100GiB", Op::Write, 8192, 16);
    let mut done = 0;
    for minute in 1..=33u64 {
        done += load.run(minute * 60 * SECOND);
        let balance = f64::from(load.counters().burst_balance_ppm.unwrap());
        let expected = (5_400_000.0 - 2_700.0 * 60.0 * minute as f64) / 5.4;
        assert!((balance - expected).abs() < 20.0, "minute {minute}: {balance} ppm, expected {expected}");
    }
    assert_near("done in 33 minutes", done as f64, 3_000.0 * 1_980.0, 0.000_1);
    let knee = knee_s(&mut load, 3_000.0, 300.0, 1_990.0 / 0.9);
    assert_near("knee, s", knee, 2_000.0, 0.001);
}

/// The guide's table of 1 TiB: 250 MiB/s as long as 1 TiB of credits lasts, then 40; half of it for 512 GiB.
#[test]
fn hard_disk_volumes_last_as_their_buckets_say() {
    for (spec, burst, baseline, credits) in [
        ("st1:size=1TiB", 250.0, 40.0, 1_048_576.0),
        ("st1:size=512GiB,credits=64GiB", 125.0, 20.0, 65_536.0),
        ("sc1:size=1TiB,credits=128GiB", 80.0, 12.0, 131_072.0),
    ] {
        let mut load = Load::new(spec, Op::Read, MIB, 8);
        let expected = credits / (burst - baseline);
        let knee = knee_s(&mut load, burst, baseline, expected);
        assert_near(spec, knee, expected, 0.001);
        let done = load.run(load.instance.now() + 200 * SECOND) as f64;
        assert_near(spec, done, 200.0 * baseline, 0.001);
        // Less than the one request that waits for it: 1 MiB of 64 GiB are 15 ppm.
        assert!(load.counters().burst_balance_ppm.unwrap() <= 16, "{spec}");
    }
}

/// Requests a second once what was saved up is gone, by size of the request.
#[test]
fn rates_are_the_published_ones() {
    for (spec, op, kib, per_s) in [
        ("gp2:size=1TiB", Op::Read, 8, 3_072.0),
        ("gp2:size=200GiB,credits=0", Op::Read, 256, 600.0),
        ("gp2:size=334GiB", Op::Read, 256, 1_000.0),
        ("gp2:size=100GiB", Op::Read, 256, 512.0),
        ("gp2-2018:size=300GiB", Op::Write, 256, 640.0),
        ("gp2-2014:size=100GiB,credits=0", Op::Read, 8, 300.0),
        ("io1:size=1TiB,iops=32000", Op::Read, 16, 32_000.0),
        ("io1:size=1TiB,iops=32000", Op::Read, 256, 2_000.0),
        ("io1:size=2TiB,iops=64000", Op::Read, 16, 64_000.0),
        ("io1:size=2TiB,iops=64000", Op::Read, 256, 4_000.0),
        ("io1-2013:size=400GiB,iops=4000", Op::Read, 16, 4_000.0),
        ("io1-2013:size=400GiB,iops=4000", Op::Read, 64, 1_000.0),
        ("st1:size=1TiB,credits=0KiB", Op::Read, 16, 40.0),
        ("rds-gp2:size=400GiB,credits=0", Op::Read, 16, 1_200.0),
        ("rds-gp3:size=400GiB", Op::Read, 16, 12_000.0),
        ("instance-store:instance=i3.large", Op::Read, 4, 103_125.0),
        ("instance-store:instance=i3.large", Op::Write, 4, 35_000.0),
        ("gcp-pd-standard:size=1TiB", Op::Read, 4, 768.0),
        ("gcp-pd-standard:size=1TiB", Op::Write, 4, 1_536.0),
        ("azure-premium-v1:size=1TiB", Op::Read, 8, 5_000.0),
        ("huawei-ssd:size=500GiB", Op::Read, 4, 26_800.0),
    ] {
        let mut load = Load::new(spec, op, kib << 10, 256);
        load.run(3 * SECOND);
        let done = load.run(13 * SECOND) as f64 / 10.0;
        assert_near(&format!("{spec} {op:?} {kib} KiB"), done, per_s, 0.003);
    }
}

/// Azure's small disks have two kinds of credits; the one that ends first is what `BurstBalance` says.
#[test]
fn a_full_bucket_of_a_small_azure_disk_lasts_half_an_hour() {
    let mut load = Load::new("azure-premium-v1:size=128GiB", Op::Read, 16 << 10, 32);
    load.run(900 * SECOND);
    let Counters { io_credits, throughput_credits_bytes, burst_balance_ppm, .. } = load.counters();
    assert_near("I/O credits", io_credits.unwrap() as f64, 2_700_000.0, 0.001);
    assert!(throughput_credits_bytes.is_some());
    assert_near("balance", f64::from(burst_balance_ppm.unwrap()), 500_000.0, 0.001);
    let knee = knee_s(&mut load, 3_500.0, 500.0, 1_800.0);
    assert_near("knee, s", knee, 1_800.0, 0.001);
}

fn every_spec() -> Vec<String> {
    let all = types().unwrap();
    let almost_spent = ["gp2:credits=500", "st1:credits=50MiB", "rds-gp2:size=500GiB,credits=9"].map(str::to_owned);
    all.into_iter().map(|one| one.default_spec).chain(almost_spent).collect()
}

/// Reads and writes, random and sequential, of 4 KiB to 2 MiB, `depth` at a time.
fn recorded(spec: &str, requests: u64, depth: usize) -> Vec<Record> {
    let (mut instance, volume) = attached(spec);
    let places = resolved(spec).size_bytes / (4 << 20);
    let submit = |i: u64| {
        let mixed = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        let op = if mixed.is_multiple_of(3) { Op::Write } else { Op::Read };
        let len = 4096 << (mixed / 3 % 10);
        let sequential = (mixed / 30).is_multiple_of(2);
        let offset = if sequential { i * 65_536 % (places << 22) } else { (mixed % places) << 22 };
        Record::Submit { now: 0, volume, io: Io { id: IoId(i), op, offset, len: len as u32 } }
    };
    let mut log = Vec::new();
    closed_loop(&mut instance, (0..requests).map(submit), depth, |record| log.push(record));
    log
}

#[test]
fn a_run_on_any_type_replays_to_the_nanosecond() {
    // Two million over all types; `make bench ONLY=replay` has ten million, with modifications and faults in between.
    const REQUESTS: u64 = 40_000;
    for spec in every_spec() {
        for depth in [1, 37] {
            let log = recorded(&spec, REQUESTS, depth);
            let (mut instance, _) = attached(&spec);
            let result = replay(&mut instance, log.into_iter());
            assert_eq!((result.identical, result.first_difference), (REQUESTS, None), "{spec}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    /// Each request is granted once and done once, not before its service time; looking changes nothing; and the
    /// volume never grants more than its (burst) limit lets through.
    #[test]
    fn any_type_keeps_its_account(
        which in 0usize..64,
        arrivals in prop::collection::vec((0u64..4_000_000, any::<bool>(), 1u32..300, 0u64..500), 1..200),
        looks in prop::collection::vec(0u64..4_000_000, 0..20),
    ) {
        let specs = every_spec();
        let spec = &specs[which % specs.len()];
        let params = resolved(spec).params;
        let run = |look: bool| {
            let (mut instance, volume) = attached(spec);
            let (mut now, mut events) = (0u64, Vec::new());
            for (i, (gap, write, pages, place)) in arrivals.iter().enumerate() {
                for part in looks.iter().filter(|part| look && **part <= *gap) {
                    instance.advance((now + part).max(instance.now()), &mut events);
                }
                now += gap;
                let op = if *write { Op::Write } else { Op::Read };
                let io = Io { id: IoId(i as u64), op, offset: place << 20, len: pages * 4096 };
                instance.submit(now, volume, io);
            }
            instance.advance(u64::MAX / 2, &mut events);
            (events, instance.counters(volume))
        };
        let (events, counters) = run(false);
        prop_assert_eq!(&run(true), &(events.clone(), counters));
        let ids = |granted: bool| {
            let mut ids: Vec<u64> = events.iter().filter_map(|event| match event {
                Event::Granted { id, .. } if granted => Some(id.0),
                Event::Done { id, .. } if !granted => Some(id.0),
                _ => None,
            }).collect();
            ids.sort_unstable();
            ids
        };
        let all: Vec<u64> = (0..arrivals.len() as u64).collect();
        prop_assert_eq!(&ids(true), &all);
        prop_assert_eq!(&ids(false), &all);
        let done_at = events.iter().filter_map(|event| match event {
            Event::Granted { done_at, .. } => Some(*done_at),
            Event::Failing { .. } | Event::Done { .. } => None,
        });
        let last_s = done_at.max().unwrap_or(0) as f64 / 1e9;
        if let Some(limit) = params.iops_limit {
            let each = f64::from(params.cost.read_tokens.min(params.cost.write_tokens));
            let depth_s = (limit.depth_ns as f64 / 1e9).max(0.005);
            let most = limit.rate_per_s as f64 * (last_s + depth_s) / each + 300.0;
            prop_assert!(counters.io_units as f64 <= most, "{}: {} units in {last_s} s", spec, counters.io_units);
        }
    }
}
