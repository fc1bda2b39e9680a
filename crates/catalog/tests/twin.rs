//! Twins: what a fitted file comes to, and which files are refused.

use pgdyno_catalog::{Resolved, twin_path};
use pgdyno_volume::{BucketParams, Order};
use proptest::prelude::*;

const TWIN: &str = r#"
schema_version = 1
title = "twin of /srv/disk"
size_mib = 20480

[fitted]
path = "/srv/disk"

[iops]
reads_per_s = 3000
writes_per_s = 3000
bucket_ms = 100

[throughput]
bytes_per_s = 131072000
bucket_ms = 250

[accounting]
unit_kib = 256
merge_sequential = false

[queueing]
order = "fifo"

[service_time]
size_kib = [4, 64]
probability_ppm = [0, 500000, 1000000]
read_ns = [[100000, 150000, 900000], [120000, 200000, 950000]]
write_ns = [[90000, 140000, 800000], [110000, 190000, 850000]]
"#;

fn changed(from: &str, to: &str) -> String {
    assert!(TWIN.contains(from), "the test looks for {from:?}, which is not in its twin");
    TWIN.replacen(from, to, 1)
}

#[test]
fn a_twin_carries_its_own_limits_and_tables() {
    let twin = Resolved::of_twin("/srv/twin.toml", TWIN).unwrap();
    assert_eq!(twin.spec, "twin:/srv/twin.toml");
    assert_eq!(twin.volume_type, "twin");
    assert_eq!(twin.title, "twin of /srv/disk, 20 GiB, 3,000 IOPS, 125 MiB/s");
    assert_eq!((twin.limits.iops, twin.limits.throughput_mib_per_s), (Some(3000), Some(125.0)));
    assert_eq!(twin.usd_per_month, None);
    let params = twin.params();
    assert_eq!(params.size_bytes, 20 << 30);
    assert_eq!(params.iops_limit, Some(BucketParams { rate_per_s: 3000, depth_ns: 100_000_000 }));
    assert_eq!(params.throughput_limit, Some(BucketParams { rate_per_s: 131_072_000, depth_ns: 250_000_000 }));
    assert!(params.cost.is_plain());
    assert_eq!(params.order, Order::Fifo);
    assert_eq!(params.service_time.write.rows[1].service_ns, [110_000, 190_000, 850_000]);
}

#[test]
fn what_the_file_has_no_table_for_is_unlimited() {
    let (before, after) = TWIN.split_once("[iops]").unwrap();
    let text = format!("{before}[accounting]{}", after.split_once("[accounting]").unwrap().1);
    let twin = Resolved::of_twin("t.toml", &text).unwrap();
    assert_eq!((twin.params().iops_limit, twin.params().throughput_limit), (None, None));
    assert_eq!(twin.limits.iops, None);
}

#[test]
fn files_that_are_no_twins_are_refused_with_the_key() {
    for (from, to, complaint) in [
        ("schema_version = 1", "schema_version = 2", "schema_version is 2"),
        ("size_mib = 20480", "size_mib = 0", "size_mib is 1 to"),
        ("reads_per_s = 3000", "reads_per_s = 0", "iops.reads_per_s"),
        ("bytes_per_s = 131072000", "bytes_per_s = 0", "throughput.bytes_per_s"),
        ("bucket_ms = 100", "bucket_ms = 86400001", "iops.bucket_ms"),
        ("unit_kib = 256", "unit_kib = 2048", "accounting.unit_kib"),
        ("unit_kib = 256", "unit_kib = 96", "a power of two"),
        ("order = \"fifo\"", "order = \"lifo\"", "lifo"),
        ("size_kib = [4, 64]", "size_kib = [64, 4]", "rows ascend by size"),
        ("size_kib = [4, 64]", "size_kib = [4]", "one row for each"),
        ("[0, 500000, 1000000]", "[0, 500000, 900000]", "from 0 to 1,000,000"),
        ("[100000, 150000, 900000]", "[100000, 50000, 900000]", "never descend"),
        ("[100000, 150000, 900000]", "[100000, 900000]", "one value for each"),
        ("merge_sequential", "merge", "merge"),
        ("[accounting]", "[accounts]", "accounts"),
    ] {
        let error = Resolved::of_twin("t.toml", &changed(from, to)).unwrap_err();
        assert!(error.message.starts_with("t.toml is not a twin: "), "{error}");
        assert!(error.message.contains(complaint), "{from:?} -> {to:?}: {error}");
        assert!(error.remedy.contains("volume fit"));
    }
}

#[test]
fn a_path_is_told_from_a_type() {
    for (spec, path) in [
        ("twin.toml", Some("twin.toml")),
        (" /srv/My.TOML ", Some("/srv/My.TOML")),
        ("twin:disk", Some("disk")),
        ("TWIN: a:b.toml", Some("a:b.toml")),
        ("gp3:size=100GiB", None),
        ("twin", None),
    ] {
        assert_eq!(twin_path(spec), path, "{spec:?}");
    }
}

proptest! {
    /// Both rates come out of the one bucket: its tokens per second over what a read, or a write, costs.
    #[test]
    fn reads_and_writes_get_the_rates_of_the_file(reads in 1u64..2_000_000, writes in 1u64..2_000_000) {
        let text = changed("reads_per_s = 3000", &format!("reads_per_s = {reads}"))
            .replacen("writes_per_s = 3000", &format!("writes_per_s = {writes}"), 1);
        let twin = Resolved::of_twin("t.toml", &text).unwrap();
        let rate = twin.params().iops_limit.unwrap().rate_per_s;
        prop_assert_eq!(rate, reads * u64::from(twin.params().cost.read_tokens));
        prop_assert_eq!(rate, writes * u64::from(twin.params().cost.write_tokens));
        prop_assert_eq!(twin.limits.iops, Some(reads));
        prop_assert_eq!(twin.limits.write_iops.unwrap_or(reads), writes);
    }
}
