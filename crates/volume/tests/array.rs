//! Arrays: as many times the IOPS as there are members, until something else binds.

use crate::common::*;
use pgdyno_volume::log::Record;
use pgdyno_volume::*;
use proptest::prelude::*;

const KIB: u32 = 1 << 10;
const MS: Nanos = 1_000_000;

fn raid(columns: u16, copies: u16, member: VolumeParams) -> ArrayParams {
    ArrayParams { columns, copies, chunk_bytes: 64 << 10, remote_round_trip_ns: None, member }
}

fn done_per_s(instance: &mut Instance, volume: VolumeId, depth: u64, seconds: u64) -> f64 {
    // After the members' buckets, one second deep.
    let from = instance.now() + 5 * SECOND;
    let until = from + seconds * SECOND;
    let done = closed_loop(instance, volume, depth, until);
    done.iter().filter(|life| life.done_at > from).count() as f64 / seconds as f64
}

#[test]
fn four_members_do_four_times_the_iops_of_one() {
    for order in [Order::Fifo, Order::Gamma] {
        let member = VolumeParams { order, ..params(Some(1_000), None, 300_000) };
        let mut one = Instance::new(1);
        let volume = one.add_volume(member.clone());
        let single = done_per_s(&mut one, volume, 64, 30);
        let mut four = Instance::new(1);
        let array = four.add_array(raid(4, 1, member));
        let striped = done_per_s(&mut four, array, 512, 30);
        assert!((striped / single / 4.0 - 1.0).abs() < 0.01, "{order:?}: {striped} and {single}");
        let members: Vec<u64> = four.members(array).iter().map(|id| four.counters(*id).read_ops).collect();
        let total = four.counters(array).read_ops;
        assert_eq!(members.len(), 4);
        assert_eq!(members.iter().sum::<u64>(), total, "each request went to one member");
        assert!(members.iter().all(|ops| ops.abs_diff(total / 4) <= total / 100), "{members:?}");
    }
}

#[test]
fn until_the_instance_binds() {
    let rate = |per_s| InstanceRate { baseline_per_s: per_s, maximum_per_s: per_s, depth_ns: SECOND / 4 };
    let limits = InstanceLimits { iops: rate(3_000), throughput: rate(1 << 40) };
    let mut instance = Instance::with_limits(1, limits);
    let array = instance.add_array(raid(4, 1, params(Some(1_000), None, 300_000)));
    let striped = done_per_s(&mut instance, array, 128, 30);
    assert!((striped / 3_000.0 - 1.0).abs() < 0.003, "{striped}");
}

#[test]
fn copies_share_reads_and_each_have_every_write() {
    let mut instance = Instance::new(1);
    let array = instance.add_array(raid(2, 2, params(Some(1_000), None, 300_000)));
    let reads = done_per_s(&mut instance, array, 256, 20);
    assert!((reads / 4_000.0 - 1.0).abs() < 0.01, "four volumes read: {reads}");

    let mut instance = Instance::new(1);
    let array = instance.add_array(raid(2, 2, params(None, None, 300_000)));
    for i in 0..100 {
        instance.submit(i, array, io(i, Op::Write, i * 65_536, 64 * KIB));
    }
    let written: Vec<u64> = instance.members(array).iter().map(|id| instance.counters(*id).write_ops).collect();
    assert_eq!(written, [50; 4]);
    instance.advance(SECOND, &mut Vec::new());
    for id in instance.members(array) {
        let counters = instance.counters(id);
        assert_eq!(counters.granted_write_ops, 50);
        assert_eq!(counters.write_time_ns, 50 * 300_000, "each piece takes the service time, as no limit binds");
        assert_eq!((counters.granted_read_ops, counters.read_time_ns), (0, 0));
    }
    assert_eq!(instance.counters(array).write_ops, 100);
    assert_eq!(instance.outstanding(array), 0);
}

#[test]
fn a_request_is_done_when_its_last_piece_is() {
    let mut instance = Instance::new(1);
    let table =
        |write_ns| ServiceTimeParams { read: QuantileTable::constant(MS), write: QuantileTable::constant(write_ns) };
    let member = VolumeParams { service_time: table(2 * MS), ..params(Some(100), None, 0) };
    let array = instance.add_array(raid(2, 1, member));
    let [first, _] = instance.members(array)[..] else { panic!("two members") };
    instance.change(0, Change::Credit { volume: first, level_ppm: 0 });
    // The first member pays 10 ms for its unit, the second has it at once.
    instance.submit(0, array, io(7, Op::Read, 0, 128 * KIB));
    let mut events = Vec::new();
    instance.advance(9 * MS, &mut events);
    assert_eq!(events, []);
    instance.advance(SECOND, &mut events);
    let done = Event::Done { id: IoId(7), result: IoResult::Ok };
    assert_eq!(events, [Event::Granted { id: IoId(7), done_at: 10 * MS }, done]);
    assert_eq!(instance.outstanding(array), 0);
}

#[test]
fn a_remote_copy_adds_a_round_trip_to_writes_and_nothing_to_reads() {
    let mut instance = Instance::new(1);
    let member = params(None, None, 500_000);
    let params = ArrayParams { columns: 1, remote_round_trip_ns: Some(MS), ..raid(1, 1, member) };
    let array = instance.add_array(params);
    instance.submit(0, array, io(1, Op::Read, 0, 8 * KIB));
    instance.submit(0, array, io(2, Op::Write, 0, 8 * KIB));
    let mut events = Vec::new();
    instance.advance(SECOND, &mut events);
    assert!(events.contains(&Event::Granted { id: IoId(1), done_at: 500_000 }), "{events:?}");
    assert!(events.contains(&Event::Granted { id: IoId(2), done_at: 1_500_000 }), "{events:?}");
    let [local, remote] = instance.members(array)[..] else { panic!("two copies") };
    assert_eq!((instance.counters(local).write_ops, instance.counters(remote).write_ops), (1, 1));
    assert_eq!(instance.counters(remote).read_ops, 0);
}

#[test]
fn the_remote_copy_is_not_behind_the_instances_limits() {
    let rate = InstanceRate { baseline_per_s: 100, maximum_per_s: 100, depth_ns: 0 };
    let throughput = InstanceRate { baseline_per_s: 1 << 30, maximum_per_s: 1 << 30, depth_ns: 0 };
    let mut instance = Instance::with_limits(1, InstanceLimits { iops: rate, throughput });
    let params = ArrayParams { remote_round_trip_ns: Some(MS), ..raid(1, 1, params(None, None, 0)) };
    let array = instance.add_array(params);
    (0..50).for_each(|i| instance.submit(0, array, io(i, Op::Write, i * 8_192, 8 * KIB)));
    let mut events = Vec::new();
    instance.advance(10 * SECOND, &mut events);
    assert_eq!(instance.instance_counters().unwrap().ops, 50);
}

#[test]
fn past_its_end_an_array_says_so() {
    let mut instance = Instance::new(1);
    let member = VolumeParams { size_bytes: (1 << 20) + 4_096, ..params(None, None, 0) };
    let params = raid(2, 1, member);
    // What is left of the last chunk of a member is not used.
    assert_eq!(params.size_bytes(), 2 << 20);
    let array = instance.add_array(params);
    instance.submit(0, array, io(1, Op::Read, (2 << 20) - 4_096, 4 * KIB));
    instance.submit(0, array, io(2, Op::Read, (2 << 20) - 4_096, 8 * KIB));
    let mut events = Vec::new();
    instance.advance(0, &mut events);
    let result = |wanted: u64| {
        events.iter().find_map(|event| match event {
            Event::Done { id: IoId(id), result } if *id == wanted => Some(*result),
            _ => None,
        })
    };
    assert_eq!((result(1), result(2)), (Some(IoResult::Ok), Some(IoResult::OutOfRange)));
}

#[test]
#[should_panic(expected = "a chunk is a multiple of 4 KiB")]
fn a_chunk_that_cuts_blocks_is_a_bug() {
    Instance::new(1).add_array(ArrayParams { chunk_bytes: 1_000, ..raid(2, 1, params(None, None, 0)) });
}

fn attach(instance: &mut Instance) -> [VolumeId; 3] {
    let member = |order| VolumeParams { order, ..params(Some(700), Some(40 << 20), 400_000) };
    let mirrored = ArrayParams { remote_round_trip_ns: Some(MS), ..raid(2, 2, member(Order::Gamma)) };
    let alone = instance.add_volume(params(Some(2_000), Some(40 << 20), 900_000));
    [alone, instance.add_array(raid(3, 1, member(Order::Fifo))), instance.add_array(mirrored)]
}

proptest! {
    #[test]
    fn a_log_replays_identically_and_extra_calls_change_nothing(
        arrivals in prop::collection::vec((0u64..2_000_000, any::<bool>(), 1u32..128, any::<u8>()), 1..300),
        extra in prop::collection::vec(0u64..1_000_000, 0..40),
    ) {
        let rate = |baseline_per_s, maximum_per_s| InstanceRate { baseline_per_s, maximum_per_s, depth_ns: SECOND / 4 };
        let limits = InstanceLimits { iops: rate(900, 2_500), throughput: rate(30 << 20, 90 << 20) };
        let run = |extra: &[u64]| {
            let mut instance = Instance::with_limits(11, limits);
            let volumes = attach(&mut instance);
            let (mut host, mut now) = (Recorder::default(), 0);
            host.change(&mut instance, 0, Change::InstanceCredit { level_ppm: 50 });
            for (i, (gap, write, pages, which)) in arrivals.iter().enumerate() {
                let at = now + gap;
                for step in extra.iter().filter(|step| **step < *gap) {
                    let until = (now + step).max(instance.now());
                    host.advance(&mut instance, until);
                }
                now = at;
                let op = if *write { Op::Write } else { Op::Read };
                let request = io(i as u64 % 4_096, op, (i as u64 * 7 % 9_973) * 8_192, pages * 4_096);
                let volume = volumes[usize::from(*which) % volumes.len()];
                host.submit(&mut instance, now, volume, request);
                if i % 29 == 0 {
                    host.change(&mut instance, now, Change::Credit { volume, level_ppm: 300_000 });
                }
                host.advance(&mut instance, now);
            }
            let log = host.finish(&mut instance);
            prop_assert_eq!(volumes.map(|volume| instance.outstanding(volume)), [0; 3]);
            Ok(log)
        };
        let log = run(&[])?;
        let grants = |log: &[Record]| {
            log.iter().filter(|record| matches!(record, Record::Grant { .. })).copied().collect::<Vec<_>>()
        };
        prop_assert_eq!(grants(&log), grants(&run(&extra)?));
        let mut instance = Instance::with_limits(11, limits);
        attach(&mut instance);
        assert_replays(&mut instance, &log, arrivals.len(), nothing_told);
    }
}
