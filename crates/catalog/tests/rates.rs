//! Limits by size and by IOPS against what providers publish, figure by figure.

use pgdyno_catalog::Resolved;

fn resolved(text: &str) -> Resolved {
    Resolved::parse(text).unwrap_or_else(|error| panic!("{text}: {error:?}"))
}

/// The user guide's table of gp2: baseline, burst, seconds of burst from a full bucket, seconds to fill it.
#[test]
fn gp2_is_the_guides_table() {
    for (gib, baseline, burst_s, refill_s) in [
        (1, 100, 1_862, 54_000),
        (33, 100, 1_862, 54_000),
        (100, 300, 2_000, 18_000),
        (334, 1_002, 2_703, 5_389),
        (750, 2_250, 7_200, 2_400),
    ] {
        let gp2 = resolved(&format!("gp2:size={gib}GiB"));
        let burst = gp2.burst.unwrap();
        let (rate, credits) = (burst.iops.unwrap(), burst.io_credits.unwrap());
        assert_eq!((gp2.limits.iops, rate, credits), (Some(baseline), 3_000, 5_400_000), "{gib} GiB");
        assert_eq!(burst.io_credits_initial, Some(5_400_000));
        // The guide rounds up, and down.
        assert!((credits as f64 / (rate - baseline) as f64 - f64::from(burst_s)).abs() < 1.0, "{gib} GiB");
        assert!((credits as f64 / baseline as f64 - f64::from(refill_s)).abs() < 1.0, "{gib} GiB");
    }
    for (spec, iops, mib_per_s) in [
        ("gp2:size=170GiB", 510, 128.0),
        ("gp2:size=171GiB", 513, 250.0),
        ("gp2:size=1000GiB", 3_000, 250.0),
        ("gp2:size=5333GiB", 15_999, 250.0),
        ("gp2:size=5334GiB", 16_000, 250.0),
        ("gp2:size=16TiB", 16_000, 250.0),
        ("gp2-2018:size=214GiB", 642, 160.0),
        ("gp2-2018:size=3334GiB", 10_000, 160.0),
        ("gp2-2014:size=1TiB", 3_072, 128.0),
        ("gp2-2014:size=10GiB", 30, 128.0),
    ] {
        let volume = resolved(spec);
        assert_eq!((volume.limits.iops, volume.limits.throughput_mib_per_s), (Some(iops), Some(mib_per_s)), "{spec}");
    }
    assert_eq!(resolved("gp2:size=1000GiB").burst, None, "a burst that is the baseline is none");
}

#[test]
fn io1_and_io2_before_block_express_have_a_quarter_mib_for_each_iops_and_above_32_000_a_sixty_fourth() {
    for (iops, mib_per_s, unit_kib) in [
        (100, 25.0, 256),
        (2_000, 500.0, 256),
        (32_000, 500.0, 256),
        (32_001, 500.016, 16),
        (48_000, 750.0, 16),
        (64_000, 1_000.0, 16),
    ] {
        for name in ["io1", "io2-2023"] {
            let volume = resolved(&format!("{name}:size=2TiB,iops={iops}"));
            assert_eq!(volume.limits.throughput_mib_per_s, Some(mib_per_s), "{name} {iops}");
            assert_eq!(volume.accounting_unit_kib, unit_kib);
            assert_eq!(volume.params.accounting.unit_bytes, unit_kib << 10);
        }
    }
    assert_eq!(resolved("io1:size=1TiB,iops=10000").usd_per_month, Some(128.0 + 650.0));
    let old = resolved("io1-2013:size=400GiB,iops=4000");
    assert_eq!((old.accounting_unit_kib, old.limits.throughput_mib_per_s, old.usd_per_month), (16, None, None));
}

/// The user guide's tables of st1 and sc1, in TiB and MiB/s.
#[test]
fn hard_disk_volumes_are_the_guides_tables() {
    for (name, gib, base, burst) in [
        ("st1", 128, 5.0, Some(31.25)),
        ("st1", 512, 20.0, Some(125.0)),
        ("st1", 1_024, 40.0, Some(250.0)),
        ("st1", 2_048, 80.0, Some(500.0)),
        ("st1", 12_800, 500.0, None),
        ("st1", 16_384, 500.0, None),
        ("sc1", 128, 1.5, Some(10.0)),
        ("sc1", 3_200, 37.5, Some(250.0)),
        ("sc1", 16_384, 192.0, Some(250.0)),
    ] {
        let volume = resolved(&format!("{name}:size={gib}GiB"));
        assert_eq!(volume.limits.throughput_mib_per_s, Some(base), "{name} {gib} GiB");
        assert_eq!(volume.burst.and_then(|burst| burst.throughput_mib_per_s), burst, "{name} {gib} GiB");
        if let Some(burst) = volume.burst {
            assert_eq!(burst.throughput_credits_bytes, Some(gib << 30), "1 TiB for each TiB");
        }
        assert_eq!((volume.limits.iops, volume.accounting_unit_kib), (None, 1_024));
    }
    assert_eq!((resolved("st1").usd_per_month, resolved("sc1").usd_per_month), (Some(46.08), Some(15.36)));
}

#[test]
fn rds_makes_four_volumes_of_400_gib() {
    for (spec, iops, mib_per_s, burst) in [
        ("rds-gp2:size=20GiB", 100, 128.0, Some(3_000)),
        ("rds-gp2:size=399GiB", 1_197, 250.0, Some(3_000)),
        ("rds-gp2:size=400GiB", 1_200, 500.0, Some(12_000)),
        ("rds-gp2:size=1335GiB", 4_005, 1_000.0, Some(12_000)),
        ("rds-gp2:size=4000GiB", 12_000, 1_000.0, None),
        ("rds-gp2:size=64TiB", 64_000, 1_000.0, None),
        ("rds-gp3:size=399GiB", 3_000, 125.0, None),
        ("rds-gp3:size=400GiB", 12_000, 500.0, None),
        ("rds-gp3:size=400GiB,iops=64000,throughput=4000", 64_000, 4_000.0, None),
        ("rds-io1:size=399GiB,iops=19950", 19_950, 500.0, None),
        ("rds-io2bx:size=1TiB,iops=256000", 256_000, 4_000.0, None),
    ] {
        let volume = resolved(spec);
        assert_eq!((volume.limits.iops, volume.limits.throughput_mib_per_s), (Some(iops), Some(mib_per_s)), "{spec}");
        assert_eq!(volume.burst.and_then(|burst| burst.iops), burst, "{spec}");
    }
    for illegal in ["rds-gp3:size=399GiB,iops=3001", "rds-gp3:size=400GiB,iops=3000", "rds-gp3:size=19GiB"] {
        Resolved::parse(illegal).expect_err(illegal);
    }
}

#[test]
fn other_clouds_are_as_published() {
    for (spec, iops, mib_per_s) in [
        ("azure-premium-v1:size=32GiB", 120, 24.0),
        ("azure-premium-v1:size=33GiB", 240, 48.0),
        ("azure-premium-v1:size=8TiB", 16_000, 477.0),
        ("azure-premium-v2:size=160GiB,iops=80000,throughput=1907", 80_000, 1_907.0),
        ("azure-ultra:size=400GiB,iops=400000,throughput=9536", 400_000, 9_536.0),
        ("gcp-pd-balanced:size=1000GiB", 9_000, 420.0),
        ("gcp-pd-ssd:size=100GiB", 9_000, 288.0),
        ("gcp-hyperdisk-balanced:size=1TiB,iops=160000,throughput=2400", 160_000, 2_400.0),
        ("gcp-hyperdisk-extreme:size=64GiB,iops=20000", 20_000, 5_000.0),
        ("huawei-essd:size=1000GiB", 51_800, 620.0),
        ("huawei-essd:size=32TiB", 128_000, 1_000.0),
        ("huawei-sas:size=100GiB", 2_600, 115.0),
    ] {
        let volume = resolved(spec);
        assert_eq!((volume.limits.iops, volume.limits.throughput_mib_per_s), (Some(iops), Some(mib_per_s)), "{spec}");
    }
    let standard = resolved("gcp-pd-standard:size=1000GiB");
    assert_eq!((standard.limits.iops, standard.limits.write_iops), (Some(750), Some(1_500)));
    let p10 = resolved("azure-premium-v1:size=128GiB").burst.unwrap();
    assert_eq!((p10.iops, p10.throughput_mib_per_s), (Some(3_500), Some(162.0)));
    assert_eq!(p10.io_credits, Some(3_000 * 1_800), "half an hour");
    assert_eq!(resolved("azure-premium-v1:size=1TiB").burst, None);
}

#[test]
fn an_instance_store_has_what_its_type_has_and_ends_with_it() {
    let store = resolved("instance-store:instance=i3.16xlarge");
    assert_eq!((store.limits.iops, store.limits.write_iops), (Some(3_300_000), Some(1_440_000)));
    assert_eq!(store.size_bytes, 8 * 1_900_000_000_000 / (1 << 20) * (1 << 20));
    assert!(store.volatile && store.usd_per_month.is_none() && store.durability.is_none());
    assert!(!resolved("gp3").volatile);
}
