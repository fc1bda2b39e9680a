//! Arrays as they are written: what each member is, what the whole is, and what is refused.

use pgdyno_catalog::{InstanceType, Resolved, Storage, types};
use pgdyno_volume::{Event, Instance, Io, IoId, Op};
use proptest::prelude::*;

const GIB: u64 = 1 << 30;

#[test]
fn unequal_stripes_are_refused() {
    for (text, remedy) in [
        ("gp3+gp2", "2xgp3"),
        ("gp3:size=10GiB + gp3:size=20GiB", "2xgp3:size=10GiB"),
        ("raid10:2xgp3:chunk=64KiB+2xgp2", "raid10:4xgp3:chunk=64KiB"),
        ("gp7+gp2", "2xgp3"),
    ] {
        let error = Storage::parse(text).unwrap_err();
        assert!(error.message.contains("volumes of an array are equal"), "{text}: {}", error.message);
        assert_eq!(error.remedy, remedy, "{text}");
    }
}

#[test]
fn a_single_volume_is_what_it_was() {
    let one = Storage::parse("gp3:iops=6000").unwrap();
    assert_eq!(one.total, Resolved::parse("gp3:iops=6000").unwrap());
    assert_eq!((one.array, one.total.spec.as_str()), (None, "gp3:size=100GiB,iops=6000,throughput=125"));
}

#[test]
fn an_array_is_as_many_times_its_member() {
    let member = Resolved::parse("gp3:iops=10000,throughput=1000").unwrap();
    let eight = Storage::parse("8xgp3:iops=10000,throughput=1000").unwrap();
    assert_eq!(eight.total.size_bytes, 800 * GIB);
    assert_eq!(eight.total.limits.iops, Some(80_000));
    assert_eq!(eight.total.limits.throughput_mib_per_s, Some(8_000.0));
    assert_eq!(eight.total.usd_per_month, member.usd_per_month.map(|usd| 8.0 * usd));
    assert_eq!(eight.total.durability, None);
    assert!(eight.total.title.starts_with("RAID-0 of 8, each "), "{}", eight.total.title);
    let array = eight.array.as_ref().unwrap();
    assert_eq!((array.columns, array.copies, array.chunk_kib, &array.member), (8, 1, 512, &member));
    assert_eq!(eight.volumes(), 8);

    let mirrored = Storage::parse("RAID10: 4x gp3:size=50GiB , chunk = 64KiB").unwrap();
    assert_eq!(mirrored.total.spec, "raid10:4xgp3:size=50GiB,iops=3000,throughput=125,chunk=64KiB");
    let array = mirrored.array.as_ref().unwrap();
    assert_eq!((array.columns, array.copies, array.chunk_kib), (2, 2, 64));
    assert_eq!((mirrored.total.size_bytes, mirrored.total.limits.iops), (100 * GIB, Some(6_000)));
    assert_ne!(mirrored.model_hash(), eight.model_hash());
}

#[test]
fn multi_az_is_a_second_volume_and_a_round_trip() {
    let plain = Storage::parse("io2bx:iops=16000").unwrap();
    let away = Storage::parse("io2bx:iops=16000,multi_az=1.0ms").unwrap();
    assert_eq!(away.total.spec, format!("{},multi_az=1.0ms", plain.total.spec));
    assert_eq!((away.total.size_bytes, away.total.limits.iops), (plain.total.size_bytes, Some(16_000)));
    assert_eq!(away.total.usd_per_month, plain.total.usd_per_month.map(|usd| 2.0 * usd));
    let array = away.array.as_ref().unwrap();
    assert_eq!((array.multi_az_ms, array.params.remote_round_trip_ns), (Some(1.0), Some(1_000_000)));
    assert_eq!(away.volumes(), 1, "the copy is another instance's");
    let both = Storage::parse("2xgp3:multi_az=750us").unwrap();
    assert!(both.total.spec.ends_with(",chunk=512KiB,multi_az=0.75ms"), "{}", both.total.spec);
}

#[test]
fn what_cannot_be_is_refused_with_what_can() {
    for (text, part, remedy) in [
        ("raid10:3xgp3", "even in number, 3 asked", "raid10:4xgp3 or raid10:2xgp3"),
        ("raid10:gp3", "even in number, 1 asked", "raid10:2xgp3"),
        ("0xgp3", "1 to 128 volumes, 0 asked", "gp3"),
        ("900xgp3:iops=4000", "900 asked", "128xgp3:iops=4000"),
        ("gp3:chunk=64KiB", "no chunks", "gp3"),
        ("4xgp3:chunk=96KiB", "power of two", "4xgp3:chunk=64KiB"),
        ("4xgp3:chunk=64KB", "decimal unit", "4xgp3:chunk=64KiB"),
        ("4xgp3:chunk=1KiB,iops=4000", "from 4 KiB to 64 MiB", "4xgp3:iops=4000,chunk=4KiB"),
        ("4xgp3:chunk=0", "the unit is missing", "4xgp3:chunk=4KiB"),
        ("4xgp3:chunk=64", "the unit is missing", "4xgp3:chunk=64MiB"),
        ("gp3:multi_az=1", "write a round trip", "gp3"),
        ("gp3:multi_az=3000ms", "100 ms", "gp3:multi_az=100.0ms"),
        ("gp3:multi_az=1ms,multi_az=2ms", "given twice", "gp3:multi_az=2.0ms"),
        ("4xgp3:size=10GiB,iops=20000", "IOPS per GiB", "4xgp3:size=40GiB,iops=20000 or 4xgp3:size=10GiB,iops=5000"),
        ("8xgp33:chunk=64KiB", "no volume type", "8xgp3:chunk=64KiB"),
    ] {
        let error = Storage::parse(text).expect_err(text);
        assert!(error.message.contains(part), "{text}: {}", error.message);
        assert_eq!(error.remedy, remedy, "{text}");
        for remedy in error.remedy.split(" or ") {
            Storage::parse(remedy).unwrap_or_else(|error| panic!("{text}: remedy {remedy}: {error}"));
        }
    }
}

#[test]
fn it_is_attached_as_it_was_written() {
    let mut instance = Instance::new(1);
    let array = Storage::parse("raid10:4xnull:chunk=64KiB,multi_az=2ms").unwrap().add_to(&mut instance);
    assert_eq!(instance.members(array).len(), 8, "four, and a copy of each");
    instance.submit(0, array, Io { id: IoId(1), op: Op::Write, offset: 0, len: 4096 });
    let mut events = Vec::new();
    instance.advance(0, &mut events);
    assert_eq!(events, [Event::Granted { id: IoId(1), done_at: 2_000_000 }]);
}

#[test]
fn the_disks_of_an_instance_are_not_behind_its_limits() {
    let disk = types().unwrap().into_iter().find(|one| one.volatile).unwrap().default_spec;
    let limits = InstanceType::parse("r6g.large").unwrap().ebs.unwrap().model;
    for spec in [disk.clone(), format!("2x{disk}")] {
        let mut instance = Instance::with_limits(1, limits);
        let storage = Storage::parse(&spec).unwrap();
        assert_eq!(storage.volumes(), 0);
        let volume = storage.add_to(&mut instance);
        instance.submit(0, volume, Io { id: IoId(1), op: Op::Write, offset: 0, len: 4096 });
        instance.advance(1_000_000_000, &mut Vec::new());
        assert_eq!(instance.counters(volume).write_ops, 1);
        assert_eq!(instance.instance_counters().unwrap().ops, 0, "{spec}");
    }
}

proptest! {
    #[test]
    fn the_canonical_form_means_the_same(
        raid10 in any::<bool>(), pairs in 1u64..10, chunk in 0u32..8, us in prop::option::of(1u64..100_000),
    ) {
        let level = if raid10 { "raid10:" } else { "" };
        let away = us.map(|us| format!(",multi_az={us}us")).unwrap_or_default();
        let text = format!("{level}{}xgp3:iops=4000,chunk={}KiB{away}", 2 * pairs, 4u64 << chunk);
        let once = Storage::parse(&text).unwrap();
        let twice = Storage::parse(&once.total.spec).unwrap();
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn nothing_that_is_written_panics(text in "(raid10:|raid0:|)[0-9]{0,3}x?(gp3|null|io2bx|zz)(:[a-z0-9=.,_ ]{0,30})?") {
        let _ = Storage::parse(&text);
    }
}
