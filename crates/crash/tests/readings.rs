use pgdyno_crash::{Event, Reading, What};
use proptest::prelude::*;

fn reading(text: &str) -> Reading {
    text.parse().expect("it is one")
}

#[test]
fn a_reading_is_written_as_it_is_read() {
    for text in [
        "whole",
        "prefix-512",
        "pieces-4096+strict",
        "pieces-16384+units",
        "whole+flush-ignored-100",
        "whole+flush-narrow",
        "pieces-512+strict+flush-overtaken",
        "whole+write-lost",
        "whole+write-misdirected",
        "whole+bit-rot",
        "whole+apart-50",
        "whole+apart-50+only-0",
        "whole+behind-5",
        "whole+copied-100+only-0",
        "whole+flush-late-5",
        "pieces-4096+flush-ignored-1+only-1",
        "whole+write-short",
        "whole+write-zeros+only-0",
        "whole+blocks-swapped",
    ] {
        assert_eq!(reading(text).to_string(), text);
    }
    for text in ["", "pieces", "pieces-100", "whole+", "whole+never", "whole+flush-ignored-0", "whole+bit-rot+only-x"] {
        text.parse::<Reading>().expect_err(text);
    }
}

#[test]
fn strict_prevention_keeps_an_aligned_write_of_its_sizes_whole_and_no_other() {
    let strict = reading("pieces-4096+strict");
    assert_eq!(strict.parts(16384, 16384), [16384]);
    assert_eq!(strict.parts(8192, 8192), [8192]);
    assert_eq!(strict.parts(4096, 8192), [4096, 8192], "not aligned to its size");
    assert_eq!(strict.parts(0, 12288), [4096, 8192, 12288], "no such size");
    assert_eq!(strict.parts(0, 32768).len(), 8, "larger than the promise");
}

#[test]
fn the_other_reading_keeps_each_aligned_unit_of_any_write_whole() {
    let units = reading("pieces-4096+units");
    assert_eq!(units.parts(0, 32768), [16384, 32768]);
    assert_eq!(units.parts(8192, 32768), [4096, 8192, 24576, 28672, 32768]);
    assert_eq!(reading("pieces-512+units").parts(16384, 4096).len(), 8, "less than a unit");
}

#[test]
fn a_write_is_torn_at_multiples_of_the_piece_on_the_device() {
    assert_eq!(reading("pieces-8192").parts(4096, 16384), [4096, 12288, 16384]);
    assert_eq!(reading("prefix-512").parts(0, 4096).len(), 8);
    assert_eq!(reading("whole").parts(4096, 16384), [16384]);
}

proptest! {
    #[test]
    fn the_parts_of_a_write_are_the_whole_write(begin in 0_u64..32, blocks in 1_u64..32, kind in 0_usize..6) {
        let kinds = ["whole", "pieces-512", "prefix-16384", "pieces-4096+strict", "pieces-8192+units", "pieces-512+units"];
        let parts = reading(kinds[kind]).parts(begin * 4096, blocks * 4096);
        prop_assert!(parts.is_sorted_by(|a, b| a < b));
        prop_assert_eq!(parts.last(), Some(&(blocks * 4096)));
    }

    #[test]
    fn an_event_is_read_as_it_was_written(at_ns: u64, volume: u8, offset: u64, len: u32, data: u64, kind in 0..5) {
        let what = match kind {
            0 => What::Write { volume, offset, len, data },
            1 => What::Discard { volume, offset, len: data },
            2 => What::Answer { request: len },
            3 => What::Flush { volume },
            _ => What::Mark { data, len },
        };
        let event = Event { at_ns, what };
        prop_assert_eq!(Event::decode(&event.encode()), Some(event));
    }
}
