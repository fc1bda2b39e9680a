//! I/O accounting: the worked examples of the EBS user guide, and the limits of merging.

use crate::common::*;
use pgdyno_volume::stage::split_merge::SplitMerge;
use pgdyno_volume::*;
use proptest::prelude::*;

const ACCOUNTING: Accounting = Accounting { unit_bytes: 256 << 10, merge_sequential: true };
const KIB: u64 = 1024;

fn total(requests: &[(u64, u32)]) -> u32 {
    let mut stage = SplitMerge::new(ACCOUNTING, Cost::default());
    requests.iter().enumerate().map(|(i, (offset, len))| stage.units(0, &io(i as u64, Op::Read, *offset, *len))).sum()
}

#[test]
fn the_guides_examples() {
    assert_eq!(total(&[(0, 1024 * 1024)]), 4, "one of 1,024 KiB counts four");
    let sequential: Vec<_> = (0..8).map(|i| (i * 32 * KIB, 32 * 1024)).collect();
    assert_eq!(total(&sequential), 1, "eight sequential of 32 KiB count one");
    let random: Vec<_> = (0..8).map(|i| (i * 999 * KIB, 32 * 1024)).collect();
    assert_eq!(total(&random), 8, "eight random of 32 KiB count eight");
}

#[test]
fn a_request_after_its_predecessor_completed_starts_a_new_unit() {
    let mut stage = SplitMerge::new(ACCOUNTING, Cost::default());
    assert_eq!(stage.units(0, &io(1, Op::Write, 0, 8192)), 1);
    stage.granted(IoId(1), 500_000);
    assert_eq!(stage.units(399_999, &io(2, Op::Write, 8192, 8192)), 0, "still outstanding");
    stage.granted(IoId(2), 800_000);
    assert_eq!(stage.units(800_000, &io(3, Op::Write, 16384, 8192)), 1, "completed: nothing to merge with");
    stage.granted(IoId(3), 900_000);
    assert_eq!(stage.units(890_000, &io(4, Op::Write, 24576, 8192)), 1, "so late that the answer is on its way");
}

#[test]
fn an_id_that_is_used_again_leaves_no_run_behind() {
    let mut stage = SplitMerge::new(ACCOUNTING, Cost::default());
    assert_eq!(stage.units(0, &io(1, Op::Write, 0, 8192)), 1);
    stage.granted(IoId(1), 1_000_000);
    assert_eq!(stage.units(1_000_000, &io(1, Op::Write, 65_536, 8192)), 1);
    stage.granted(IoId(1), 2_000_000);
    assert_eq!(stage.units(2_000_000, &io(2, Op::Write, 73_728, 8192)), 1, "the second one is known to be done");
}

#[test]
fn reads_do_not_merge_with_writes_and_interleaved_runs_are_told_apart() {
    let mut stage = SplitMerge::new(ACCOUNTING, Cost::default());
    assert_eq!(stage.units(0, &io(1, Op::Write, 0, 8192)), 1);
    assert_eq!(stage.units(0, &io(2, Op::Read, 8192, 8192)), 1);
    assert_eq!(stage.units(0, &io(3, Op::Write, 8192, 8192)), 0);
    assert_eq!(stage.units(0, &io(4, Op::Read, 16384, 8192)), 0);
}

proptest! {
    #[test]
    fn a_sequential_run_costs_its_bytes_rounded_up(lens in prop::collection::vec(1u32..600, 1..100)) {
        let mut offset = 0u64;
        let requests: Vec<_> = lens.iter().map(|kib| {
            let request = (offset, kib * 1024);
            offset += u64::from(kib * 1024);
            request
        }).collect();
        prop_assert_eq!(u64::from(total(&requests)), offset.div_ceil(256 * KIB));
    }
}
