//! The provider's scenarios of latency as a volume runs them: in virtual time, to the millisecond.

use std::collections::BTreeSet;

use pgdyno_catalog::{Storage, scenario};
use pgdyno_volume::{ALL_PPM, Change, Event, Instance, Io, IoId, Nanos, Op, VolumeFault, VolumeId};

const MS: Nanos = 1_000_000;
const SECOND: Nanos = 1_000_000_000;
const SERVICE: Nanos = 500_000;
/// Requests at each instant, times the share of them that is hit. All miss with a chance of 4.5e-5, and the draws are the same ones each
/// time.
const HIT: f64 = 10.0;
/// When it begins: a scenario's times are from there.
const BEGIN: Nanos = 7 * SECOND;

/// From a second to a second, and what is added, ms.
type Step = (u64, u64, u64);

/// AWS FIS, "Latency injection testing on Amazon EBS": shares of reads and of writes in parts per million, and the steps.
const SCENARIOS: [(&str, [u32; 2], &[Step]); 4] = [
    ("sustained", [500_000, ALL_PPM], &[(0, 900, 500)]),
    (
        "increasing",
        [100_000, 250_000],
        &[(0, 180, 50), (180, 360, 200), (360, 540, 700), (540, 720, 1_000), (720, 900, 15_000)],
    ),
    ("intermittent", [1_000, 1_000], &[(0, 60, 30_000), (360, 480, 10_000), (780, 900, 20_000)]),
    (
        "decreasing",
        [100_000, 100_000],
        &[(0, 180, 20_000), (180, 360, 5_000), (360, 540, 900), (540, 720, 300), (720, 900, 40)],
    ),
];

/// A volume without limits on which a scenario has begun, and the number of its next request.
struct Run {
    instance: Instance,
    volume: VolumeId,
    next: u64,
}

impl Run {
    fn of(name: &str) -> Self {
        let mut instance = Instance::new(11);
        let volume = Storage::parse("null:service_us=500").unwrap().add_to(&mut instance);
        for fault in scenario(name).unwrap() {
            let fault = VolumeFault { from: fault.from + BEGIN, until: fault.until + BEGIN, ..fault };
            instance.change(BEGIN, Change::Fault { volume, fault });
        }
        Self { instance, volume, next: 0 }
    }

    /// How many of `requests` that come at `at` take longer by `added`, if that is not nothing; all others take as long as ever.
    fn later(&mut self, at: Nanos, op: Op, added: Nanos, requests: u64) -> u64 {
        let first = self.next;
        self.next += requests;
        for id in first..self.next {
            let io = Io { id: IoId(id), op, offset: (id - first) << 16, len: 4096 };
            self.instance.submit(at, self.volume, io);
        }
        let mut events = Vec::new();
        self.instance.advance(at, &mut events);
        let (mut later, mut as_ever) = (0, 0);
        for event in events {
            match event {
                Event::Granted { id, done_at } if id.0 >= first => match done_at - at {
                    SERVICE => as_ever += 1,
                    took => {
                        assert_eq!(took, SERVICE + added, "request {id:?}");
                        later += 1;
                    }
                },
                _ => {}
            }
        }
        assert_eq!(later + as_ever, requests, "nothing limits them");
        later
    }
}

#[test]
fn a_scenario_adds_its_latencies_to_its_shares_from_one_millisecond_to_another() {
    for (name, shares_ppm, steps) in SCENARIOS {
        let mut run = Run::of(name);
        // The last millisecond before each begin and each end, the first one after it, and one half way between.
        let edges = steps.iter().flat_map(|(from, until, _)| [from * 1_000, until * 1_000]);
        let around = edges.flat_map(|edge| [edge.saturating_sub(1), edge]);
        let instants: BTreeSet<u64> = around.chain(steps.iter().map(|(from, until, _)| (from + until) * 500)).collect();
        for ms in instants {
            let in_force = steps.iter().find(|(from, until, _)| (from * 1_000..until * 1_000).contains(&ms));
            for (op, share_ppm) in [(Op::Read, shares_ppm[0]), (Op::Write, shares_ppm[1])] {
                let share = f64::from(share_ppm) / f64::from(ALL_PPM);
                let added = in_force.map_or(0, |(_, _, added_ms)| added_ms * MS);
                let later = run.later(BEGIN + ms * MS, op, added, (HIT / share).round() as u64);
                let wanted = if in_force.is_some() { HIT } else { 0.0 };
                // Five standard deviations of a binomial count; where all or none are hit there are none.
                let most_off = 5.0 * (wanted * (1.0 - share)).sqrt();
                assert!((later as f64 - wanted).abs() <= most_off, "{name}, {ms} ms: {later} of {wanted} {op:?}s");
                assert_eq!(later > 0, in_force.is_some(), "{name}, {ms} ms, {op:?}");
            }
        }
    }
}
