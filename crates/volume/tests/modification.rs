//! A volume that becomes another while it is used, and how often it may.

use crate::common::*;
use pgdyno_volume::log::Record;
use pgdyno_volume::replay::Told;
use pgdyno_volume::*;
use proptest::prelude::*;

const MS: Nanos = 1_000_000;
const HOUR: Nanos = 3_600 * SECOND;
const AT_ONCE: Course = Course { modifying_ns: 0, optimizing_ns: 0 };

#[test]
fn more_iops_take_effect_at_one_token_boundary() {
    for order in [Order::Fifo, Order::Gamma] {
        let member = |iops| VolumeParams { order, ..params(Some(iops), None, 500_000) };
        let mut instance = Instance::new(1);
        let volume = instance.add_volume(member(3_000));
        let change = 10 * SECOND + 123_456_789;
        let mut done = closed_loop(&mut instance, volume, 64, change);
        instance.modify(change, volume, &member(16_000));
        let mut events = Vec::new();
        instance.advance(change + SECOND, &mut events);
        // Those that waited, and then the rest: the loop goes on with as many.
        let waited = events.iter().filter(|event| matches!(event, Event::Done { .. })).count();
        assert_eq!(waited, 64, "{order:?}: none is lost and none fails");
        let granted: Vec<Nanos> = events
            .iter()
            .filter_map(|event| match event {
                Event::Granted { done_at, .. } => Some(*done_at),
                Event::Failing { .. } | Event::Done { .. } => None,
            })
            .collect();
        let took = granted.iter().max().unwrap() - change;
        assert!(took <= 64 * SECOND / 16_000 + SECOND / 3_000, "{order:?}: at the new rate at once, {took} ns");
        done = closed_loop(&mut instance, volume, 64, change + 21 * SECOND).into_iter().chain(done).collect();
        let late = done.iter().filter(|life| life.done_at > change + 11 * SECOND).count() as f64;
        assert!((late / 160_000.0 - 1.0).abs() < 0.001, "{order:?}: {late} in 10 s");
    }
}

#[test]
fn fewer_iops_take_effect_and_no_request_stalls() {
    let mut instance = Instance::new(1);
    let volume = instance.add_volume(params(Some(16_000), None, 500_000));
    closed_loop(&mut instance, volume, 16, 5 * SECOND);
    instance.modify(5 * SECOND, volume, &params(Some(3_000), None, 500_000));
    let mut events = Vec::new();
    instance.advance(6 * SECOND, &mut events);
    let done = closed_loop(&mut instance, volume, 16, 16 * SECOND);
    assert!(done.iter().all(|life| life.done_at - life.submitted_at <= 50 * MS), "no stall");
    let late = done.iter().filter(|life| life.done_at > 8 * SECOND).count();
    assert!(late.abs_diff(24_000) <= 24, "{late} in 8 s");
}

#[test]
fn a_larger_volume_holds_more_and_an_array_with_it() {
    let small = VolumeParams { size_bytes: 1 << 20, ..params(None, None, 0) };
    let large = VolumeParams { size_bytes: 2 << 20, ..small.clone() };
    let array =
        ArrayParams { columns: 4, copies: 1, chunk_bytes: 64 << 10, remote_round_trip_ns: None, member: small.clone() };
    let mut instance = Instance::new(1);
    for (volume, end) in [(instance.add_volume(small), 1 << 20), (instance.add_array(array), 4 << 20)] {
        let at = instance.now();
        let result = |instance: &mut Instance| {
            let mut events = Vec::new();
            instance.submit(at, volume, io(1, Op::Write, end, 4096));
            instance.advance(at, &mut events);
            events.into_iter().find_map(|event| match event {
                Event::Done { result, .. } => Some(result),
                Event::Granted { .. } | Event::Failing { .. } => None,
            })
        };
        assert_eq!(result(&mut instance), Some(IoResult::OutOfRange));
        instance.modify(at, volume, &large);
        assert_eq!(result(&mut instance), Some(IoResult::Ok));
    }
}

/// A modification that takes effect if the rule allows it.
fn ask(history: &mut Modifications, now: Nanos, rule: FrequencyRule, course: Course) -> Result<(), TooSoon> {
    history.allows(now, rule).map(|()| history.count(now, course))
}

#[test]
fn a_modification_counts_only_when_it_took_effect() {
    for rule in [FrequencyRule::FourInADay, FrequencyRule::SixHours] {
        let mut history = Modifications::default();
        for _ in 0..5 {
            history.allows(SECOND, rule).unwrap();
        }
        assert_eq!(history.state(SECOND), None);
        history.count(SECOND, Course { modifying_ns: SECOND, optimizing_ns: SECOND });
        history.allows(2 * SECOND, rule).unwrap_err();
    }
}

#[test]
fn four_in_a_day_and_each_after_the_other() {
    let mut history = Modifications::default();
    assert_eq!(history.state(0), None);
    let course = Course { modifying_ns: 10 * SECOND, optimizing_ns: HOUR };
    ask(&mut history, SECOND, FrequencyRule::FourInADay, course).unwrap();
    assert_eq!(history.state(5 * SECOND), Some(ModificationState::Modifying));
    assert_eq!(history.state(12 * SECOND), Some(ModificationState::Optimizing));
    let refused = ask(&mut history, 12 * SECOND, FrequencyRule::FourInADay, course).unwrap_err();
    assert!(refused.rule.contains("completed"), "{refused:?}");
    assert_eq!(refused.allowed_at, 11 * SECOND + HOUR);
    assert_eq!(history.state(refused.allowed_at), Some(ModificationState::Completed));
    for again in 1..4 {
        ask(&mut history, again * 2 * HOUR, FrequencyRule::FourInADay, course).unwrap();
    }
    let refused = ask(&mut history, 10 * HOUR, FrequencyRule::FourInADay, course).unwrap_err();
    assert!(refused.rule.contains("four times in 24 hours"), "{refused:?}");
    assert_eq!(refused.allowed_at, SECOND + 24 * HOUR);
    ask(&mut history, refused.allowed_at, FrequencyRule::FourInADay, course).unwrap();
}

#[test]
fn six_hours_apart_by_the_older_rule() {
    let mut history = Modifications::default();
    ask(&mut history, 0, FrequencyRule::SixHours, AT_ONCE).unwrap();
    let refused = ask(&mut history, 6 * HOUR - 1, FrequencyRule::SixHours, AT_ONCE).unwrap_err();
    assert_eq!(refused.allowed_at, 6 * HOUR);
    ask(&mut history, 6 * HOUR, FrequencyRule::SixHours, AT_ONCE).unwrap();
}

/// A specification of this test: IOPS.
fn of(spec: &str) -> VolumeParams {
    VolumeParams { order: Order::Gamma, ..params(spec.parse().ok(), Some(60 << 20), 700_000) }
}

proptest! {
    #[test]
    fn a_log_with_volumes_that_come_and_change_replays_identically(
        arrivals in prop::collection::vec((0u64..2_000_000, any::<bool>(), 1u32..64, any::<u8>()), 40..400),
        rates in prop::collection::vec(100u64..4_000, 1..6),
    ) {
        let mut instance = Instance::new(9);
        let mut volumes = vec![instance.add_volume(of("1000"))];
        let (mut host, mut now) = (Recorder::default(), 0);
        for (i, (gap, write, pages, which)) in arrivals.iter().enumerate() {
            now += gap;
            let volume = volumes[usize::from(*which) % volumes.len()];
            if i % 40 == 39 {
                let spec = rates[i / 40 % rates.len()].to_string();
                host.advance(&mut instance, now);
                host.log.extend(Record::text(&spec));
                if i % 80 == 39 {
                    instance.modify(now, volume, &of(&spec));
                    host.log.push(Record::Modify { now, volume });
                } else {
                    volumes.push(instance.add_volume(of(&spec)));
                    host.log.push(Record::Attach { now });
                }
            }
            let op = if *write { Op::Write } else { Op::Read };
            let request = io(i as u64, op, (i as u64 % 9_973) * 8_192, pages * 4_096);
            host.submit(&mut instance, now, volume, request);
            host.advance(&mut instance, now);
        }
        let log = host.finish(&mut instance);
        let mut again = Instance::new(9);
        again.add_volume(of("1000"));
        let repeat = |instance: &mut Instance, told: Told, spec: &str| {
            match told {
                Told::Attach => {
                    instance.add_volume(of(spec));
                }
                Told::Modify { now, volume } => instance.modify(now, volume, &of(spec)),
            }
            true
        };
        assert_replays(&mut again, &log, arrivals.len(), repeat);
    }

    #[test]
    fn a_text_of_any_length_survives_its_pieces(text in "\\PC{0,200}") {
        let mut reader = log::TextReader::default();
        for record in Record::text(&text) {
            let Some(Record::Text { len, bytes }) = Record::decode(&record.encode()) else { panic!("a text") };
            reader.push(len, &bytes);
        }
        prop_assert_eq!(reader.take(), text);
    }
}
