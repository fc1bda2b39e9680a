//! An array puts every request where btrfs put it: `python -m tools.btrfs_layout` asked it, and wrote the record.

use crate::common::*;
use pgdyno_volume::*;
use serde::Deserialize;

/// What btrfs did, as the counters of its devices say.
#[derive(Deserialize)]
struct Record {
    columns: u16,
    chunk_kib: u64,
    requests: Vec<Asked>,
}

/// A request, and of each device the requests and KiB that came of it.
#[derive(Deserialize)]
struct Asked {
    offset_kib: u64,
    length_kib: u32,
    members: Vec<(u64, u64)>,
}

#[test]
fn every_request_goes_where_btrfs_sends_it() {
    let record: Record = serde_json::from_str(include_str!("data/btrfs_layout.json")).expect("a record");
    assert!(record.requests.len() > 300, "{}", record.requests.len());
    let mut instance = Instance::new(1);
    let array = instance.add_array(ArrayParams {
        columns: record.columns,
        copies: 1,
        chunk_bytes: record.chunk_kib << 10,
        remote_round_trip_ns: None,
        member: params(None, None, 300_000),
    });
    let counts = |instance: &Instance| -> Vec<(u64, u64)> {
        let members = instance.members(array);
        members.iter().map(|id| instance.counters(*id)).map(|c| (c.read_ops, c.read_bytes >> 10)).collect()
    };
    for (id, asked) in (0..).zip(&record.requests) {
        let before = counts(&instance);
        instance.submit(id, array, io(id, Op::Read, asked.offset_kib << 10, asked.length_kib << 10));
        let after = counts(&instance);
        let went: Vec<(u64, u64)> =
            before.iter().zip(&after).map(|(old, new)| (new.0 - old.0, new.1 - old.1)).collect();
        assert_eq!(went, asked.members, "{} KiB at {} KiB", asked.length_kib, asked.offset_kib);
    }
}
