//! The queue: conservation, order, Little's law, and the latency that saturation must show.

use crate::common::*;
use pgdyno_volume::*;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_request_is_granted_once_in_order_and_done_once(
        arrivals in prop::collection::vec((0u64..2_000_000, any::<bool>(), 1u32..100), 1..300),
        iops in 100u64..20_000,
        service_ns in 0u64..3_000_000,
    ) {
        let mut instance = Instance::new(9);
        let volume = instance.add_volume(params(Some(iops), Some(64 << 20), service_ns));
        let (mut now, mut events) = (0, Vec::new());
        let mut submitted = Vec::new();
        for (i, (gap, write, pages)) in arrivals.iter().enumerate() {
            now += gap;
            let op = if *write { Op::Write } else { Op::Read };
            instance.submit(now, volume, io(i as u64, op, (i as u64 * 7919 % 5000) << 20, pages * 4096));
            submitted.push(now);
        }
        instance.advance(u64::MAX / 2, &mut events);
        let granted: Vec<_> = events.iter().filter_map(|e| if let Event::Granted { id, done_at } = e { Some((id.0, *done_at)) } else { None }).collect();
        let mut done: Vec<_> = events.iter().filter_map(|e| if let Event::Done { id, result: IoResult::Ok } = e { Some(id.0) } else { None }).collect();
        prop_assert!(granted.iter().map(|(id, _)| *id).eq(0..arrivals.len() as u64), "granted in arrival order");
        for (id, done_at) in &granted {
            prop_assert!(*done_at >= submitted[*id as usize] + service_ns);
        }
        done.sort_unstable();
        prop_assert!(done.into_iter().eq(0..arrivals.len() as u64), "each done once");
        prop_assert_eq!(instance.outstanding(volume), 0);
        prop_assert_eq!(instance.next_event(), None);
    }

    #[test]
    fn littles_law(depth in 1u64..64, iops in 500u64..20_000, service_us in 0u64..2_000) {
        let mut instance = Instance::new(2);
        let volume = instance.add_volume(params(Some(iops), None, service_us * 1_000 + 1));
        instance.change(0, Change::Credit { volume, level_ppm: 0 });
        let done = closed_loop(&mut instance, volume, depth, 4 * SECOND);
        let window: Vec<_> = done.iter().filter(|life| life.done_at > SECOND).collect();
        let rate = window.len() as f64 / 3.0;
        let mean_s = window.iter().map(|life| (life.done_at - life.submitted_at) as f64 / 1e9).sum::<f64>() / window.len() as f64;
        let in_system = rate * mean_s;
        prop_assert!((in_system / depth as f64 - 1.0).abs() < 0.02, "{rate}/s x {mean_s} s = {in_system}, depth {depth}");
    }

    #[test]
    fn late_or_extra_calls_of_advance_change_nothing(
        arrivals in prop::collection::vec((0u64..1_000_000, 0u64..3), 1..200),
        extra in prop::collection::vec(0u64..1_000_000, 0..200),
        order in prop_oneof![Just(Order::Fifo), Just(Order::Gamma)],
    ) {
        let run = |advance_often: bool| {
            let mut instance = Instance::new(5);
            let volume = instance.add_volume(VolumeParams { order, ..params(Some(2_000), Some(20 << 20), 700_000) });
            let (mut now, mut events) = (0u64, Vec::new());
            for (i, (gap, kind)) in arrivals.iter().enumerate() {
                if advance_often {
                    for part in extra.iter().filter(|part| **part <= *gap) {
                        instance.advance((now + part).max(instance.now()), &mut events);
                    }
                }
                now += gap;
                if *kind == 0 {
                    instance.change(now, Change::Credit { volume, level_ppm: (i as u32 * 7_919) % 1_000_000 });
                }
                if *kind == 1 {
                    let faster = BucketParams { rate_per_s: 100 + i as u64 * 50, depth_ns: 10_000_000 };
                    let change = Change::Limits { volume, iops_limit: Some(faster), throughput_limit: None };
                    instance.change(now, change);
                }
                instance.submit(now, volume, io(i as u64, Op::Write, (i as u64) << 20, 65_536));
            }
            instance.advance(u64::MAX / 2, &mut events);
            (events, instance.counters(volume))
        };
        prop_assert_eq!(run(false), run(true));
    }
}

#[test]
fn under_saturation_every_latency_is_depth_over_iops() {
    let mut instance = Instance::new(1);
    let volume = instance.add_volume(params(Some(3_000), None, 600_000));
    let done = closed_loop(&mut instance, volume, 32, 20 * SECOND);
    let ideal = 32.0 / 3_000.0 * 1e9;
    for life in done.iter().filter(|life| life.submitted_at > 2 * SECOND) {
        let latency = (life.done_at - life.submitted_at) as f64;
        assert!((latency / ideal - 1.0).abs() < 0.001, "{latency} ns, ideal {ideal}");
    }
}

#[test]
fn a_change_touches_waiting_requests_and_never_granted_ones() {
    let mut instance = Instance::new(1);
    let volume = instance.add_volume(params(Some(1_000), None, 5_000_000));
    instance.change(0, Change::Credit { volume, level_ppm: 0 });
    let mut events = Vec::new();
    for i in 0..3 {
        instance.submit(0, volume, io(i, Op::Read, i << 20, 4096));
    }
    instance.advance(1_000_000, &mut events);
    assert_eq!(events, [Event::Granted { id: IoId(0), done_at: 5_000_000 }]);
    let faster = Some(BucketParams { rate_per_s: 100, depth_ns: SECOND });
    instance.change(1_000_000, Change::Limits { volume, iops_limit: faster, throughput_limit: None });
    events.clear();
    instance.advance(SECOND, &mut events);
    let grants: Vec<_> = events.iter().filter(|event| matches!(event, Event::Granted { .. })).collect();
    assert_eq!(grants[0], &Event::Granted { id: IoId(1), done_at: 11_000_000 }, "10 ms a token at the new rate");
    assert_eq!(events.iter().filter(|event| matches!(event, Event::Done { .. })).count(), 3);
}

#[test]
fn past_the_end_is_an_error_and_not_a_panic() {
    let mut instance = Instance::new(1);
    let volume = instance.add_volume(VolumeParams::unlimited(8192));
    instance.submit(0, volume, io(1, Op::Read, 8192, 4096));
    let mut events = Vec::new();
    instance.advance(0, &mut events);
    assert_eq!(events[1], Event::Done { id: IoId(1), result: IoResult::OutOfRange });
}

#[test]
fn a_lifted_limit_grants_from_the_change_on_and_not_before() {
    let mut instance = Instance::new(1);
    let volume = instance.add_volume(params(Some(1), None, 0));
    instance.change(0, Change::Credit { volume, level_ppm: 0 });
    instance.submit(10, volume, io(1, Op::Read, 0, 4096));
    instance.change(500, Change::Limits { volume, iops_limit: None, throughput_limit: None });
    let mut events = Vec::new();
    instance.advance(500, &mut events);
    assert_eq!(events[0], Event::Granted { id: IoId(1), done_at: 500 });
    assert_eq!(instance.counters(volume).exceeded_iops_ns, 490);
}
