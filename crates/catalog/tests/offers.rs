//! What could be bought instead, and the prices behind a price.

use pgdyno_catalog::{Prices, Storage, beside};

const STEPS: [f64; 4] = [1.5, 2.0, 4.0, 8.0];

fn specs(of: &str) -> Vec<String> {
    beside(of, &STEPS).unwrap().into_iter().map(|storage| storage.total.spec).collect()
}

fn prices(of: &str) -> Prices {
    Storage::parse(of).unwrap().total.prices.unwrap()
}

#[test]
fn of_the_same_type_more_of_what_can_be_chosen_is_offered() {
    let found = specs("gp3:size=100GiB");
    for spec in [
        "gp3:size=100GiB,iops=4500,throughput=125",
        "gp3:size=100GiB,iops=3000,throughput=188",
        "gp3:size=100GiB,iops=24000,throughput=1000",
    ] {
        assert!(found.iter().any(|one| one == spec), "{spec} in {found:?}");
    }
    assert!(!found.iter().any(|spec| spec.contains("size=150GiB")), "its limits do not follow from its size");
}

#[test]
fn where_limits_follow_from_the_size_more_gib_are_offered_in_whole_ones() {
    assert!(specs("gp2:size=100GiB").contains(&"gp2:size=150GiB".to_owned()));
    assert!(specs("gp2:size=1TiB").contains(&"gp2:size=1536GiB".to_owned()), "a half more of 1 TiB is not 2 TiB");
}

#[test]
fn other_types_of_the_same_provider_are_offered_and_only_those_for_sale() {
    let types = |of: &str| -> Vec<String> {
        let mut names: Vec<_> = specs(of).iter().map(|spec| spec.split(':').next().unwrap().to_owned()).collect();
        names.dedup();
        names
    };
    assert_eq!(types("gp3"), ["gp3", "io2bx", "gp2", "io1"], "st1 and sc1 begin at 125 GiB");
    assert_eq!(types("gp3:size=200GiB"), ["gp3", "io2bx", "gp2", "io1", "st1", "sc1"]);
    assert!(types("rds-gp3").iter().all(|name| name.starts_with("rds-")));
    assert!(specs("null").is_empty() && specs("instance-store").is_empty() && specs("twin:disk.toml").is_empty());
    assert!(specs("gp3:init=lazy").is_empty(), "another one would wait for its blocks, too");
    assert_eq!(specs("gp3:init=fsr"), specs("gp3"));
    assert_eq!(specs("gp3:degraded=promise"), specs("gp3"));
}

#[test]
fn members_of_an_array_grow_together_and_what_begins_with_few_credits_is_offered_with_all() {
    assert!(specs("2xgp3").contains(&"2xgp3:size=100GiB,iops=6000,throughput=125,chunk=512KiB".to_owned()));
    assert!(!specs("gp2:credits=0").iter().any(|spec| spec.contains("credits")));
}

#[test]
fn a_refused_specification_has_no_offers_and_says_why() {
    assert!(beside("gp3:iops=1", &STEPS).unwrap_err().message.contains("IOPS"));
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
