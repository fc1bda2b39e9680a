//! One seed, one result; a recorded run replays to the nanosecond.

use crate::common::*;
use pgdyno_volume::log::Record;
use pgdyno_volume::replay::replay;
use pgdyno_volume::*;
use proptest::prelude::*;

fn noisy(iops: u64) -> VolumeParams {
    let table = QuantileTable {
        probability_ppm: vec![0, 500_000, 1_000_000],
        rows: vec![QuantileRow { size_bytes: 4096, service_ns: vec![100_000, 500_000, 4_000_000] }],
    };
    let service_time = ServiceTimeParams { read: table.clone(), write: table };
    // The order with the most state to get wrong.
    let iops_credit = Some(CreditParams { rate_per_s: iops / 2, capacity: 10 * iops, initial: 10 * iops });
    VolumeParams { service_time, order: Order::Gamma, iops_credit, ..params(Some(iops), Some(100 << 20), 0) }
}

#[test]
fn the_seed_decides_and_nothing_else() {
    let run = |seed| {
        let mut instance = Instance::new(seed);
        let volume = instance.add_volume(noisy(3_000));
        closed_loop(&mut instance, volume, 16, 5 * SECOND)
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

/// A host that advances when it happens to wake, as the emulator does, and logs as the emulator does.
fn record(arrivals: &[(u64, bool, u32, bool)]) -> Vec<Record> {
    let mut instance = Instance::new(11);
    let volumes = [instance.add_volume(noisy(2_000)), instance.add_volume(noisy(500))];
    let (mut host, mut now) = (Recorder::default(), 0);
    for (i, (gap, write, pages, second)) in arrivals.iter().enumerate() {
        now += gap;
        let op = if *write { Op::Write } else { Op::Read };
        // Ids are slots that the host uses again once a request is done.
        let request = io(i as u64 % 4_096, op, (i as u64 % 9_973) * 8_192, pages * 4_096);
        let volume = volumes[usize::from(*second)];
        host.submit(&mut instance, now, volume, request);
        if i % 97 == 0 {
            host.change(&mut instance, now, Change::Credit { volume, level_ppm: 300_000 });
            host.change(&mut instance, now, Change::Baseline { volume, until: now + 20_000_000 });
        }
        host.advance(&mut instance, now);
    }
    host.finish(&mut instance)
}

proptest! {
    #[test]
    fn a_log_survives_bytes_and_replays_identically(
        arrivals in prop::collection::vec((0u64..3_000_000, any::<bool>(), 1u32..64, any::<bool>()), 1..400),
    ) {
        let log = record(&arrivals);
        let mut instance = Instance::new(11);
        instance.add_volume(noisy(2_000));
        instance.add_volume(noisy(500));
        assert_replays(&mut instance, &log, arrivals.len(), nothing_told);
    }
}

#[test]
fn a_replay_with_another_seed_is_caught() {
    let log = record(&vec![(400_000, false, 1, false); 200]);
    let mut instance = Instance::new(12);
    instance.add_volume(noisy(2_000));
    instance.add_volume(noisy(500));
    assert!(replay(&mut instance, log.into_iter()).first_difference.is_some());
}
