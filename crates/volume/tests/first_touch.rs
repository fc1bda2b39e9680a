//! First touch: which requests wait for blocks of the snapshot, how long, and that each block is fetched once.

use std::collections::BTreeMap;

use crate::common::*;
use pgdyno_volume::log::Record;
use pgdyno_volume::*;
use proptest::prelude::*;

const MS: Nanos = 1_000_000;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const BLOCK: u64 = 512 << 10;
const SERVICE: Nanos = 500_000;
const FETCH: Nanos = 20 * MS;

fn touched(bytes_per_s: u64, fetch_ns: Nanos) -> VolumeParams {
    let fetch = QuantileTable::constant(fetch_ns);
    let first_touch = Some(FirstTouchParams { block_bytes: BLOCK, bytes_per_s, fetch });
    VolumeParams { first_touch, ..params(None, None, SERVICE) }
}

fn extents(parts: &[(u64, u64)]) -> Extents {
    let mut extents = Extents::default();
    for (offset, len) in parts {
        extents.push(*offset, *len);
    }
    extents
}

/// How long a read of 8 KiB takes that comes at `at`.
fn took(instance: &mut Instance, volume: VolumeId, at: Nanos, offset: u64) -> Nanos {
    let mut events = Vec::new();
    instance.submit(at, volume, io(at, Op::Read, offset, 8192));
    instance.advance(at, &mut events);
    let done = events.iter().find_map(|event| match event {
        Event::Granted { id, done_at } if id.0 == at => Some(*done_at),
        _ => None,
    });
    done.expect("nothing limits it") - at
}

/// The example of the provider's guide: 10 GiB at 300 MiB/s take 34.1 s.
#[test]
fn ten_gib_at_300_mib_per_s_are_ready_after_34_1_s() {
    let mut instance = Instance::new(1);
    let volume = instance.add_volume(touched(300 * MIB, 0));
    let begin = 7 * SECOND;
    instance.restore(begin, volume, &extents(&[(0, 10 * GIB)]));
    let at = |instance: &mut Instance, ns| {
        instance.advance(begin + ns, &mut Vec::new());
        instance.counters(volume).initialized_ppm.expect("a restored volume")
    };
    assert_eq!(at(&mut instance, 0), 0);
    assert!((499_900..=500_100).contains(&at(&mut instance, 17_066_666_667)), "half of it in half the time");
    let tenth_of_a_percent = 34_100 * MS / 1_000;
    assert!(at(&mut instance, 34_100 * MS - 5 * tenth_of_a_percent) < ALL_PPM);
    assert_eq!(at(&mut instance, 34_100 * MS + 5 * tenth_of_a_percent), ALL_PPM);
}

#[test]
fn the_first_request_to_a_block_waits_and_the_next_ones_do_not() {
    let mut instance = Instance::new(1);
    let volume = instance.add_volume(touched(30 * MIB, FETCH));
    instance.restore(0, volume, &extents(&[(0, GIB)]));
    assert_eq!(took(&mut instance, volume, 1, GIB / 2), (2 * BLOCK * SECOND).div_ceil(30 * MIB) - 1 + SERVICE);
    let coming = took(&mut instance, volume, 10 * MS, GIB / 2 + 8192);
    assert_eq!(coming, (2 * BLOCK * SECOND).div_ceil(30 * MIB) - 10 * MS + SERVICE, "it is on its way");
    assert_eq!(took(&mut instance, volume, SECOND, GIB / 2), SERVICE);
    assert_eq!(took(&mut instance, volume, 2 * SECOND, 2 * GIB), SERVICE, "the snapshot lacks it");
    assert_eq!(took(&mut instance, volume, 3 * SECOND, 0), SERVICE, "it came in the background");
    let counters = instance.counters(volume);
    assert_eq!(counters.first_touch_blocks, 1);
    assert!(counters.first_touch_ns > FETCH);
}

#[test]
fn a_request_that_comes_at_the_first_instant_has_the_first_turn() {
    let mut instance = Instance::new(1);
    let volume = instance.add_volume(touched(30 * MIB, FETCH));
    instance.restore(0, volume, &extents(&[(0, GIB)]));
    assert_eq!(took(&mut instance, volume, 0, GIB / 2), FETCH + SERVICE, "its turn takes 16.7 ms");
}

#[test]
fn a_volume_whose_blocks_are_there_does_not_change_by_being_restored() {
    let mut instance = Instance::new(1);
    let volume = instance.add_volume(params(None, None, SERVICE));
    instance.restore(0, volume, &extents(&[(0, GIB)]));
    assert_eq!(took(&mut instance, volume, 1, 0), SERVICE);
    assert_eq!(instance.counters(volume).initialized_ppm, None);
}

#[test]
fn the_members_of_an_array_have_their_parts_of_the_snapshot() {
    let array = ArrayParams {
        columns: 2,
        copies: 2,
        chunk_bytes: BLOCK,
        remote_round_trip_ns: None,
        member: touched(MIB, FETCH),
    };
    let mut instance = Instance::new(1);
    let volume = instance.add_array(array);
    // Chunks 0 and 2 are the first two blocks of the one column, chunk 5 is the third of the other.
    instance.restore(0, volume, &extents(&[(0, BLOCK), (2 * BLOCK, BLOCK), (5 * BLOCK, BLOCK)]));
    let turn = SECOND / 2;
    for (member, blocks) in instance.members(volume).into_iter().zip([2, 2, 1, 1]) {
        let mut instance = instance.clone();
        instance.advance(blocks * turn - 1, &mut Vec::new());
        assert!(instance.counters(member).initialized_ppm < Some(ALL_PPM));
        instance.advance(blocks * turn, &mut Vec::new());
        assert_eq!(instance.counters(member).initialized_ppm, Some(ALL_PPM));
    }
    assert_eq!(took(&mut instance, volume, 0, BLOCK), SERVICE, "the snapshot lacks it");
    assert_eq!(took(&mut instance, volume, 1, 5 * BLOCK), turn - 1 + SERVICE, "it is on its way");
}

/// Behind limits, in a drawn order, in pieces on the members of an array: the whole of a model that restores.
#[test]
fn a_log_of_a_restored_array_under_limits_replays_identically() {
    let steps = [1_000_000, 2_000_000, 20_000_000, 70_000_000, 200_000_000];
    let row = QuantileRow { size_bytes: BLOCK, service_ns: steps.to_vec() };
    let fetch = QuantileTable { probability_ppm: vec![0, 250_000, 500_000, 900_000, 1_000_000], rows: vec![row] };
    let first_touch = Some(FirstTouchParams { block_bytes: BLOCK, bytes_per_s: 30 * MIB, fetch });
    let member = VolumeParams { first_touch, order: Order::Gamma, ..params(Some(500), Some(20 * MIB), SERVICE) };
    let array = ArrayParams { columns: 2, copies: 2, chunk_bytes: 65_536, remote_round_trip_ns: None, member };
    let make = || {
        let mut instance = Instance::new(9);
        let volume = instance.add_array(array.clone());
        (instance, volume)
    };
    let (mut instance, volume) = make();
    let mut host = Recorder::default();
    host.restore(&mut instance, 3, volume, &extents(&[(0, 200 * MIB), (300 * MIB, 100 * MIB)]));
    let (mut bits, mut now, requests) = (7_u64, 3, 20_000);
    for id in 0..requests {
        bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        now += bits >> 44;
        let op = if bits >> 20 & 1 == 0 { Op::Read } else { Op::Write };
        host.submit(&mut instance, now, volume, io(id, op, (bits >> 32) % 50_000 * 8192, 65_536));
    }
    let log = host.finish(&mut instance);
    let counters = instance.counters(volume);
    assert_eq!(counters.initialized_ppm, Some(ALL_PPM));
    assert!(counters.first_touch_blocks > 100 && counters.exceeded_iops_ns > 0, "{counters:?}");
    assert_replays(&mut make().0, &log, requests as usize, nothing_told);
}

/// The same rule, told in another way: fetches in a list, one each millisecond.
#[derive(Default)]
struct Reference {
    absent: Vec<u64>,
    fetched: u64,
    there_at: BTreeMap<u64, Nanos>,
    on_demand: u64,
}

impl Reference {
    fn fetch(&mut self, block: u64, earliest: Nanos) {
        self.absent.retain(|other| *other != block);
        self.fetched += 1;
        let before = self.there_at.insert(block, (self.fetched * MS).max(earliest));
        assert_eq!(before, None, "each block is fetched once");
    }

    fn ready_at(&mut self, now: Nanos, offset: u64, len: u64) -> Nanos {
        while self.fetched * MS < now
            && let Some(block) = self.absent.first().copied()
        {
            self.fetch(block, 0);
        }
        let blocks = offset / BLOCK..=(offset + len - 1) / BLOCK;
        let ready = blocks.map(|block| {
            if self.absent.contains(&block) {
                self.on_demand += 1;
                self.fetch(block, now + 7 * MS);
            }
            self.there_at.get(&block).copied().unwrap_or(0)
        });
        ready.max().unwrap_or(0).max(now)
    }
}

proptest! {
    /// Every request of any sequence waits as the reference says, each held block is fetched once, and a replay of the log ends
    /// every request at the same nanosecond.
    #[test]
    fn every_held_block_is_fetched_once_and_a_log_replays_identically(
        held in prop::collection::btree_set(0u64..100, 1..60),
        arrivals in prop::collection::vec((0u64..3 * MS, any::<bool>(), 0u64..100 * 64, 1u64..32), 1..200),
    ) {
        let mut parts = Extents::default();
        for block in &held {
            parts.push(block * BLOCK, BLOCK);
        }
        let params = touched(1_000 * BLOCK, 7 * MS);
        let mut instance = Instance::new(5);
        let volume = instance.add_volume(params.clone());
        let mut host = Recorder::default();
        host.restore(&mut instance, 0, volume, &parts);
        let mut reference = Reference { absent: held.iter().copied().collect(), ..Reference::default() };
        let (mut now, mut wanted) = (0, BTreeMap::new());
        for (i, (gap, write, page, pages)) in arrivals.iter().enumerate() {
            now += gap;
            let (offset, len) = (page * 8192, pages * 8192);
            wanted.insert(i as u64, reference.ready_at(now, offset, len) + SERVICE);
            let op = if *write { Op::Write } else { Op::Read };
            host.submit(&mut instance, now, volume, io(i as u64, op, offset, len as u32));
        }
        let end = now.max(held.len() as u64 * MS);
        host.advance(&mut instance, end);
        let counters = instance.counters(volume);
        prop_assert_eq!(counters.initialized_ppm, Some(ALL_PPM));
        prop_assert_eq!(counters.first_touch_blocks, reference.on_demand);
        reference.ready_at(end + 1, 1 << 30, 1);
        prop_assert_eq!(reference.fetched, held.len() as u64);

        let log = host.finish(&mut instance);
        let grant = |record: &Record| match record {
            Record::Grant { id, done_at, .. } => Some((id.0, *done_at)),
            _ => None,
        };
        prop_assert_eq!(log.iter().filter_map(grant).collect::<BTreeMap<_, _>>(), wanted);
        let mut again = Instance::new(5);
        again.add_volume(params);
        assert_replays(&mut again, &log, arrivals.len(), nothing_told);
    }
}
