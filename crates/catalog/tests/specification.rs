//! What may be written, what it means, and what is answered to what may not.

use pgdyno_catalog::{Resolved, SpecError};

fn resolved(text: &str) -> Resolved {
    Resolved::parse(text).unwrap_or_else(|error| panic!("{text}: {error:?}"))
}

fn refused(text: &str) -> SpecError {
    Resolved::parse(text).expect_err(text)
}

#[test]
fn every_figure_is_in_the_canonical_specification() {
    for (text, spec) in [
        ("null", "null:size=100GiB"),
        ("gp3", "gp3:size=100GiB,iops=3000,throughput=125"),
        ("gp3:throughput=250,iops=6000", "gp3:size=100GiB,iops=6000,throughput=250"),
        ("gp3:size=1024GiB", "gp3:size=1TiB,iops=3000,throughput=125"),
        ("gp3:size=1536MiB", "gp3:size=1536MiB,iops=3000,throughput=125"),
        ("gp3:size=64TiB,iops=80000,throughput=2000", "gp3:size=64TiB,iops=80000,throughput=2000"),
        ("io2bx", "io2bx:size=100GiB,iops=16000"),
        ("io2bx:size=4GiB", "io2bx:size=4GiB,iops=4000"),
        ("gp3:order=gamma", "gp3:size=100GiB,iops=3000,throughput=125"),
        ("gp3:order=fifo", "gp3:size=100GiB,iops=3000,throughput=125,order=fifo"),
        ("null:order=fifo", "null:size=100GiB"),
        ("null:service_us=500,size=1GiB", "null:size=1GiB,service_us=500"),
        (
            "gp3:service_us=0,bucket_ms=0,order=fifo",
            "gp3:size=100GiB,iops=3000,throughput=125,order=fifo,bucket_ms=0,service_us=0",
        ),
        ("io2bx:size=1TiB,iops=40000", "io2bx:size=1TiB,iops=40000"),
        ("gp3:init=lazy", "gp3:size=100GiB,iops=3000,throughput=125,init=lazy"),
        ("gp3:init=LAZY_half,order=fifo", "gp3:size=100GiB,iops=3000,throughput=125,init=lazy_half,order=fifo"),
        ("io2bx:init=200", "io2bx:size=100GiB,iops=16000,init=200MiB/s"),
        ("gp3:degraded=promise", "gp3:size=100GiB,iops=3000,throughput=125,degraded=promise"),
        (
            "gp3:degraded=2.50 %,order=fifo,init=fsr",
            "gp3:size=100GiB,iops=3000,throughput=125,init=fsr,degraded=2.5%,order=fifo",
        ),
        ("gp3:init=FSR,size=16TiB", "gp3:size=16TiB,iops=3000,throughput=125,init=fsr"),
        ("gp2", "gp2:size=100GiB"),
        ("gp2:credits=40000", "gp2:size=100GiB,credits=40000"),
        ("gp2:credits=5400000", "gp2:size=100GiB"),
        ("gp2-before-2018-12:size=1TiB", "gp2-2018:size=1TiB"),
        ("st1:credits=1024GiB", "st1:size=1TiB"),
        ("st1:credits=1536MiB", "st1:size=1TiB,credits=1536MiB"),
        ("io1", "io1:size=100GiB,iops=5000"),
        ("rds-gp3", "rds-gp3:size=100GiB,iops=3000,throughput=125"),
        ("rds-gp3:size=400GiB", "rds-gp3:size=400GiB,iops=12000,throughput=500"),
        ("instance-store:size=10GiB", "instance-store:instance=i4i.large,size=10GiB"),
        ("instance-store:instance=I3.LARGE", "instance-store:instance=i3.large,size=452995MiB"),
    ] {
        assert_eq!(resolved(text).spec, spec, "{text}");
        assert_eq!(resolved(spec), resolved(text), "{text}");
    }
}

#[test]
fn case_spaces_units_and_the_alias_do_not_matter() {
    let plain = resolved("gp3:size=200GiB,iops=6000,throughput=250");
    for text in [
        "GP3:SIZE=200gib,IOPS=6000,Throughput=250",
        " gp3 : size = 200 GiB , iops=6000 , throughput=250 ",
        "gp3:size=204800MiB,iops=06000,throughput=250MiB/s",
        "gp3:size=209715200KiB,iops=6000,throughput=250 mib/s,order=GAMMA",
    ] {
        assert_eq!(resolved(text), plain, "{text}");
    }
    assert_eq!(resolved("io2:iops=20000"), resolved("io2bx:iops=20000"));
}

#[test]
fn titles_read_as_a_person_would_write_them() {
    for (text, title) in [
        ("null", "null, 100 GiB, no limits"),
        ("gp3", "gp3, 100 GiB, 3,000 IOPS, 125 MiB/s"),
        ("gp3:size=1025MiB", "gp3, 1,025 MiB, 3,000 IOPS, 125 MiB/s"),
        ("io2bx", "io2 Block Express, 100 GiB, 16,000 IOPS, 4,000 MiB/s"),
        ("null:service_us=500", "null, 100 GiB, no limits, 500 us each"),
        ("gp3:bucket_ms=50", "gp3, 100 GiB, 3,000 IOPS, 125 MiB/s, bucket of 50 ms"),
        ("gp3:order=fifo", "gp3, 100 GiB, 3,000 IOPS, 125 MiB/s, fifo order"),
        ("io2bx:iops=100", "io2 Block Express, 100 GiB, 100 IOPS, 25.6 MiB/s"),
        ("gp3:init=lazy", "gp3, 100 GiB, 3,000 IOPS, 125 MiB/s, loaded lazily"),
        ("gp3:init=200MiB/s", "gp3, 100 GiB, 3,000 IOPS, 125 MiB/s, initialized at 200 MiB/s"),
        ("gp3:degraded=promise", "gp3, 100 GiB, 3,000 IOPS, 125 MiB/s, degraded 1 % of the time"),
        ("gp3:degraded=12.5%", "gp3, 100 GiB, 3,000 IOPS, 125 MiB/s, degraded 12.5 % of the time"),
        ("gp3:init=fsr", "gp3, 100 GiB, 3,000 IOPS, 125 MiB/s, fast snapshot restore"),
        ("gp2", "gp2, 100 GiB, 300 IOPS (3,000 with credits), 128 MiB/s"),
        ("gp2:credits=40000", "gp2, 100 GiB, 300 IOPS (3,000 with credits), 128 MiB/s, 40000 credits at first"),
        ("gp2:size=1TiB", "gp2, 1 TiB, 3,072 IOPS, 250 MiB/s"),
        ("st1", "st1, 1 TiB, 40 MiB/s (250 with credits)"),
        (
            "instance-store:instance=i3.large,size=1GiB",
            "instance store, i3.large, 1 GiB, 103,125 reads/s, 35,000 writes/s",
        ),
    ] {
        assert_eq!(resolved(text).title, title);
    }
}

#[test]
fn illegal_figures_name_the_rule_and_the_nearest_legal_ones() {
    for (text, message, remedy) in [
        (
            "gp3:iops=20000,size=10GiB",
            "gp3 allows 500 IOPS per GiB: 10 GiB allows at most 5,000 IOPS, 20,000 asked",
            "gp3:size=40GiB,iops=20000 or gp3:size=10GiB,iops=5000",
        ),
        (
            "gp3:iops=80000",
            "gp3 allows 500 IOPS per GiB: 100 GiB (the default size) allows at most 50,000 IOPS, 80,000 asked",
            "gp3:size=160GiB,iops=80000 or gp3:iops=50000",
        ),
        (
            "gp3:size=4GiB,iops=4000",
            "gp3 allows 500 IOPS per GiB and 3,000 at any size: 4 GiB allows at most 3,000 IOPS, 4,000 asked",
            "gp3:size=8GiB,iops=4000 or gp3:size=4GiB,iops=3000",
        ),
        (
            "gp3:throughput=1000",
            "gp3 allows 0.25 MiB/s per IOPS: 3,000 IOPS (the default) allow at most 750 MiB/s, 1,000 asked",
            "gp3:iops=4000,throughput=1000 or gp3:throughput=750",
        ),
        // More throughput needs more IOPS, which need a larger volume: the remedy goes to the end of the chain.
        (
            "gp3:size=2GiB,throughput=2000",
            "gp3 allows 0.25 MiB/s per IOPS: 3,000 IOPS (the default) allow at most 750 MiB/s, 2,000 asked",
            "gp3:size=16GiB,iops=8000,throughput=2000 or gp3:size=2GiB,throughput=750",
        ),
        ("gp3:iops=2999", "gp3 has 3,000 to 80,000 IOPS, 2,999 asked", "gp3:iops=3000"),
        ("gp3:iops=0", "gp3 has 3,000 to 80,000 IOPS, 0 asked", "gp3:iops=3000"),
        ("gp3:throughput=124", "gp3 has 125 to 2,000 MiB/s, 124 asked", "gp3:throughput=125"),
        ("gp3:size=0GiB", "gp3 has sizes from 1 GiB to 64 TiB, 0 KiB asked", "gp3:size=1GiB"),
        ("gp3:size=65TiB", "gp3 has sizes from 1 GiB to 64 TiB, 65 TiB asked", "gp3:size=64TiB"),
        (
            "gp3:size=10485765KiB",
            "gp3: a size is a multiple of 1 MiB, 10,485,765 KiB asked",
            "gp3:size=10241MiB or gp3:size=10GiB",
        ),
        (
            "io2bx:size=4GiB,iops=5000",
            "io2bx allows 1,000 IOPS per GiB: 4 GiB allows at most 4,000 IOPS, 5,000 asked",
            "io2bx:size=5GiB,iops=5000 or io2bx:size=4GiB,iops=4000",
        ),
        (
            "io2bx:iops=1000,throughput=1000",
            "io2bx derives its throughput from its IOPS, 0.256 MiB/s each up to 4,000 MiB/s, \
             so throughput cannot be set",
            "io2bx:iops=3907 or io2bx:iops=1000",
        ),
        ("null:bucket_ms=5", "null has no limit, so it has no bucket and bucket_ms cannot be set", "null"),
        ("null:service_us=10000001", "service_us is at most 10,000,000, 10,000,001 asked", "null:service_us=10000000"),
        ("gp3:bucket_ms=86400001", "bucket_ms is at most 86,400,000, 86,400,001 asked", "gp3:bucket_ms=86400000"),
        ("null:iops=3000", "null has no limit, so iops cannot be set", "null"),
        ("null:size=1TiB,throughput=1", "null has no limit, so throughput cannot be set", "null:size=1TiB"),
        (
            "gp3:iops=99999999999999999999",
            "gp3 has 3,000 to 80,000 IOPS, more than 10^19 asked",
            "gp3:size=160GiB,iops=80000",
        ),
        (
            "gp3:size=99999999999999999TiB",
            "gp3 has sizes from 1 GiB to 64 TiB, more than 16,777,215 TiB asked",
            "gp3:size=64TiB",
        ),
    ] {
        assert_eq!(refused(text), SpecError { message: message.into(), remedy: remedy.into() }, "{text}");
    }
}

#[test]
fn what_no_snapshot_is_restored_by_is_refused() {
    for (text, message, remedy) in [
        ("gp3:degraded=60%", "a volume is degraded 0.01 % to 50 % of the time, 60 % asked", "gp3:degraded=50%"),
        ("gp3:degraded=0%", "a volume is degraded 0.01 % to 50 % of the time, 0 % asked", "gp3:degraded=0.01%"),
        (
            "azure-ultra:degraded=promise",
            "how much of the time azure-ultra has its limits for is not known, so there is no promise",
            "azure-ultra:degraded=1% or azure-ultra",
        ),
        ("null:degraded=5%", "null has no limit of which a part could be left, so degraded cannot be set", "null"),
        (
            "gp3:degraded=5",
            "gp3: degraded=5: write promise, or a share of the time such as degraded=5%",
            "gp3:degraded=5%",
        ),
        ("gp3:init=99MiB/s", "a volume is initialized at 100 to 300 MiB/s, 99 asked", "gp3:init=100MiB/s"),
        ("gp3:init=301", "a volume is initialized at 100 to 300 MiB/s, 301 asked", "gp3:init=300MiB/s"),
        (
            "gp3:size=17TiB,init=fsr",
            "fast snapshot restore is for snapshots of up to 16 TiB, and this volume has 17 TiB",
            "gp3:size=17TiB,init=300MiB/s or gp3:size=16TiB,init=fsr",
        ),
        (
            "null:init=lazy",
            "init says how a volume of AWS EBS gets the blocks of its snapshot, and null is none",
            "null",
        ),
        (
            "gp3:init=lazi",
            "gp3: init=lazi: write lazy, lazy_half, lazy_double, fsr, or a rate such as init=200MiB/s",
            "gp3:init=lazy",
        ),
    ] {
        assert_eq!(refused(text), SpecError { message: message.into(), remedy: remedy.into() }, "{text}");
    }
}

#[test]
fn what_follows_from_the_size_is_had_by_another_size() {
    for (text, message, remedy) in [
        ("gp2:iops=3000", "gp2 derives its IOPS from its size, so iops cannot be set", "gp2:size=1000GiB or gp2"),
        (
            "gp2:throughput=250",
            "gp2 derives its throughput from its size, so throughput cannot be set",
            "gp2:size=171GiB or gp2",
        ),
        (
            "gp2:credits=5400001",
            "gp2 of 100 GiB keeps at most credits=5400000, credits=5400001 asked",
            "gp2:credits=5400000",
        ),
        (
            "gp2:size=1TiB,credits=1",
            "gp2 of 1 TiB has no burst above its baseline, so credits cannot be set",
            "gp2:size=1TiB",
        ),
        ("gp3:credits=1", "gp3 has no credits of one kind, so credits cannot be set", "gp3"),
        (
            "io2-2023:size=127GiB,iops=64000",
            "io2-2023 allows 500 IOPS per GiB: 127 GiB allows at most 63,500 IOPS, 64,000 asked",
            "io2-2023:size=128GiB,iops=64000 or io2-2023:size=127GiB,iops=63500",
        ),
        (
            "io1:iops=3000,throughput=1000",
            "io1 derives its throughput from its IOPS up to 1,000 MiB/s, so throughput cannot be set",
            "io1:size=1280GiB,iops=64000 or io1:iops=3000",
        ),
        ("st1:iops=500", "st1 limits throughput and not IOPS, so iops cannot be set", "st1"),
        (
            "rds-gp3:iops=12000",
            "rds-gp3 has 3,000 to 3,000 IOPS at 100 GiB, 12,000 asked",
            "rds-gp3:size=400GiB,iops=12000 or rds-gp3:iops=3000",
        ),
        (
            "rds-gp3:throughput=500",
            "rds-gp3 has 125 to 125 MiB/s at 100 GiB, 500 asked",
            "rds-gp3:size=400GiB,throughput=500 or rds-gp3:throughput=125",
        ),
        ("instance-store:iops=1", "instance-store has what is in i4i.large, so iops cannot be set", "instance-store"),
        (
            "instance-store:instance=m5d.large,size=1TiB",
            "instance-store has sizes from 1 GiB to 71,525 MiB, 1 TiB asked",
            "instance-store:instance=m5d.large,size=71525MiB",
        ),
    ] {
        assert_eq!(refused(text), SpecError { message: message.into(), remedy: remedy.into() }, "{text}");
    }
}

#[test]
fn what_cannot_be_read_is_explained() {
    for (text, part, remedy) in [
        ("", "begins with its type", "gp3 or io2bx or gp2"),
        (":size=1GiB", "begins with its type", "gp3 or io2bx or gp2"),
        ("gp4:size=200GiB", "no volume type \"gp4\"; `pgdyno catalog volumes` lists all 30", "gp3:size=200GiB"),
        ("8xgp3", "no volume type \"8xgp3\"", "gp3 or io2bx or gp2"),
        ("postgres", "no volume type \"postgres\"", "gp3 or io2bx or gp2"),
        ("gp3:", "a key is missing", "gp3"),
        ("gp3:iops=6000,", "a key is missing", "gp3:iops=6000"),
        ("gp3:size", "\"size\" has no value", "gp3"),
        ("gp3:size=", "size=\"\": a size is a whole number with a unit", "gp3"),
        (
            "gp3:sise=10GiB",
            "no key \"sise\"; the keys are size, iops, throughput, init, degraded, order, bucket_ms, service_us",
            "gp3:size=10GiB",
        ),
        ("gp3:colour=red,iops=6000", "no key \"colour\"", "gp3:iops=6000"),
        ("gp3:size=1GiB,size=2GiB", "size is given twice", "gp3:size=2GiB or gp3:size=1GiB"),
        ("gp3:size=100", "the unit is missing", "gp3:size=100GiB"),
        ("gp3:size=100GB", "GB is a decimal unit", "gp3:size=100GiB"),
        ("gp3:size=100G", "the unit of a size is KiB, MiB, GiB or TiB", "gp3:size=100GiB"),
        ("gp3:size=1.5TiB", "whole number", "gp3"),
        ("gp3:size=-1GiB", "whole number", "gp3"),
        ("gp3:iops=NaN", "iops=NaN: write a whole number, such as iops=16000", "gp3"),
        ("gp3:iops=inf", "write a whole number", "gp3"),
        ("gp3:iops=-3000", "write a whole number", "gp3"),
        ("gp3:iops=+3000", "write a whole number", "gp3"),
        ("gp3:iops=3e3", "write a whole number", "gp3"),
        ("gp3:iops=٣٠٠٠", "write a whole number", "gp3"),
        ("gp3:throughput=250MB/s", "throughput=250MB/s: write a whole number of MiB/s", "gp3"),
        (
            "instance-store:instance=i4i.larg",
            "the storage of 23 instance types is known",
            "instance-store:instance=i4i.large",
        ),
        ("instance-store:instance=none", "such as i4i.large", "instance-store"),
        ("st1:credits=10", "credits=10: the unit is missing", "st1:credits=10GiB"),
        ("gp2:credits=full", "credits=full: write a whole number, such as credits=40000", "gp2"),
        ("gp3:order=lifo", "order=lifo: the orders are fifo and gamma", "gp3:order=fifo"),
        ("gp3:order=x,iops=3000", "order=x: the orders are fifo and gamma", "gp3:iops=3000"),
    ] {
        let error = refused(text);
        assert!(error.message.contains(part), "{text}: {}", error.message);
        assert_eq!(error.remedy, remedy, "{text}");
    }
}

#[test]
fn long_and_hostile_input_is_cut_and_escaped() {
    let error = refused(&format!("{}\u{1b}[31m", "x".repeat(10_000)));
    assert!(error.message.len() < 200, "{}", error.message);
    let error = refused("gp3:\u{1b}[31m=1");
    assert!(!error.message.contains('\u{1b}'), "{}", error.message);
}
