//! Periods with a part of the limits: how often, how far, and that seed and time alone decide.

use crate::common::*;
use pgdyno_volume::*;
use proptest::prelude::*;

const S: Nanos = SECOND;
const IOPS: u64 = 1_000;
/// Requests at an instant.
const BURST: u64 = 16;

/// Half of the time, ten seconds at a time, with a quarter of the limits.
const HALF: DegradationParams =
    DegradationParams { of_time_ppm: 500_000, lasts_ns: [10 * S, 10 * S], left_ppm: [250_000, 250_000] };
/// As providers have it: rarely, for minutes, by a part that differs.
const RARE: DegradationParams =
    DegradationParams { of_time_ppm: 1_000, lasts_ns: [60 * S, 600 * S], left_ppm: [10_000, 890_000] };

fn degraded(degradation: DegradationParams) -> VolumeParams {
    VolumeParams { degradation: Some(degradation), ..params(Some(IOPS), None, 0) }
}

fn degraded_ns(instance: &Instance, volume: VolumeId) -> Nanos {
    instance.counters(volume).degraded_ns.expect("a volume that is degraded at times")
}

#[test]
fn over_many_cycles_it_is_degraded_for_the_share_that_was_asked_for() {
    for (seed, params) in [(1, HALF), (2, RARE), (3, DegradationParams { of_time_ppm: 10_000, ..RARE })] {
        let mut instance = Instance::new(seed);
        let volume = instance.add_volume(degraded(params));
        let time = 4_000 * params.cycle_ns();
        instance.advance(time, &mut Vec::new());
        let found = degraded_ns(&instance, volume) as f64 / time as f64;
        let wanted = f64::from(params.of_time_ppm) / 1e6;
        // 4,000 lengths, uniform between 60 and 600 s: a standard error of 0.7 % of the mean.
        assert!((found / wanted - 1.0).abs() < 0.03, "{found} of the time and not {wanted}");
    }
}

/// At each instant by as many volumes as the share says: none begins whole, or degraded, more often.
#[test]
fn the_first_seconds_are_as_likely_as_any_others() {
    let mut instance = Instance::new(9);
    let volumes: Vec<VolumeId> = (0..4_000).map(|_| instance.add_volume(degraded(HALF))).collect();
    for at in [S, 15 * S] {
        instance.advance(at - S / 1_000, &mut Vec::new());
        let before: Vec<Nanos> = volumes.iter().map(|volume| degraded_ns(&instance, *volume)).collect();
        instance.advance(at, &mut Vec::new());
        let now = volumes.iter().zip(before).filter(|(volume, before)| degraded_ns(&instance, **volume) > *before);
        let share = now.count() as f64 / 4_000.0;
        assert!((share - 0.5).abs() < 0.04, "{share} of the volumes at {at} ns");
    }
}

#[test]
fn a_full_load_gets_what_is_left_and_the_whole_outside_of_the_periods() {
    let mut instance = Instance::new(4);
    let volume = instance.add_volume(degraded(HALF));
    let time = 203 * S;
    let done = closed_loop(&mut instance, volume, 32, time).len() as f64;
    let degraded_s = degraded_ns(&instance, volume) as f64 / 1e9;
    let wanted = IOPS as f64 * (203.0 - 0.75 * degraded_s);
    // A bucket of one second is full at first, and at most that is kept from one rate to the other.
    assert!((0.0..=IOPS as f64 + 40.0).contains(&(done - wanted)), "{done} requests and not {wanted}");
    assert!((90.0..115.0).contains(&degraded_s), "{degraded_s} s");
}

#[test]
fn until_its_first_period_it_is_the_volume_without() {
    // A cycle of 330,000 s: the first period is hours away.
    let run = |params: VolumeParams| {
        let mut instance = Instance::new(5);
        let volume = instance.add_volume(params);
        let lives = closed_loop(&mut instance, volume, 32, 20 * S);
        (lives, instance.counters(volume))
    };
    let (plain, counted) = run(params(Some(IOPS), None, 300_000));
    let (lives, here) = run(VolumeParams { degradation: Some(RARE), ..params(Some(IOPS), None, 300_000) });
    assert_eq!(here.degraded_ns, Some(0), "another seed is needed: this one begins in a period");
    assert_eq!(lives, plain);
    assert_eq!(Counters { degraded_ns: None, ..here }, counted);
}

#[test]
fn an_idle_volume_has_nothing_to_say_and_a_waiting_request_is_granted_when_the_period_ends() {
    let mut instance = Instance::new(6);
    let little = DegradationParams { left_ppm: [1_000, 1_000], ..HALF };
    let volume = instance.add_volume(degraded(little));
    assert_eq!((instance.next_event(), instance.next_grant()), (None, None));
    // One a second is left: the requests of a period that finds an empty bucket wait for its end.
    let done = closed_loop(&mut instance, volume, 8, 100 * S);
    let longest = done.iter().map(|life| life.done_at - life.submitted_at).max();
    assert!(longest.is_some_and(|ns| ns > 3 * S), "{longest:?}");
    let rate = done.len() as f64 / (100.0 - degraded_ns(&instance, volume) as f64 / 1e9);
    assert!((1_000.0..1_060.0).contains(&rate), "{rate} a second of a whole volume");
}

#[test]
fn what_credits_are_earned_at_is_degraded_too_and_none_are_lost() {
    let credit = CreditParams { rate_per_s: 100, capacity: 540_000, initial: 0 };
    let mut instance = Instance::new(7);
    let volume = instance.add_volume(VolumeParams { iops_credit: Some(credit), ..degraded(HALF) });
    instance.advance(200 * S, &mut Vec::new());
    let wanted = 100.0 * (200.0 - 0.75 * degraded_ns(&instance, volume) as f64 / 1e9);
    let found = instance.counters(volume).io_credits.expect("credits") as f64;
    // Whole credits are kept when the rate changes, which it does twenty times.
    assert!((wanted - found).abs() <= 21.0, "{found} credits and not {wanted}");
}

#[test]
fn members_of_an_array_are_degraded_at_times_of_their_own() {
    // Lengths that differ, so that no two members come to the same time.
    let uneven = DegradationParams { lasts_ns: [5 * S, 15 * S], ..HALF };
    let array = ArrayParams {
        columns: 4,
        copies: 1,
        chunk_bytes: 64 << 10,
        remote_round_trip_ns: None,
        member: VolumeParams { size_bytes: 1 << 30, ..degraded(uneven) },
    };
    let mut instance = Instance::new(8);
    let volume = instance.add_array(array);
    instance.advance(133 * S, &mut Vec::new());
    let mut each: Vec<Nanos> =
        instance.members(volume).into_iter().map(|member| degraded_ns(&instance, member)).collect();
    assert_eq!(Some(degraded_ns(&instance, volume)), each.iter().copied().max());
    each.sort_unstable();
    each.dedup();
    assert_eq!(each.len(), 4, "{each:?}");
}

#[test]
fn a_modified_volume_is_degraded_as_its_new_parameters_say() {
    let mut instance = Instance::new(10);
    let volume = instance.add_volume(degraded(HALF));
    let (mut other, like) = (instance.clone(), degraded(HALF));
    instance.advance(50 * S, &mut Vec::new());
    other.advance(25 * S, &mut Vec::new());
    other.modify(25 * S, volume, &VolumeParams { size_bytes: 1 << 41, ..like.clone() });
    other.advance(50 * S, &mut Vec::new());
    assert_eq!(degraded_ns(&other, volume), degraded_ns(&instance, volume), "the same periods");
    other.modify(50 * S, volume, &VolumeParams { degradation: None, ..like });
    let done = closed_loop(&mut other, volume, 32, 90 * S).len() as f64;
    assert_eq!(other.counters(volume).degraded_ns, None);
    assert!((40_000.0..41_100.0).contains(&done), "{done} requests of a whole volume");
}

#[test]
fn limits_that_change_in_a_period_are_those_of_the_whole_volume() {
    let run = |half: u64| {
        let mut instance = Instance::new(12);
        let volume = instance.add_volume(degraded(HALF));
        let iops_limit = Some(BucketParams { rate_per_s: IOPS / half, depth_ns: SECOND });
        instance.change(0, Change::Limits { volume, iops_limit, throughput_limit: None });
        closed_loop(&mut instance, volume, 32, 200 * S).len() as f64
    };
    let ratio = run(1) / run(2);
    assert!((1.98..2.02).contains(&ratio), "{ratio}");
}

proptest! {
    /// However often the host looks, and when the log is replayed.
    #[test]
    fn seed_and_time_decide(
        gaps in prop::collection::vec((0u64..80_000_000, 1u32..8, any::<bool>()), 1..150), seed in 0u64..8,
    ) {
        // Several changes in each run, and more than a quarter of the limit asked for.
        let often = DegradationParams { lasts_ns: [S / 4, S / 2], ..HALF };
        let params = VolumeParams { order: Order::Gamma, ..degraded(often) };
        let mut instance = Instance::new(seed);
        let volume = instance.add_volume(params.clone());
        let mut host = Recorder::default();
        let mut now = 0;
        for (id, (gap, pages, looks)) in gaps.iter().enumerate() {
            now += gap;
            for burst in 0..BURST {
                let id = id as u64 * BURST + burst;
                host.submit(&mut instance, now, volume, io(id, Op::Read, id * 131_072, pages * 4096));
            }
            if *looks {
                host.advance(&mut instance, now);
            }
        }
        host.advance(&mut instance, now + 100 * S);
        let mut again = Instance::new(seed);
        again.add_volume(params);
        assert_replays(&mut again, &host.log, gaps.len() * BURST as usize, nothing_told);
    }
}
