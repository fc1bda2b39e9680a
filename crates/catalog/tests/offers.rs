//! The cheapest volume of a type for a need, and the prices behind a price.

use pgdyno_catalog::{Need, Prices, Resolved, Storage, cheapest, types};
use pgdyno_volume::VolumeParams;

const MIB: f64 = 1_048_576.0;

fn need(volume_type: &str, gib: u64, ops_per_s: f64, mib_per_s: f64) -> Need {
    Need { volume_type: volume_type.to_owned(), least_bytes: gib << 30, ops_per_s, bytes_per_s: mib_per_s * MIB }
}

fn spec(volume_type: &str, gib: u64, ops_per_s: f64, mib_per_s: f64) -> Option<String> {
    cheapest(&need(volume_type, gib, ops_per_s, mib_per_s)).unwrap().map(|volume| volume.spec)
}

fn prices(of: &str) -> Prices {
    Storage::parse(of).unwrap().total.prices.unwrap()
}

#[test]
fn the_size_grows_where_that_is_how_more_is_had() {
    for (volume_type, gib, ops, mib, wanted) in [
        // RDS gp3 has no choice below 400 GiB, and four times as much from there on.
        ("rds-gp3", 200, 3_000.0, 125.0, "rds-gp3:size=200GiB,iops=3000,throughput=125"),
        ("rds-gp3", 200, 3_001.0, 10.0, "rds-gp3:size=400GiB,iops=12000,throughput=500"),
        ("rds-gp3", 20, 1_000.0, 126.0, "rds-gp3:size=400GiB,iops=12000,throughput=500"),
        // 500 IOPS per GiB.
        ("gp3", 6, 4_320.0, 20.0, "gp3:size=9GiB,iops=4320,throughput=125"),
        // 0.25 MiB/s per IOPS.
        ("gp3", 100, 100.0, 1_000.0, "gp3:size=100GiB,iops=4000,throughput=1000"),
        // 3 IOPS per GiB, without credits.
        ("gp2", 10, 301.0, 10.0, "gp2:size=101GiB"),
        // 250 MiB/s only above 170 GiB.
        ("gp2", 10, 301.0, 129.0, "gp2:size=171GiB"),
        // 40 MiB/s per TiB.
        ("st1", 10, 1.0, 39.0, "st1:size=999GiB"),
        // Throughput follows from the IOPS: 0.256 MiB/s each.
        ("io2bx", 4, 100.0, 256.0, "io2bx:size=4GiB,iops=1000"),
    ] {
        assert_eq!(
            spec(volume_type, gib, ops, mib).as_deref(),
            Some(wanted),
            "{volume_type} of {gib} GiB, {ops}, {mib}"
        );
    }
    assert_eq!(spec("gp3", 100, 80_001.0, 1.0), None, "more than there is");
    assert_eq!(spec("gp2", 16_385, 1.0, 1.0), None, "larger than there is");
    assert!(cheapest(&need("gp33", 1, 1.0, 1.0)).unwrap_err().remedy.contains("gp3"));
}

/// What a step further in any direction brings is dearer, or does not carry it: a slow look at every neighbour of what is chosen.
#[test]
fn nothing_cheaper_of_the_type_carries_it() {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut drawn = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for one in types().unwrap().iter().filter(|one| one.default_usd_per_month.is_some()) {
        for _ in 0..12 {
            let (gib, ops, mib) = (1 + drawn(600), (1 + drawn(20_000)) as f64, (1 + drawn(700)) as f64);
            let wanted = need(&one.volume_type, gib, ops, mib);
            let found = cheapest(&wanted).unwrap();
            if let Some(volume) = &found {
                let resolved = Resolved::parse(&volume.spec).unwrap();
                assert!(holds(&resolved, &wanted), "{} for {wanted:?}", volume.spec);
                assert_eq!((&resolved.title, resolved.usd_per_month), (&volume.title, volume.usd_per_month));
                assert_eq!(rates(resolved.params()), volume.params.sustained(), "{}", volume.spec);
            }
            let price = found.as_ref().and_then(|volume| volume.usd_per_month).unwrap_or(f64::INFINITY);
            for other in enumerated(one, gib, ops, mib) {
                let cheaper = other.usd_per_month.unwrap() < price - 0.005;
                assert!(!(cheaper && holds(&other, &wanted)), "{} beats {found:?} for {wanted:?}", other.spec);
            }
        }
    }
}

/// Tokens and bytes each second without credits.
fn rates(params: &VolumeParams) -> (Option<u64>, Option<u64>) {
    let (limit, credit) = (params.iops_limit.as_ref(), params.iops_credit.as_ref());
    let ops = credit.map(|one| one.rate_per_s).or(limit.map(|one| one.rate_per_s));
    let (limit, credit) = (params.throughput_limit.as_ref(), params.throughput_credit.as_ref());
    (ops, credit.map(|one| one.rate_per_s).or(limit.map(|one| one.rate_per_s)))
}

fn holds(volume: &Resolved, wanted: &Need) -> bool {
    let (ops, bytes) = rates(volume.params());
    volume.size_bytes >= wanted.least_bytes
        && ops.is_none_or(|ops| ops as f64 >= wanted.ops_per_s)
        && bytes.is_none_or(|bytes| bytes as f64 >= wanted.bytes_per_s)
}

/// Every combination of some sizes, IOPS and throughputs that the rules allow, the needed ones and the ends of each range among them.
fn enumerated(one: &pgdyno_catalog::TypeSummary, gib: u64, ops: f64, mib: f64) -> Vec<Resolved> {
    let chosen = |key: &str| one.keys.contains(&key);
    let sizes = [gib, gib + 1, gib * 2, 20, 40, 100, 171, 200, 334, 400, 800, 1_000, 2_000, 5_334, 16_384];
    let iops: Vec<String> = if chosen("iops") {
        [ops, mib / 0.25, mib / 0.256, 100.0, 1_000.0, 3_000.0, 12_000.0, 20_000.0]
            .iter()
            .map(|iops| format!(",iops={}", iops.ceil()))
            .collect()
    } else {
        vec![String::new()]
    };
    let throughputs: Vec<String> = if chosen("throughput") {
        [mib, 125.0, 140.0, 500.0].iter().map(|mib| format!(",throughput={}", mib.ceil())).collect()
    } else {
        vec![String::new()]
    };
    let mut all = Vec::new();
    for size in sizes.into_iter().filter(|size| *size >= gib) {
        for iops in &iops {
            for throughput in &throughputs {
                all.extend(Resolved::parse(&format!("{}:size={size}GiB{iops}{throughput}", one.volume_type)).ok());
            }
        }
    }
    all
}

/// Cents are rounded for each member, so an array may be off by half a cent for each.
#[test]
fn the_monthly_price_is_made_of_the_prices() {
    for spec in [
        "gp3:size=500GiB,iops=9000,throughput=500",
        "io2bx:size=1TiB,iops=100000",
        "gp2:size=33GiB",
        "4xgp3:size=100GiB,iops=5000",
        "raid10:4xio2bx:size=100GiB,iops=40000",
        "gp3:iops=6000,multi_az=1.0ms",
    ] {
        let total = Storage::parse(spec).unwrap().total;
        let prices = prices(spec);
        let sum = |tiers: &[pgdyno_catalog::PriceTier], amount: f64| -> f64 {
            let ends = tiers.iter().skip(1).map(|tier| tier.above as f64).chain([f64::INFINITY]);
            tiers.iter().zip(ends).map(|(tier, end)| (amount.min(end) - tier.above as f64).max(0.0) * tier.usd).sum()
        };
        let usd = total.size_bytes as f64 / f64::from(1 << 30) * prices.gib_month_usd
            + sum(&prices.iops_month_usd, total.limits.iops.unwrap_or(0) as f64)
            + sum(&prices.mib_per_s_month_usd, total.limits.throughput_mib_per_s.unwrap_or(0.0));
        assert!((usd - total.usd_per_month.unwrap()).abs() < 0.03, "{spec}: {usd} for {:?}", total.usd_per_month);
    }
}

#[test]
fn one_more_gib_costs_what_the_catalogue_says_and_raises_limits_where_they_follow() {
    for (spec, usd, follows) in [
        ("gp3", 0.08, false),
        ("io2bx:size=64TiB", 0.125, false),
        ("raid10:4xgp3", 0.16, false),
        ("gp2:size=100GiB", 0.10, true),
        ("gp2:size=9TiB", 0.10, false),
    ] {
        assert!((prices(spec).gib_month_usd - usd).abs() < 1e-12, "{spec}");
        assert_eq!(prices(spec).limits_follow_size, follows, "{spec}");
    }
    assert_eq!(Storage::parse("null").unwrap().total.prices, None);
    assert_eq!(Storage::parse("gp3:service_us=100").unwrap().total.prices, None, "nobody sells it");
}
