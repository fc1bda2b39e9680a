//! The throughput limit: exact bytes per second, independent of the IOPS limit.

use crate::common::*;
use pgdyno_volume::*;
use proptest::prelude::*;

#[test]
fn large_requests_meet_the_byte_rate_and_small_ones_do_not_feel_it() {
    let rate = 125 << 20;
    let mut instance = Instance::new(1);
    let volume = instance.add_volume(params(Some(3_000), Some(rate), 0));
    instance.change(0, Change::Credit { volume, level_ppm: 0 });
    let mut events = Vec::new();
    for i in 0..1_000 {
        instance.submit(0, volume, io(i, Op::Write, i << 20, 256 << 10));
    }
    instance.advance(u64::MAX / 2, &mut events);
    let last =
        events.iter().filter_map(|e| if let Event::Granted { done_at, .. } = e { Some(*done_at) } else { None }).max();
    assert_eq!(last, Some(2 * SECOND), "250 MiB at 125 MiB/s");
    let counters = instance.counters(volume);
    assert_eq!(counters.exceeded_throughput_ns, 2 * SECOND, "the head waited for bytes all the time");
    assert!(counters.exceeded_iops_ns < SECOND);
}

proptest! {
    #[test]
    fn never_above_the_limit_over_any_window(
        mib_per_s in 1u64..200,
        arrivals in prop::collection::vec((0u64..20_000_000, 1u32..64), 1..200),
    ) {
        let rate = mib_per_s << 20;
        let mut instance = Instance::new(1);
        let volume = instance.add_volume(params(None, Some(rate), 0));
        let mut now = 0;
        for (i, (gap, pages)) in arrivals.iter().enumerate() {
            now += gap;
            instance.submit(now, volume, io(i as u64, Op::Read, (i as u64) << 24, pages * 4096));
        }
        let mut events = Vec::new();
        instance.advance(u64::MAX / 2, &mut events);
        let granted: Vec<(Nanos, u128)> = events.iter().filter_map(|event| match event {
            Event::Granted { id, done_at } => Some((*done_at, u128::from(arrivals[id.0 as usize].1) * 4096)),
            Event::Failing { .. } | Event::Done { .. } => None,
        }).collect();
        for from in 0..granted.len() {
            let mut bytes = 0u128;
            for (at, cost) in &granted[from..] {
                bytes += cost;
                let window_ns = u128::from(at - granted[from].0);
                prop_assert!(bytes <= u128::from(rate) * (u128::from(SECOND) + window_ns) / u128::from(SECOND) + 1);
            }
        }
    }
}
