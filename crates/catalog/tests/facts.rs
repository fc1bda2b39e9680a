//! The catalogue against what is published, figure by figure.

use pgdyno_catalog::{Resolved, Status, model_hash, types};
use pgdyno_volume::Order;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

fn resolved(text: &str) -> Resolved {
    Resolved::parse(text).unwrap_or_else(|error| panic!("{text}: {error:?}"))
}

/// Monthly totals of instance and volume that PlanetScale states (14 October 2025) less 730 h of r7i.2xlarge at
/// 0.5292 USD; and the tiers of io2 by hand.
#[test]
fn prices_reproduce_published_totals() {
    let instance = 0.5292 * 730.0;
    for (text, total) in [("gp3:size=700GiB,iops=10000,throughput=500", 492.32), ("io2bx:size=700GiB", 1513.82)] {
        let usd = resolved(text).usd_per_month.unwrap() + instance;
        assert!((usd - total).abs() < 0.005, "{text}: {usd}");
    }
    for (text, usd) in [
        ("gp3", 8.0),
        ("gp3:iops=3001", 8.01),
        ("io2bx:iops=32000", 12.5 + 2080.0),
        ("io2bx:iops=64000", 12.5 + 2080.0 + 1472.0),
        ("io2bx:size=256GiB,iops=256000", 32.0 + 2080.0 + 1472.0 + 6144.0),
    ] {
        assert_eq!(resolved(text).usd_per_month, Some(usd), "{text}");
        assert_eq!(resolved(text).price_region.as_deref(), Some("us-east-1"));
    }
    assert_eq!(resolved("null").usd_per_month, None);
    assert_eq!(resolved("gp3:service_us=500").usd_per_month, None, "nobody sells it");
}

/// Each limit at its edge: the figure is accepted, the next one is not.
#[test]
fn limits_end_where_the_provider_says() {
    for (legal, illegal) in [
        ("gp3:size=1GiB", "gp3:size=1023MiB"),
        ("gp3:size=64TiB", "gp3:size=67108865MiB"),
        ("gp3:size=160GiB,iops=80000", "gp3:size=159GiB,iops=80000"),
        ("gp3:size=1TiB,iops=80000", "gp3:size=1TiB,iops=80001"),
        ("gp3:size=1GiB,iops=3000", "gp3:size=1GiB,iops=3001"),
        ("gp3:size=16GiB,iops=8000,throughput=2000", "gp3:size=16GiB,iops=7999,throughput=2000"),
        ("gp3:iops=20000,throughput=2000", "gp3:iops=20000,throughput=2001"),
        ("io2bx:size=4GiB", "io2bx:size=4095MiB"),
        ("io2bx:size=256GiB,iops=256000", "io2bx:size=255GiB,iops=256000"),
        ("io2bx:size=1TiB,iops=256000", "io2bx:size=1TiB,iops=256001"),
        ("io2bx:iops=100", "io2bx:iops=99"),
    ] {
        resolved(legal);
        Resolved::parse(illegal).expect_err(illegal);
    }
}

#[test]
fn buckets_hold_one_second_and_units_are_256_kib() {
    let gp3 = resolved("gp3:iops=6000,throughput=250");
    let (iops, throughput) = (gp3.params().iops_limit.unwrap(), gp3.params().throughput_limit.unwrap());
    assert_eq!((iops.rate_per_s, iops.depth_ns), (6000, 1_000_000_000));
    assert_eq!((throughput.rate_per_s, throughput.depth_ns), (250 * MIB, 1_000_000_000));
    assert_eq!(gp3.params().accounting.unit_bytes, 256 << 10);
    assert!(gp3.params().accounting.merge_sequential);
    assert_eq!(gp3.params().size_bytes, 100 * GIB);
    assert_eq!(gp3.params().order, Order::Gamma);
    assert_eq!((gp3.accounting_unit_kib, gp3.durability.as_deref()), (256, Some("99.8-99.9 %")));
}

#[test]
fn io2_throughput_follows_from_its_iops() {
    for (text, mib_per_s, bytes_per_s) in [
        ("io2bx:iops=100", 25.6, 26_843_545),
        ("io2bx:iops=1000", 256.0, 256 * MIB),
        ("io2bx:iops=15625", 4000.0, 4000 * MIB),
        ("io2bx:iops=64000", 4000.0, 4000 * MIB),
    ] {
        let volume = resolved(text);
        assert_eq!(volume.limits.throughput_mib_per_s, Some(mib_per_s), "{text}");
        assert_eq!(volume.params().throughput_limit.unwrap().rate_per_s, bytes_per_s, "{text}");
    }
}

#[test]
fn null_limits_nothing_and_takes_no_time() {
    let null = resolved("null");
    assert_eq!((null.params().iops_limit, null.params().throughput_limit), (None, None));
    for table in [&null.params().service_time.read, &null.params().service_time.write] {
        assert!(table.rows.iter().flat_map(|row| &row.service_ns).all(|&ns| ns == 0));
    }
}

#[test]
fn resolved_volumes_survive_json() {
    for text in ["null", "gp3", "gp3:size=1537MiB", "io2bx:iops=100"] {
        let volume = resolved(text);
        let json = serde_json::to_value(&volume).unwrap();
        assert_eq!(serde_json::from_value::<Resolved>(json).unwrap(), volume, "{text}");
    }
    let json = serde_json::to_value(resolved("gp3")).unwrap();
    assert_eq!(json["type"], "gp3");
    assert_eq!(json["limits"]["throughput_mib_per_s"].to_string(), "125");
    assert_eq!(serde_json::to_value(resolved("null")).unwrap()["limits"]["iops"], serde_json::Value::Null);
}

#[test]
fn the_model_hash_moves_with_every_parameter_and_with_nothing_else() {
    let texts = [
        "null",
        "gp3",
        "gp3:size=101GiB",
        "gp3:iops=3001",
        "gp3:throughput=126",
        "gp3:order=fifo",
        "gp3:bucket_ms=9",
        "io2bx",
    ];
    let hashes: Vec<u64> = texts.iter().map(|text| resolved(text).model_hash()).collect();
    for (i, hash) in hashes.iter().enumerate() {
        assert!(!hashes[..i].contains(hash), "{} has the hash of another", texts[i]);
        assert_eq!(resolved(texts[i]).model_hash, format!("{hash:016x}"));
    }
    assert_eq!(resolved("gp3").model_hash(), resolved("GP3:order=gamma,size=102400MiB").model_hash());
    let mut slower = resolved("gp3").params;
    slower.service_time.write.rows[2].service_ns[3] += 1;
    assert_ne!(model_hash(&slower), resolved("gp3").model_hash());
}

#[test]
fn types_say_what_can_be_had_and_where_that_is_written() {
    let types = types().unwrap();
    let names: Vec<&str> = types.iter().map(|one| one.volume_type.as_str()).collect();
    assert_eq!(&names[..8], ["null", "gp3", "io2bx", "gp2", "io1", "st1", "sc1", "instance-store"]);
    for one in &types {
        assert_eq!(resolved(&one.volume_type).spec, one.default_spec);
        assert!(one.aliases.keys().all(|alias| resolved(alias).volume_type == one.volume_type));
        assert!(!one.sources.is_empty() && !one.provider.is_empty());
        assert!(one.sources.iter().all(|used| used.date.len() == "2026-11-21".len()));
        let chosen = |key: &str| one.keys.contains(&key);
        assert_eq!(chosen("iops"), one.iops.is_some_and(|iops| iops.default.is_some()), "{}", one.volume_type);
        assert_eq!(chosen("instance"), !one.instances.is_empty());
        assert!(one.until.is_none() || one.default_usd_per_month.is_none(), "what is past is not sold");
    }
    let named = |name: &str| types.iter().find(|one| one.volume_type == name).unwrap();
    assert_eq!(named("io2bx").keys, ["size", "iops", "init", "degraded", "order", "bucket_ms", "service_us"]);
    assert_eq!(named("gp2").keys, ["size", "credits", "init", "degraded", "order", "bucket_ms", "service_us"]);
    let gp2 = named("gp2");
    assert_eq!(gp2.iops.map(|iops| (iops.minimum, iops.maximum)), Some((100, 16_000)));
    assert_eq!((gp2.burst_iops_max, gp2.default_usd_per_month), (Some(3_000), Some(10.0)));
    assert_eq!(named("st1").burst_throughput_mib_per_s_max, Some(500));
    let store = named("instance-store");
    assert!(store.volatile && store.instances.contains(&"i4i.32xlarge".to_owned()));
    assert_eq!(store.write_iops.map(|iops| (iops.minimum, iops.maximum)), Some((15_000, 4_160_000)));
    let remembered = |used: &&pgdyno_catalog::SourceUse| used.facts.contains_key(&Status::FromMemory);
    assert_eq!(named("io2bx").sources.iter().filter(remembered).count(), 1, "the third price tier has no source");
}
