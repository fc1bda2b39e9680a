//! The IOPS limit: never above the rate over any window longer than the bucket, and exact in the long run.

use crate::common::*;
use pgdyno_volume::*;
use proptest::prelude::*;

fn grants(iops: u64, arrivals: &[(u64, u32)]) -> Vec<(Nanos, u64)> {
    let mut instance = Instance::new(1);
    let volume = instance.add_volume(params(Some(iops), None, 0));
    let (mut now, mut events, mut lens) = (0, Vec::new(), Vec::new());
    for (i, (gap, units)) in arrivals.iter().enumerate() {
        now += gap;
        let len = units * (256 << 10);
        lens.push(u64::from(*units));
        instance.submit(now, volume, io(i as u64, Op::Read, (i as u64) << 26, len));
    }
    instance.advance(u64::MAX / 2, &mut events);
    events
        .iter()
        .filter_map(|event| match event {
            Event::Granted { id, done_at } => Some((*done_at, lens[id.0 as usize])),
            Event::Failing { .. } | Event::Done { .. } => None,
        })
        .collect()
}

proptest! {
    #[test]
    fn never_above_the_limit_over_any_window(
        iops in 10u64..5_000,
        arrivals in prop::collection::vec((0u64..50_000_000, 1u32..5), 1..300),
    ) {
        let granted = grants(iops, &arrivals);
        prop_assert_eq!(granted.len(), arrivals.len());
        for from in 0..granted.len() {
            let mut units = 0u128;
            for (at, cost) in &granted[from..] {
                units += u128::from(*cost);
                let window_ns = u128::from(at - granted[from].0);
                // One bucket, the rate over the window, and one token of rounding.
                let allowed = u128::from(iops) + u128::from(iops) * window_ns / u128::from(SECOND) + 1;
                prop_assert!(units <= allowed, "{units} units in {window_ns} ns at {iops}/s");
            }
        }
    }
}

#[test]
fn a_saturated_volume_delivers_exactly_its_rate_after_the_bucket() {
    let mut instance = Instance::new(1);
    let volume = instance.add_volume(params(Some(3_000), None, 500_000));
    let done = closed_loop(&mut instance, volume, 32, 61 * SECOND);
    let late = done.iter().filter(|life| life.done_at > SECOND * 11 && life.done_at <= SECOND * 61).count();
    assert!((149_999..=150_001).contains(&late), "{late} in 50 s at 3,000/s");
    let first_second = done.iter().filter(|life| life.done_at <= SECOND).count();
    assert!((5_960..=6_000).contains(&first_second), "one bucket beyond the rate: {first_second}");
}

#[test]
fn an_emptied_bucket_gives_no_burst() {
    let mut instance = Instance::new(1);
    let volume = instance.add_volume(params(Some(1_000), None, 0));
    instance.change(0, Change::Credit { volume, level_ppm: 0 });
    let done = closed_loop(&mut instance, volume, 8, SECOND);
    assert_eq!(done.len(), 1_000);
}
