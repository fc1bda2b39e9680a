//! Instance types against what the provider states, and what is answered to names and figures that are none.

use pgdyno_catalog::{InstanceType, instance_types};
use pgdyno_volume::BURST_S;

const GIB: u64 = 1 << 30;

/// Rows of the EC2 user guide's table of EBS-optimized instances, in its decimal MB/s.
#[test]
fn types_have_their_published_figures() {
    for (name, vcpus, gib, mb_per_s, iops) in [
        ("r5b.24xlarge", 96, 768, (7_500.0, 7_500.0), (260_000, 260_000)),
        ("m5.large", 2, 8, (81.25, 593.75), (3_600, 18_750)),
        ("c5.4xlarge", 16, 32, (593.75, 593.75), (20_000, 20_000)),
        ("r6g.large", 2, 16, (78.75, 593.75), (3_600, 20_000)),
    ] {
        let found = InstanceType::parse(name).unwrap();
        assert_eq!((found.vcpus, found.memory_bytes), (vcpus, gib * GIB), "{name}");
        let ebs = found.ebs.unwrap();
        assert_eq!((ebs.baseline_iops, ebs.maximum_iops), iops, "{name}");
        for (mib, mb) in [(ebs.baseline_mib_per_s, mb_per_s.0), (ebs.maximum_mib_per_s, mb_per_s.1)] {
            assert!((mib * 1.048576 - mb).abs() < 0.001, "{name}: {mib} MiB/s, {mb} MB/s");
        }
        assert_eq!(ebs.burst, mb_per_s.0 < mb_per_s.1, "{name}");
        assert!(ebs.always && found.source.is_some() && found.date.is_some());
    }
    assert_eq!(InstanceType::parse("r7i.2xlarge").unwrap().usd_per_hour, Some(0.5292));
    assert_eq!(InstanceType::parse("r6g.large").unwrap().attachments, Some(27));
    assert_eq!(InstanceType::parse("t2.micro").unwrap().ebs, None, "it shares the network's bandwidth");
    assert!(!InstanceType::parse("c1.xlarge").unwrap().ebs.unwrap().always);
}

#[test]
fn every_type_is_found_by_its_name_in_any_case() {
    let all = instance_types(None).unwrap();
    assert_eq!(all.len(), 1_395);
    for one in &all {
        assert_eq!(&InstanceType::parse(&one.instance.to_ascii_uppercase()).unwrap(), one);
        assert_eq!(one.usd_per_hour.is_some(), one.price_date.is_some());
    }
    assert_eq!(all.iter().filter(|one| one.usd_per_hour.is_some()).count(), 1_340);
    assert_eq!(all.iter().filter(|one| one.ebs.is_some_and(|ebs| ebs.burst)).count(), 543);
}

/// The provider promises 30 minutes at the maximum at least once in 24 hours: an idle instance should have saved that up
/// by then, and does if it saves at its baseline, except for the two smallest of one family. This is what makes that law
/// of refill a likely one.
#[test]
fn a_day_without_use_fills_nearly_every_reserve() {
    let mut longer = Vec::new();
    for one in instance_types(None).unwrap() {
        let Some(ebs) = one.ebs else { continue };
        for rate in [ebs.model.iops, ebs.model.throughput] {
            assert!(0 < rate.baseline_per_s && rate.baseline_per_s <= rate.maximum_per_s, "{}", one.instance);
            let above = (rate.maximum_per_s - rate.baseline_per_s) as f64;
            let fills_in_s = BURST_S as f64 * above / rate.baseline_per_s as f64;
            if fills_in_s > 86_400.0 && !longer.contains(&one.instance) {
                longer.push(one.instance.clone());
            }
        }
    }
    assert_eq!(longer, ["t8i.nano", "t8i.micro"]);
}

#[test]
fn the_models_limits_are_the_providers_decimal_ones() {
    let limits = InstanceType::parse("r6g.large").unwrap().ebs.unwrap().model;
    assert_eq!((limits.iops.baseline_per_s, limits.iops.maximum_per_s), (3_600, 20_000));
    assert_eq!((limits.throughput.baseline_per_s, limits.throughput.maximum_per_s), (78_750_000, 593_750_000));
}

/// Rows of the guides of May and December 2018.
#[test]
fn a_type_may_have_the_limits_of_an_earlier_month() {
    for (name, mb_per_s, iops) in [
        ("m5.xlarge@2018-05", (100.0, 265.0), (6_000, 16_000)),
        ("m5.xlarge@2018-12", (106.25, 437.5), (6_000, 18_750)),
        ("r5.4xlarge@2018-12", (437.5, 437.5), (18_750, 18_750)),
        ("c4.large@2018-05", (62.5, 62.5), (4_000, 4_000)),
        ("m1.xlarge@2018-12", (125.0, 125.0), (8_000, 8_000)),
        ("m2.2xlarge@2018-12", (62.5, 62.5), (4_000, 4_000)),
    ] {
        let then = InstanceType::parse(name).unwrap();
        let limits = then.ebs.unwrap();
        assert_eq!((limits.baseline_iops, limits.maximum_iops), iops, "{name}");
        let bytes = (limits.model.throughput.baseline_per_s, limits.model.throughput.maximum_per_s);
        assert_eq!(bytes, ((mb_per_s.0 * 1e6) as u64, (mb_per_s.1 * 1e6) as u64), "{name}");
        assert!(then.date.unwrap().starts_with("2018-") && then.source.unwrap().contains("EBSOptimized.md"), "{name}");
        assert_eq!((then.instance.as_str(), then.usd_per_hour, then.price_date), (name, None, None));
        let today = InstanceType::parse(name.split_once('@').unwrap().0).unwrap();
        assert_eq!((then.vcpus, then.memory_bytes), (today.vcpus, today.memory_bytes), "{name}");
    }
    assert_eq!(InstanceType::parse(" M5.XLARGE @ 2018-12 ").unwrap().instance, "m5.xlarge@2018-12");
}

#[test]
fn a_part_of_the_name_chooses_types() {
    let names = |like: &str| -> Vec<String> {
        instance_types(Some(like)).unwrap().into_iter().map(|one| one.instance).collect()
    };
    let r6g = names("R6G.");
    assert_eq!(r6g[..4], ["r6g.medium", "r6g.large", "r6g.xlarge", "r6g.2xlarge"], "smallest first");
    assert!(names("no such").is_empty());
}

#[test]
fn a_class_of_rds_has_the_figures_of_the_type_of_its_name_and_no_price() {
    for name in ["r6g.2xlarge", "m5.xlarge", "t4g.medium", "x2iedn.32xlarge", "m5.xlarge@2018-12"] {
        let (class, ec2) = (InstanceType::parse(&format!("db.{name}")).unwrap(), InstanceType::parse(name).unwrap());
        assert_eq!(class.instance, format!("db.{name}"));
        assert_eq!(class.figures_of.as_deref(), Some(name));
        assert_eq!((class.vcpus, class.memory_bytes, class.ebs), (ec2.vcpus, ec2.memory_bytes, ec2.ebs));
        assert_eq!((class.usd_per_hour, class.attachments), (None, None), "EC2's price is not RDS's");
        assert!(class.source.unwrap().contains("EC2's"));
        assert_eq!(ec2.figures_of, None);
    }
    assert_eq!(InstanceType::parse(" DB.R6G.Large ").unwrap().instance, "db.r6g.large");
    let listed = instance_types(Some("db.r6g.")).unwrap();
    let types = instance_types(Some("r6g.")).unwrap();
    assert_eq!(listed.len(), types.len());
    assert!(listed.iter().zip(&types).all(|(class, ec2)| class.instance == format!("db.{}", ec2.instance)));
}

#[test]
fn an_instance_may_be_made_to_measure() {
    let made = InstanceType::parse("vcpus=4,memory=16GiB").unwrap();
    assert_eq!((made.vcpus, made.memory_bytes, made.ebs, made.usd_per_hour), (4, 16 * GIB, None, None));
    for text in [" Memory = 16384 MiB , VCPUS=4", "vcpus=04,memory=16gib"] {
        assert_eq!(InstanceType::parse(text).unwrap(), made, "{text}");
    }
    assert_eq!(InstanceType::parse(&made.instance).unwrap(), made);
}

#[test]
fn a_refusal_offers_what_can_be_had() {
    for (text, part, remedy) in [
        ("r6g.larg", "no instance type \"r6g.larg\"; r6g has medium, large, xlarge", "r6g.large or r6g.xlarge"),
        ("r6g.3xlarge", "r6g has medium", "r6g.xlarge or r6g.2xlarge or r6g.4xlarge"),
        ("r6g", "r6g has medium", "r6g.medium or r6g.large or r6g.xlarge"),
        ("r5bb.large", "1,395 are known", "r5b.large or r5.large or r5a.large"),
        ("", "none is given", "m7i.large or vcpus=2,memory=8GiB"),
        ("db.r6g.3xlarge", "on no type of EC2", "db.r6g.xlarge or db.r6g.2xlarge or db.r6g.4xlarge"),
        ("db.r5.large.tpc1.mem2x", "on no type of EC2", "db.r5.large"),
        ("db.postgres.enormous", "on no type of EC2", "db.m7i.large"),
        ("db.serverless", "has no fixed size", "db.m7i.large"),
        ("db.", "on no type of EC2", "db.m7i.large"),
        (
            "m5.xlarge@2019-01",
            "of m5.xlarge are on record for \"2019-01\"; known are those of 2018-05, 2018-12, and today's",
            "m5.xlarge@2018-05 or m5.xlarge@2018-12 or m5.xlarge",
        ),
        ("r5.4xlarge@2018-05", "known are those of 2018-12", "r5.4xlarge@2018-12 or r5.4xlarge"),
        ("r6g.large@2018-12", "no earlier ones are known", "r6g.large"),
        ("r6g.3xlarge@2018-12", "r6g has medium", "r6g.xlarge or r6g.2xlarge or r6g.4xlarge"),
        ("vcpus=4", "memory is missing", "vcpus=4,memory=8GiB"),
        ("memory=1GiB", "vcpus is missing", "vcpus=2,memory=1GiB"),
        ("vcpus=4,memory=16GB", "GB is a decimal unit", "vcpus=4,memory=16GiB"),
        ("vcpus=4,memory=16", "the unit is missing", "vcpus=4,memory=16GiB"),
        ("vcpus=four,memory=16GiB", "vcpus=\"four\": write a whole number", "vcpus=2,memory=8GiB"),
        ("vcpus=0,memory=16GiB", "1 to 4,096 vCPUs, 0 asked", "vcpus=1,memory=16GiB"),
        ("vcpus=5000,memory=16GiB", "5,000 asked", "vcpus=4096,memory=16GiB"),
        ("vcpus=4,memory=1TiB,vcpus=8", "vcpus is given twice", "vcpus=8,memory=1TiB"),
        ("vcpus=4,memory=1KiB", "1 MiB to 64 TiB of memory, 1 KiB asked", "vcpus=4,memory=1MiB"),
        ("vcpus=4,cpus=4", "no key \"cpus\"", "vcpus=4,memory=8GiB"),
    ] {
        let error = InstanceType::parse(text).expect_err(text);
        assert!(error.message.contains(part), "{text}: {}", error.message);
        assert_eq!(error.remedy, remedy, "{text}");
        for remedy in error.remedy.split(" or ") {
            InstanceType::parse(remedy).unwrap_or_else(|error| panic!("{text}: remedy {remedy}: {error}"));
        }
    }
}

#[test]
fn long_and_hostile_names_are_cut_and_escaped() {
    let error = InstanceType::parse(&format!("{}\u{1b}[31m", "x".repeat(10_000))).unwrap_err();
    assert!(error.message.len() < 200 && !error.message.contains('\u{1b}'), "{}", error.message);
}
