//! The order in which waiting requests are granted: the shape of latency under saturation, and what no order may change.

use crate::common::*;
use pgdyno_volume::*;
use proptest::prelude::*;

const RATE: u64 = 3_000;

fn saturated(order: Order, depth: u64, seed: u64, seconds: u64) -> Vec<f64> {
    let mut instance = Instance::new(seed);
    let volume = instance.add_volume(VolumeParams { order, ..params(Some(RATE), None, 1) });
    instance.change(0, Change::Credit { volume, level_ppm: 0 });
    let done = closed_loop(&mut instance, volume, depth, seconds * SECOND);
    let settled = done.iter().filter(|life| life.submitted_at > 2 * SECOND);
    settled.map(|life| (life.done_at - life.submitted_at) as f64).collect()
}

fn mean(latencies: &[f64]) -> f64 {
    latencies.iter().sum::<f64>() / latencies.len() as f64
}

/// A gamma law of shape 2 in units of its mean, from its quantile function.
const GAMMA_2: [(f64, f64); 5] = [(0.1, 0.266), (0.5, 0.839), (0.9, 1.945), (0.99, 3.319), (0.999, 4.617)];

#[test]
fn quantiles_under_saturation_are_those_of_a_gamma_law() {
    for depth in [8, 32, 128] {
        let mut latencies = saturated(Order::Gamma, depth, 1, 60);
        let mean = mean(&latencies);
        let ideal = depth as f64 / RATE as f64 * 1e9;
        assert!((mean / ideal - 1.0).abs() < 0.002, "depth {depth}: mean {mean} ns, by Little's law {ideal}");
        latencies.sort_unstable_by(f64::total_cmp);
        for (p, expected) in GAMMA_2 {
            let found = latencies[(p * latencies.len() as f64) as usize] / mean;
            // Waits come in steps of one grant, 1/8 of the mean at depth 8; 170,000 waits leave 2 % at the 99.9th.
            let tolerance = (0.03 * expected).max(0.55 / depth as f64);
            assert!((found - expected).abs() <= tolerance, "depth {depth}: p{} is {found} x mean", p * 100.0);
        }
    }
}

#[test]
fn the_spread_is_that_of_the_law_at_every_depth_from_two_on() {
    for depth in [2, 3, 4, 5, 7, 16, 33, 100] {
        let latencies = saturated(Order::Gamma, depth, 3, 40);
        let mean = mean(&latencies);
        let variance = latencies.iter().map(|latency| (latency - mean).powi(2)).sum::<f64>() / latencies.len() as f64;
        let cv = variance.sqrt() / mean;
        // Exactly sqrt((n^2 - 1) / 2) / n for an odd number n of outstanding requests; 2 % is three standard errors.
        let whole = if depth % 2 == 1 { (1.0 - 1.0 / (depth * depth) as f64).sqrt() } else { 1.0 };
        assert!((cv / (0.5f64.sqrt() * whole) - 1.0).abs() < 0.02, "depth {depth}: {cv}");
    }
}

#[test]
fn alone_a_request_waits_as_in_any_other_order() {
    assert_eq!(saturated(Order::Gamma, 1, 1, 4), saturated(Order::Fifo, 1, 1, 4));
}

/// What a volume makes of arrivals at given instants: (grant, done) by request, and its counters.
fn lives(order: Order, arrivals: &[(u64, u32)], look_often: &[u64]) -> (Vec<Event>, Counters) {
    let mut instance = Instance::new(5);
    let volume = instance.add_volume(VolumeParams { order, ..params(Some(2_000), Some(20 << 20), 100_000) });
    instance.change(0, Change::Credit { volume, level_ppm: 0 });
    let (mut now, mut events) = (0u64, Vec::new());
    for (i, (gap, pages)) in arrivals.iter().enumerate() {
        for part in look_often.iter().filter(|part| **part <= *gap) {
            instance.advance((now + part).max(instance.now()), &mut events);
        }
        now += gap;
        instance.submit(now, volume, io(i as u64, Op::Write, (i as u64) << 20, pages * 4096));
    }
    instance.advance(u64::MAX / 2, &mut events);
    (events, instance.counters(volume))
}

proptest! {
    #[test]
    fn extra_advance_calls_change_nothing(
        arrivals in prop::collection::vec((0u64..600_000, 1u32..32), 1..300),
        looks in prop::collection::vec(0u64..600_000, 0..100),
    ) {
        prop_assert_eq!(lives(Order::Gamma, &arrivals, &[]), lives(Order::Gamma, &arrivals, &looks));
    }

    /// Work conservation: requests of one cost are granted at the same instants in every order, only not the same ones.
    #[test]
    fn grants_come_when_they_would_in_order_of_arrival(
        arrivals in prop::collection::vec((0u64..900_000).prop_map(|gap| (gap, 2)), 1..300),
    ) {
        let of = |order| {
            let (events, counters) = lives(order, &arrivals, &[]);
            let mut granted: Vec<u64> = Vec::new();
            let mut waits = 0u128;
            for event in &events {
                if let Event::Granted { id, done_at } = event {
                    let submitted_at: u64 = arrivals[..=id.0 as usize].iter().map(|(gap, _)| gap).sum();
                    prop_assert!(*done_at >= submitted_at + 100_000);
                    waits += u128::from(*done_at - submitted_at);
                    granted.push(id.0);
                }
            }
            granted.sort_unstable();
            prop_assert!(granted.into_iter().eq(0..arrivals.len() as u64), "each granted once");
            // How long writes take is what the order changes, and is asked below.
            Ok((waits, Counters { write_time_ns: 0, ..counters }))
        };
        let ((fifo_waits, fifo), (gamma_waits, gamma)) = (of(Order::Fifo)?, of(Order::Gamma)?);
        prop_assert_eq!(fifo, gamma, "the same time above the limits");
        // A grant before the service time is over waits for it, so an early one and a late one are not quite the mean.
        prop_assert!(gamma_waits >= fifo_waits);
        prop_assert!(gamma_waits - fifo_waits <= 100_000 * arrivals.len() as u128);
    }

    /// Whatever the mix of sizes, a saturated limit is used to the last token.
    #[test]
    fn no_token_is_wasted(arrivals in prop::collection::vec(1u32..64, 50..300)) {
        let at_once: Vec<(u64, u32)> = arrivals.iter().map(|pages| (0, *pages)).collect();
        let end = |order| {
            let (events, _) = lives(order, &at_once, &[]);
            let done = |event: &Event| if let Event::Granted { done_at, .. } = event { Some(*done_at) } else { None };
            events.iter().filter_map(done).max()
        };
        let bytes: u64 = arrivals.iter().map(|pages| u64::from(*pages) * 4096).sum();
        let by_bytes = (bytes * SECOND).div_ceil(20 << 20);
        let by_iops = arrivals.len() as u64 * (SECOND / 2_000);
        for order in [Order::Fifo, Order::Gamma] {
            prop_assert_eq!(end(order), Some(by_bytes.max(by_iops).max(100_000)), "{:?}", order);
        }
    }
}

#[test]
fn the_order_is_drawn_from_the_seed() {
    assert_eq!(saturated(Order::Gamma, 16, 7, 4), saturated(Order::Gamma, 16, 7, 4));
    assert_ne!(saturated(Order::Gamma, 16, 7, 4), saturated(Order::Gamma, 16, 8, 4));
}

/// The throughput limit alone, with large requests: the law is the same, since a request is one grant.
#[test]
fn the_byte_limit_has_the_same_order() {
    let mut instance = Instance::new(2);
    let volume = instance.add_volume(VolumeParams { order: Order::Gamma, ..params(None, Some(4096 * RATE), 1) });
    instance.change(0, Change::Credit { volume, level_ppm: 0 });
    let done = closed_loop(&mut instance, volume, 32, 40 * SECOND);
    let mut latencies: Vec<f64> = done.iter().skip(6_000).map(|l| (l.done_at - l.submitted_at) as f64).collect();
    let mean = mean(&latencies);
    latencies.sort_unstable_by(f64::total_cmp);
    let p99 = latencies[latencies.len() * 99 / 100] / mean;
    assert!((p99 / 3.319 - 1.0).abs() < 0.04, "{p99}");
}
