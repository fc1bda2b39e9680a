//! What holds for every text anyone may write.

use pgdyno_catalog::{Resolved, Storage, types};
use proptest::prelude::*;
use rustix::time::{ClockId, clock_gettime};

/// Text that looks enough like a specification to get past the first check.
fn specification_like() -> impl Strategy<Value = String> {
    let named = any::<prop::sample::Index>().prop_map(|index| {
        let all = types().unwrap();
        index.get(&all).volume_type.clone()
    });
    let name = prop_oneof![8 => named, 4 => "gp3|io2|GP3|gp4", 1 => "[a-z0-9]{0,6}"];
    let key = prop_oneof![
        "size|iops|throughput|order|bucket_ms|service_us|credits|instance|init|degraded",
        "SIZE",
        "iosp",
        "[a-z]{0,5}"
    ];
    let number = prop_oneof![
        any::<u64>().prop_map(|n| n.to_string()),
        (0..200_000_u64).prop_map(|n| n.to_string()),
        "[0-9]{0,30}"
    ];
    let unit = prop_oneof!["", "KiB", "MiB", "GiB", "TiB", "GB", "MiB/s", "[a-zA-Z/%.]{0,4}"];
    let value = prop_oneof![4 => (number, unit).prop_map(|(n, u)| n + &u), 1 => "lazy|lazy_half|fsr|200MiB/s|laz|i4i.large|i3.|NaN|-inf|fifo|gamma|gama|-1|1e9|\\PC{0,6}"];
    let item = prop_oneof![9 => (key, value).prop_map(|(k, v)| format!("{k}={v}")), 1 => "\\PC{0,6}"];
    (name, prop::collection::vec(item, 0..5)).prop_map(|(name, items)| match items.is_empty() {
        true => name,
        false => format!("{name}:{}", items.join(",")),
    })
}

/// Figures that can be bought, from rules of EBS written down a second time.
fn legal() -> impl Strategy<Value = String> {
    let gp3 = (1_u64..=65_536, 0.0..=1.0, 0.0..=1.0).prop_map(|(gib, share, fill)| {
        let iops = 3000 + (((gib * 500).clamp(3000, 80_000) - 3000) as f64 * share) as u64;
        let throughput = 125 + (((iops / 4).min(2000) - 125) as f64 * fill) as u64;
        format!("gp3:size={gib}GiB,iops={iops},throughput={throughput}")
    });
    let io2 = (4_u64..=65_536, 0.0..=1.0).prop_map(|(gib, share)| {
        let iops = 100 + (((gib * 1000).min(256_000) - 100) as f64 * share) as u64;
        format!("io2bx:size={gib}GiB,iops={iops}")
    });
    let gp2 = (1_u64..=16_384, 0_u64..=5_400_000).prop_map(|(gib, credits)| match gib {
        1_000.. => format!("gp2:size={gib}GiB"),
        _ => format!("gp2:size={gib}GiB,credits={credits}"),
    });
    let io1 = (4_u64..=16_384, 0.0..=1.0).prop_map(|(gib, share)| {
        let iops = 100 + (((gib * 50).min(64_000) - 100) as f64 * share) as u64;
        format!("io1:size={gib}GiB,iops={iops}")
    });
    let st1 = (125_u64..12_800, 0.0..=1.0)
        .prop_map(|(gib, share)| format!("st1:size={gib}GiB,credits={}GiB", (gib as f64 * share) as u64));
    prop_oneof![gp3, io2, gp2, io1, st1]
}

/// A text of up to 10 kB: parts that look like a specification, over and over.
fn long() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        specification_like(),
        "[0-9]{0,25}x|[+]|raid10:|raid|:|,|=|multi_az=|chunk=|twin:|\\PC{0,3}",
        any::<String>().prop_map(|text| text.chars().take(8).collect()),
    ];
    (prop::collection::vec(part, 1..8), 0..10_000_usize).prop_map(|(parts, len)| {
        let once = parts.concat();
        let mut text = once.repeat(len / once.len().max(1) + 1);
        while text.len() > 10_000.max(once.len()) || !text.is_char_boundary(text.len()) {
            text.pop();
        }
        text
    })
}

/// Whatever the text, the answer is a volume whose canonical form is itself, or a refusal that leads to one.
fn answer_is_sound(text: &str) -> Result<(), TestCaseError> {
    match Resolved::parse(text) {
        Ok(volume) => {
            prop_assert_eq!(&Resolved::parse(&volume.spec).unwrap(), &volume);
            prop_assert_eq!(volume.size_bytes % (1 << 20), 0);
        }
        Err(error) => {
            prop_assert!(!error.message.is_empty() && error.message.len() < 400, "{}", error.message);
            prop_assert!(!error.message.chars().any(char::is_control), "{:?}", error.message);
            for remedy in error.remedy.split(" or ") {
                prop_assert!(Resolved::parse(remedy).is_ok(), "{text:?}: remedy {remedy:?}");
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_answered(text in any::<String>()) {
        answer_is_sound(&text)?;
    }

    #[test]
    fn any_near_miss_is_answered(text in specification_like()) {
        answer_is_sound(&text)?;
    }

    #[test]
    fn what_can_be_bought_is_accepted_as_written(text in legal()) {
        let volume = Resolved::parse(&text).unwrap();
        prop_assert_eq!(Resolved::parse(&volume.spec).unwrap(), volume);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_long_text_is_answered(text in long()) {
        answer_is_sound(&text)?;
        if let Err(error) = Storage::parse(&text) {
            prop_assert!(error.message.len() < 600, "{}", error.message);
        }
    }
}

#[test]
fn many_members_are_refused_and_not_counted_beyond_what_a_number_holds() {
    let error = Storage::parse("18446744073709551615xgp3+2xgp3").unwrap_err();
    assert!(Storage::parse(&error.remedy).is_ok(), "{}", error.remedy);
}

/// The least CPU time that reading a text takes in several turns, in nanoseconds.
fn cpu_ns_of(text: &str) -> i64 {
    let cpu_ns = || {
        let spent = clock_gettime(ClockId::ThreadCPUTime);
        spent.tv_sec * 1_000_000_000 + spent.tv_nsec
    };
    let once = || {
        let begin = cpu_ns();
        let _ = Storage::parse(text);
        cpu_ns() - begin
    };
    (0..5).map(|_| once()).min().unwrap()
}

/// What caches and interrupts may add; what is quadratic takes seconds more.
const NOISE_NS: i64 = 50_000_000;

#[test]
fn a_text_of_twice_the_length_takes_at_most_thrice_the_cpu_time() {
    let parts = ["instance=i3enxlarg,", "a=1,", "size=,", "x", "4x", "raid10:", ",", "é=é,", "size=1GiB,", "gp3+"];
    for (part, kind) in parts.into_iter().flat_map(|part| ["gp3:", "4xi4i:", ""].map(|kind| (part, kind))) {
        let [short, long] = [5_000, 10_000].map(|len| cpu_ns_of(&format!("{kind}{}", part.repeat(len / part.len()))));
        assert!(long < short * 3 + NOISE_NS, "{kind}{part}...: {short} ns, then {long} ns");
    }
}
