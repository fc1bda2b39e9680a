use std::collections::BTreeSet;

use pgdyno_crash::{BLOCK_BYTES, Cache, Fate, History, State, View};
use proptest::prelude::*;

use crate::made::{BLOCKS, Making};

fn read<'a>(history: &'a History, reading: &str, seed: u64) -> View<'a> {
    View::new(history, reading.parse().expect("a reading"), seed)
}

/// The whole content of a volume.
fn content(state: &State<'_>, volume: usize) -> Vec<u8> {
    let mut bytes = vec![0; (BLOCKS * BLOCK_BYTES) as usize];
    let put = |offset: u64, block: &[u8]| -> Result<(), ()> {
        bytes[offset as usize..][..block.len()].copy_from_slice(block);
        Ok(())
    };
    state.write(volume, put).expect("it never fails");
    bytes
}

/// The first byte of each block.
fn bytes_of(state: &State<'_>, volume: usize) -> Vec<u8> {
    content(state, volume).chunks(BLOCK_BYTES as usize).map(|block| block[0]).collect()
}

/// Every state of an instant.
fn all<'a>(view: &View<'a>, position: u32) -> Vec<State<'a>> {
    (0..).map_while(|number| view.state(position, 0, number, &[])).collect()
}

#[test]
fn of_three_undecided_writes_each_subset_comes_once() {
    let mut making = Making::new(&[Cache::None]);
    let settled = making.write(0, 0, 1, 9);
    making.answer(settled);
    for block in 1..4 {
        making.write(0, block, 1, 1);
    }
    let history = making.history();
    let states = all(&read(&history, "whole", 1), 5);
    let contents: BTreeSet<Vec<u8>> = states.iter().map(|state| bytes_of(state, 0)[..4].to_vec()).collect();
    assert_eq!((states.len(), contents.len()), (8, 8));
    assert!(contents.iter().all(|found| found[0] == 9), "what was answered is there");
    let hashes: BTreeSet<u128> = states.iter().map(State::hash).collect();
    assert_eq!(hashes.len(), 8);
}

#[test]
fn a_prefix_of_a_write_has_no_gap_and_pieces_may() {
    let mut making = Making::new(&[Cache::None]);
    making.write(0, 0, 4, 1);
    let history = making.history();
    let found = |reading| -> BTreeSet<Vec<u8>> {
        all(&read(&history, reading, 1), 1).iter().map(|state| bytes_of(state, 0)[..4].to_vec()).collect()
    };
    let prefixes = [[0, 0, 0, 0], [1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]].map(|one| one.to_vec());
    assert_eq!(found("prefix-4096"), BTreeSet::from(prefixes));
    assert_eq!(found("pieces-4096").len(), 16);
    assert_eq!(found("pieces-4096+strict").len(), 2, "16 KiB at once");
    assert_eq!(found("whole").len(), 2);
}

#[test]
fn a_piece_may_be_smaller_than_a_block() {
    let mut making = Making::new(&[Cache::None]);
    let before = making.write(0, 0, 1, 1);
    making.answer(before);
    making.write(0, 0, 1, 2);
    let history = making.history();
    let states = all(&read(&history, "pieces-512", 1), 3);
    assert_eq!(states.len(), 256);
    let mixed = states.iter().any(|state| content(state, 0)[..1024] == [[1; 512], [2; 512]].concat());
    assert!(mixed, "the first 512 bytes old, the next new");
}

/// dm-log-writes' example: W1 W2 W3 C3 C2 flush C1: the flush makes W3 and W2 durable.
#[test]
fn in_a_volatile_cache_a_flush_covers_what_was_answered_before_it() {
    let mut making = Making::new(&[Cache::Volatile]);
    let requests = [0, 1, 2].map(|block| making.write(0, block, 1, 1));
    making.answer(requests[2]);
    making.answer(requests[1]);
    making.flush(0);
    making.answer(requests[0]);
    let history = making.history();
    let view = read(&history, "whole", 1);
    assert_eq!(all(&view, 5).len(), 8, "answered, and not flushed");
    let after = all(&view, 7);
    assert_eq!(after.len(), 2);
    assert!(after.iter().all(|state| bytes_of(state, 0)[1..3] == [1, 1]));
}

#[test]
fn a_flush_is_of_its_own_volume() {
    let mut making = Making::new(&[Cache::Volatile, Cache::Volatile]);
    for volume in [0, 1] {
        let request = making.write(volume, 0, 1, 1);
        making.answer(request);
    }
    making.flush(1);
    let history = making.history();
    let states = all(&read(&history, "whole", 1), 5);
    assert_eq!(states.len(), 2);
    assert!(states.iter().all(|state| bytes_of(state, 1)[0] == 1));
}

#[test]
fn a_discard_that_was_answered_leaves_zeros() {
    let mut making = Making::new(&[Cache::None]);
    for (block, blocks) in [(0, 4), (2, 1)] {
        let request = making.write(0, block, blocks, 3);
        making.answer(request);
    }
    let request = making.discard(0, 1, 2);
    making.answer(request);
    let history = making.history();
    let view = read(&history, "pieces-4096", 1);
    assert_eq!(bytes_of(&all(&view, 6)[0], 0)[..4], [3, 0, 0, 3]);
    let undecided = all(&view, 5);
    assert_eq!(undecided.len(), 2, "a discard is done or not");
}

#[test]
fn lies_about_flushes_leave_undecided_what_they_should_not() {
    let mut making = Making::new(&[Cache::Volatile]);
    for block in 0..4 {
        let request = making.write(0, block, 1, 1);
        making.answer(request);
    }
    making.flush(0);
    let late = making.write(0, 5, 1, 1);
    making.answer(late);
    making.flush(0);
    let history = making.history();
    let undecided = |reading, position| all(&read(&history, reading, 1), position)[0].undecided.len();
    assert_eq!([9, 12].map(|position| undecided("whole", position)), [0, 0]);
    assert_eq!([9, 12].map(|position| undecided("whole+flush-ignored-1", position)), [4, 5]);
    assert_eq!([9, 12].map(|position| undecided("whole+flush-narrow", position)), [2, 1]);
    assert_eq!([9, 12].map(|position| undecided("whole+flush-overtaken", position)), [4, 1]);
    // Events come 1 ms apart: the first flush comes 7, 5, 3 and 1 ms after the answers, the second 9, 7, 5, 3 and 1.
    assert_eq!([9, 12].map(|position| undecided("whole+flush-late-4", position)), [2, 1]);
    assert_eq!([9, 12].map(|position| undecided("whole+flush-ignored-1+only-1", position)), [0, 0]);
}

#[test]
fn a_lie_of_one_volume_leaves_the_other_as_it_is() {
    let mut making = Making::new(&[Cache::Volatile, Cache::Volatile]);
    for volume in [0, 1] {
        let request = making.write(volume, 0, 1, 1);
        making.answer(request);
        making.flush(volume);
    }
    let history = making.history();
    for (only, found) in [("", [0, 0]), ("+only-0", [0, 1]), ("+only-1", [1, 0])] {
        let reading = format!("whole+flush-ignored-1{only}");
        let states = all(&read(&history, &reading, 1), 6);
        let sure = |volume: usize| states.iter().all(|state| bytes_of(state, volume)[0] == 1);
        assert_eq!([0, 1].map(|volume| u8::from(sure(volume))), found, "{reading}");
        let lost = format!("whole+write-lost{only}");
        let state = read(&history, &lost, 1).state(6, 0, 0, &[]).expect("one");
        let left = [0, 1].map(|volume| bytes_of(&state, volume)[0]);
        assert_eq!(left.iter().sum::<u8>(), 1, "{lost}: one of two is gone");
        if !only.is_empty() {
            assert_eq!(left, found, "{lost}");
        }
    }
}

#[test]
fn a_cut_that_is_behind_lacks_what_was_answered_in_the_last_milliseconds() {
    let mut making = Making::new(&[Cache::None, Cache::None]);
    for block in 0..4 {
        let request = making.write((block % 2) as u8, block, 1, 1);
        making.answer(request);
    }
    let history = making.history();
    let there = |reading| {
        let state = read(&history, reading, 1).state(7, 0, 0, &[]).expect("one");
        (0..4).map(|block| bytes_of(&state, block % 2)[block]).collect::<Vec<u8>>()
    };
    assert_eq!(there("whole")[..3], [1, 1, 1]);
    assert_eq!(there("whole+behind-5")[..3], [1, 0, 0]);
    assert_eq!(there("whole+apart-5")[..3], [1, 0, 1]);
    assert_eq!(there("whole+apart-5+only-0")[..3], [1, 1, 0]);
}

#[test]
fn a_volume_that_is_copied_while_it_is_used_has_blocks_of_several_instants() {
    let mut making = Making::new(&[Cache::None]);
    for round in 1..=4 {
        for block in 0..4 {
            let request = making.write(0, block, 1, round);
            making.answer(request);
        }
    }
    let history = making.history();
    let there = |reading| {
        let state = read(&history, reading, 1).state(32, 0, 0, &[]).expect("one");
        let bytes = bytes_of(&state, 0);
        (0..4).map(|block| bytes[block]).collect::<Vec<u8>>()
    };
    assert_eq!(there("whole"), [4, 4, 4, 4]);
    // 32 events, 1 ms apart: the first block is read 16 ms before the cut, the last one 4 ms.
    assert_eq!(there("whole+copied-16"), [2, 2, 3, 3]);
}

#[test]
fn a_durable_write_is_lost_misdirected_or_rots_only_in_its_reading() {
    let mut making = Making::new(&[Cache::None]);
    for block in 0..8 {
        let request = making.write(0, block, 1, block as u8 + 1);
        making.answer(request);
    }
    let history = making.history();
    let honest = content(&all(&read(&history, "whole", 1), 16)[0], 0);
    for seed in 0..20 {
        let spoilt = |reading| {
            let view = read(&history, reading, seed);
            let state = view.state(16, 0, 0, &[]).expect("one");
            assert!(state.spoilt.is_some());
            content(&state, 0)
        };
        let changed = |found: &[u8]| {
            let blocks = found.chunks(4096).zip(honest.chunks(4096));
            blocks.filter(|(a, b)| a != b).count()
        };
        assert_eq!(changed(&spoilt("whole+write-lost")), 1);
        assert_eq!(changed(&spoilt("whole+write-zeros")), 1);
        assert_eq!(changed(&spoilt("whole+write-short")), 1, "of one block none");
        assert_eq!(changed(&spoilt("whole+blocks-swapped")), 2);
        assert!((1..=2).contains(&changed(&spoilt("whole+write-misdirected"))));
        let rotten = spoilt("whole+bit-rot");
        let bits: u32 = rotten.iter().zip(&honest).map(|(a, b)| (a ^ b).count_ones()).sum();
        assert_eq!(bits, 1);
    }
}

#[test]
fn volumes_can_be_cut_apart() {
    let mut making = Making::new(&[Cache::None, Cache::None]);
    for _ in 0..20 {
        for volume in [0, 1] {
            let request = making.write(volume, 0, 1, making_byte(volume));
            making.answer(request);
        }
    }
    let request = making.write(1, 1, 1, 7);
    making.answer(request);
    let history = making.history();
    assert_eq!(bytes_of(&all(&read(&history, "whole", 1), 82)[0], 1)[1], 7);
    assert_eq!(bytes_of(&all(&read(&history, "whole+apart-50", 1), 82)[0], 1)[1], 0, "50 ms before");
}

fn making_byte(volume: u8) -> u8 {
    volume + 1
}

#[test]
fn what_is_asked_to_stay_stays_whatever_is_drawn() {
    let mut making = Making::new(&[Cache::None]);
    for block in 0..4 {
        making.write(0, block, 1, 1);
    }
    let history = making.history();
    let view = read(&history, "whole", 3);
    for number in 0..16 {
        let state = view.state(4, 0, number, &[1, 2]).expect("one of sixteen");
        assert_eq!(bytes_of(&state, 0)[1..3], [1, 1]);
    }
}

/// What a test's log does next.
#[derive(Clone, Copy, Debug)]
enum Step {
    Write(u64, u64),
    Discard(u64, u64),
    AnswerOldest,
    AnswerNewest,
    Flush,
}

fn step() -> impl Strategy<Value = Step> {
    let range = (0..BLOCKS, 1_u64..6).prop_map(|(block, len)| (block, len.min(BLOCKS - block)));
    prop_oneof![
        4 => range.clone().prop_map(|(block, len)| Step::Write(block, len)),
        1 => range.prop_map(|(block, len)| Step::Discard(block, len)),
        2 => Just(Step::AnswerOldest),
        2 => Just(Step::AnswerNewest),
        1 => Just(Step::Flush),
    ]
}

fn made(steps: &[Step], cache: Cache) -> History {
    let mut making = Making::new(&[cache]);
    let mut waiting: Vec<u32> = Vec::new();
    for (byte, step) in (1..).zip(steps) {
        match step {
            Step::Write(block, len) => waiting.push(making.write(0, *block, *len, byte)),
            Step::Discard(block, len) => waiting.push(making.discard(0, *block, *len)),
            Step::AnswerOldest if !waiting.is_empty() => making.answer(waiting.remove(0)),
            Step::AnswerNewest => waiting.pop().into_iter().for_each(|request| making.answer(request)),
            Step::AnswerOldest => {}
            Step::Flush => making.flush(0),
        }
    }
    making.history()
}

proptest! {
    /// The model knows nothing of indexes: it replays everything that came before the cut, in order, as far as it stays.
    #[test]
    fn a_state_is_what_a_replay_of_the_log_gives(
        steps in prop::collection::vec(step(), 1..60), at in 0.0..1.0_f64, seed: u64, volatile: bool, kind in 0_usize..5,
    ) {
        let cache = if volatile { Cache::Volatile } else { Cache::None };
        let history = made(&steps, cache);
        let position = (history.log().events().len() as f64 * at) as u32;
        let reading = ["whole", "prefix-512", "pieces-4096", "pieces-512+strict", "pieces-4096+units"][kind];
        let view = read(&history, reading, seed);
        let state = view.state(position, 3, 0, &[]).expect("there is always one");
        let mut expected = vec![0_u8; (BLOCKS * BLOCK_BYTES) as usize];
        let came = (0..).zip(history.requests()).filter(|(_, request)| request.came < position);
        let came: Vec<_> = came.collect();
        for (number, request) in &came {
            let fate = state.undecided.iter().find(|one| one.request == *number).map_or(&Fate::Whole, |one| &one.fate);
            let ranges = match fate {
                Fate::Lost => vec![],
                Fate::Whole => vec![(0, request.len)],
                Fate::Torn(ranges) => ranges.clone(),
            };
            for at in ranges.into_iter().flat_map(|(from, to)| from..to) {
                let byte = request.data.map_or(0, |data| history.log().bytes(data + at, 1)[0]);
                expected[(request.offset + at) as usize] = byte;
            }
        }
        prop_assert_eq!(content(&state, 0), expected);
        let again = read(&history, reading, seed).state(position, 3, 0, &[]).expect("the same");
        prop_assert_eq!(again.hash(), state.hash());
        prop_assert_eq!(&again.undecided, &state.undecided);
        if !volatile {
            let unanswered = came.iter().filter(|(_, request)| request.answered.is_none_or(|event| event >= position));
            prop_assert_eq!(unanswered.count(), state.undecided.len(), "what was answered is durable");
        }
    }
}
