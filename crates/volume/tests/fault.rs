//! Faults on purpose: which requests they touch, for how long, and that a replay meets them again.

use crate::common::*;
use pgdyno_volume::*;
use proptest::prelude::*;

const MS: Nanos = 1_000_000;
const SERVICE: Nanos = 500_000;

fn fault(from: Nanos, until: Nanos, effect: Effect) -> VolumeFault {
    VolumeFault { from, until, reads: true, writes: true, share_ppm: ALL_PPM, effect }
}

fn volume_of(iops: Option<u64>) -> (Instance, VolumeId) {
    let mut instance = Instance::new(3);
    let volume = instance.add_volume(params(iops, None, SERVICE));
    (instance, volume)
}

/// Submits a request and says when it ended, and how; `None` while it waits at `until`.
fn end_of(
    instance: &mut Instance,
    volume: VolumeId,
    at: Nanos,
    request: Io,
    until: Nanos,
) -> Option<(Nanos, IoResult)> {
    let mut events = Vec::new();
    instance.submit(at, volume, request);
    instance.advance(until, &mut events);
    let done_at = events.iter().find_map(|event| match event {
        Event::Granted { id, done_at } | Event::Failing { id, done_at } if *id == request.id => Some(*done_at),
        _ => None,
    })?;
    events.iter().find_map(|event| match event {
        Event::Done { id, result } if *id == request.id => Some((done_at, *result)),
        _ => None,
    })
}

#[test]
fn a_pause_holds_what_comes_and_not_what_was_granted() {
    let (mut instance, volume) = volume_of(Some(1_000));
    instance.submit(0, volume, io(1, Op::Write, 0, 4096));
    let until = 70 * SECOND;
    instance.change(1_000, Change::Fault { volume, fault: fault(1_000, until, Effect::Pause) });
    let mut events = Vec::new();
    instance.submit(MS, volume, io(2, Op::Write, 1 << 20, 4096));
    instance.advance(until - 1, &mut events);
    let done: Vec<_> = events.iter().filter(|event| matches!(event, Event::Done { .. })).collect();
    assert_eq!(done, [&Event::Done { id: IoId(1), result: IoResult::Ok }]);
    assert_eq!(instance.outstanding(volume), 1);
    assert_eq!(instance.next_event(), Some(until));
    events.clear();
    instance.advance(until, &mut events);
    assert_eq!(
        events,
        [Event::Granted { id: IoId(2), done_at: until }, Event::Done { id: IoId(2), result: IoResult::Ok }]
    );
    let waited = instance.counters(volume);
    assert_eq!(waited.exceeded_iops_ns, 0, "a pause is no limit");
}

#[test]
fn a_pause_without_an_end_lasts_until_it_is_healed_and_the_limit_holds_afterwards() {
    let (mut instance, volume) = volume_of(Some(1_000));
    instance.change(0, Change::Fault { volume, fault: fault(0, Nanos::MAX, Effect::Pause) });
    for id in 0..3_000 {
        instance.submit(id, volume, io(id, Op::Read, id << 20, 4096));
    }
    let mut events = Vec::new();
    instance.advance(100 * SECOND, &mut events);
    assert_eq!((events.len(), instance.next_event(), instance.next_grant()), (0, None, None));
    assert_eq!(instance.faults(volume).count(), 1);
    instance.change(100 * SECOND, Change::Heal { volume });
    assert_eq!(instance.faults(volume).count(), 0);
    instance.advance(101 * SECOND, &mut events);
    let granted = events.iter().filter(|event| matches!(event, Event::Granted { .. })).count();
    assert!((2_000..2_010).contains(&granted), "a full bucket of one second and one second's tokens: {granted}");
}

#[test]
fn latency_is_added_to_the_share_of_the_operations_that_it_names() {
    let (mut instance, volume) = volume_of(None);
    let added_ns = 50 * MS;
    let slow =
        VolumeFault { writes: false, share_ppm: 100_000, ..fault(SECOND, 11 * SECOND, Effect::Latency { added_ns }) };
    instance.change(0, Change::Fault { volume, fault: slow });
    let mut took = [Vec::new(), Vec::new(), Vec::new()];
    let mut events = Vec::new();
    for id in 0..120_000u64 {
        let (now, op) = (id * MS / 10, if id % 2 == 0 { Op::Read } else { Op::Write });
        instance.submit(now, volume, io(id, op, id << 20, 4096));
        instance.advance(now, &mut events);
        for event in events.drain(..) {
            let Event::Granted { id, done_at } = event else { continue };
            let (at, in_force) = (id.0 * MS / 10, (SECOND..11 * SECOND).contains(&(id.0 * MS / 10)));
            let which = if !in_force { 0 } else { 1 + (id.0 % 2) as usize };
            took[which].push(done_at - at);
        }
    }
    let [outside, reads, writes] = took;
    assert!(outside.iter().chain(&writes).all(|took| *took == SERVICE));
    assert!(reads.iter().all(|took| [SERVICE, SERVICE + added_ns].contains(took)), "exactly as much later");
    let hit = reads.iter().filter(|took| **took > SERVICE).count() as f64;
    let (n, p) = (reads.len() as f64, 0.1);
    assert!((hit - n * p).abs() < 5.0 * (n * p * (1.0 - p)).sqrt(), "{hit} of {n}");
}

#[test]
fn an_error_hits_its_range_its_operation_and_once_if_so_asked() {
    let (mut instance, volume) = volume_of(None);
    let range = |once| Effect::Error { begin: 1 << 20, end: 2 << 20, once };
    let add = |instance: &mut Instance, fault| instance.change(instance.now(), Change::Fault { volume, fault });
    add(&mut instance, VolumeFault { reads: false, ..fault(0, Nanos::MAX, range(false)) });
    let mut at = 0;
    let mut result = |instance: &mut Instance, op, offset, len| {
        at += 10 * MS;
        end_of(instance, volume, at, io(at, op, offset, len), at + 5 * MS)
    };
    let (ok, failed) = (IoResult::Ok, IoResult::Failed);
    assert_eq!(result(&mut instance, Op::Write, (1 << 20) - 4096, 4096), Some((10 * MS + SERVICE, ok)), "before it");
    assert_eq!(result(&mut instance, Op::Write, (1 << 20) - 4096, 8192), Some((20 * MS + SERVICE, failed)), "into it");
    assert_eq!(result(&mut instance, Op::Read, 1 << 20, 4096), Some((30 * MS + SERVICE, ok)), "a read");
    assert_eq!(result(&mut instance, Op::Write, 2 << 20, 4096), Some((40 * MS + SERVICE, ok)), "behind it");
    instance.change(50 * MS - 1, Change::Heal { volume });
    add(&mut instance, fault(0, Nanos::MAX, range(true)));
    assert_eq!(result(&mut instance, Op::Read, 1 << 20, 4096), Some((50 * MS + SERVICE, failed)));
    assert_eq!(result(&mut instance, Op::Read, 1 << 20, 4096), Some((60 * MS + SERVICE, ok)), "once");
    assert_eq!(instance.faults(volume).count(), 0);
}

#[test]
fn a_lost_volume_stays_lost() {
    let (mut instance, volume) = volume_of(None);
    instance.change(0, Change::Fault { volume, fault: fault(0, Nanos::MAX, Effect::Lose) });
    instance.change(MS, Change::Heal { volume });
    let end = end_of(&mut instance, volume, 2 * MS, io(1, Op::Read, 0, 4096), 3 * MS);
    assert_eq!(end, Some((2 * MS + SERVICE, IoResult::Failed)));
}

#[test]
fn a_stripe_is_lost_with_one_member_and_a_mirror_does_without_it() {
    for (copies, lost) in [(1, IoResult::Failed), (2, IoResult::Ok)] {
        let params = ArrayParams {
            columns: 2,
            copies,
            chunk_bytes: 65_536,
            remote_round_trip_ns: None,
            member: params(None, None, SERVICE),
        };
        let mut instance = Instance::new(1);
        let array = instance.add_array(params);
        let member = instance.members(array)[0];
        instance.change(0, Change::Fault { volume: member, fault: fault(0, Nanos::MAX, Effect::Lose) });
        for (i, op) in [Op::Read, Op::Write].into_iter().enumerate() {
            let at = MS + 10 * MS * i as u64;
            let request = |id, offset| io(at + id, op, offset, 8192);
            let on_lost = end_of(&mut instance, array, at, request(0, 0), at + 2 * MS);
            let beside = end_of(&mut instance, array, at + 3 * MS, request(1, 65_536), at + 5 * MS);
            assert_eq!(on_lost, Some((at + SERVICE, lost)), "{copies} copies, {op:?}");
            assert_eq!(beside, Some((at + 3 * MS + SERVICE, IoResult::Ok)), "{copies} copies, {op:?}");
        }
        assert_eq!(instance.faults(array).map(|(place, _)| place).collect::<Vec<_>>(), [0]);
    }
}

fn any_fault() -> impl Strategy<Value = VolumeFault> {
    let effect = prop_oneof![
        Just(Effect::Pause),
        (1u64..20 * MS).prop_map(|added_ns| Effect::Latency { added_ns }),
        (0u64..1 << 22, 1u64..1 << 22, any::<bool>()).prop_map(|(begin, bytes, once)| Effect::Error {
            begin,
            end: begin + bytes,
            once
        }),
    ];
    (0u64..200 * MS, 1u64..100 * MS, any::<bool>(), any::<bool>(), 0u32..=ALL_PPM, effect).prop_map(
        |(from, lasts, reads, writes, share_ppm, effect)| VolumeFault {
            from,
            until: from + lasts,
            reads,
            writes,
            share_ppm,
            effect,
        },
    )
}

proptest! {
    /// Whatever goes wrong, and however often the host looks, a replay of the log ends every request at the same nanosecond
    /// and in the same way.
    #[test]
    fn a_log_with_faults_replays_identically(
        arrivals in prop::collection::vec((0u64..2_000_000, any::<bool>(), 0u64..1_000, any::<bool>()), 1..200),
        faults in prop::collection::vec((0usize..200, any_fault()), 0..12),
        healed_at in prop::option::of(0usize..200),
    ) {
        let make = || {
            let mut instance = Instance::new(5);
            let volume = instance.add_volume(VolumeParams { order: Order::Gamma, ..params(Some(2_000), None, SERVICE) });
            (instance, volume)
        };
        let (mut instance, volume) = make();
        let (mut host, mut now) = (Recorder::default(), 0);
        for (i, (gap, write, page, look)) in arrivals.iter().enumerate() {
            now += gap;
            for (_, fault) in faults.iter().filter(|(at, _)| *at == i) {
                host.change(&mut instance, now, Change::Fault { volume, fault: *fault });
            }
            if healed_at == Some(i) {
                host.change(&mut instance, now, Change::Heal { volume });
            }
            let op = if *write { Op::Write } else { Op::Read };
            host.submit(&mut instance, now, volume, io(i as u64, op, page * 8192, 8192));
            if *look {
                host.advance(&mut instance, now);
            }
        }
        let log = host.finish(&mut instance);
        assert_replays(&mut make().0, &log, arrivals.len(), nothing_told);
    }
}
