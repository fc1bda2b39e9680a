//! Chains of snapshots with deletions, against a model that keeps full copies.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::*;

const BLOCK: usize = BLOCK_BYTES as usize;
const SNAPSHOT_BLOCK: usize = 512 << 10;
const SIZE: usize = 8 << 20;
const SNAPSHOTS: usize = 30;

fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("pgdyno-merge-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("a folder");
    path
}

/// A full copy, and for each block of 512 KiB the snapshot after which it was last written to.
#[derive(Clone)]
struct Copy {
    name: usize,
    content: Vec<u8>,
    written: Vec<Option<usize>>,
}

fn freeze_one(store: &Store, target: &Path) {
    let mut freezing = [store.prepare(target).expect("prepare")];
    freeze(&mut freezing);
    let [freezing] = freezing;
    freezing.keep().expect("keep");
}

fn content(image: &Path, clone: &Path) -> Vec<u8> {
    let store = Store::create(clone, SIZE as u64, Some(image), false).expect("clone");
    let mut content = vec![0xee; SIZE];
    for (number, part) in content.chunks_mut(1 << 20).enumerate() {
        store.read(part, (number as u64) << 20).expect("read");
    }
    store.remove().expect("remove");
    content
}

/// What is stored by the model: of the blocks of each copy those that no copy before it has in the same state.
fn stored_by(copies: &[Copy]) -> Vec<Stored> {
    let mut counted = BTreeSet::new();
    let bytes = |blocks: usize| (blocks * SNAPSHOT_BLOCK) as u64;
    let each = copies.iter().map(|copy| {
        let held: Vec<_> = copy.written.iter().enumerate().filter_map(|(at, by)| by.map(|by| (at, by))).collect();
        let own = held.iter().filter(|block| counted.insert(**block)).count();
        Stored { stored_bytes: bytes(own), held_bytes: bytes(held.len()) }
    });
    each.collect()
}

#[test]
fn a_chain_with_random_deletions_equals_full_copies() {
    let home = folder("chain");
    let image = |name: usize| home.join(format!("snap-{name}"));
    let store = Store::create(&home.join("v-1"), SIZE as u64, None, false).expect("create");
    let mut random = 0x2545_f491_4f6c_dd1du64;
    let mut next = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random % below as u64) as usize
    };
    let mut now = Copy { name: 0, content: vec![0; SIZE], written: vec![None; SIZE / SNAPSHOT_BLOCK] };
    let mut copies: Vec<Copy> = Vec::new();
    let mut deleted = 0;
    for name in 0..SNAPSHOTS {
        for _ in 0..1 + next(12) {
            let at = next(SIZE / BLOCK) * BLOCK;
            let len = (1 + next(40)) * BLOCK;
            let end = SIZE.min(at + len);
            let byte = if next(4) == 0 { 0 } else { next(255) as u8 + 1 };
            now.content[at..end].fill(byte);
            // Of the first layer a discard leaves nothing, and all others hold it as zeros.
            if byte == 0 && name > 0 {
                store.zero(at as u64, (end - at) as u64).expect("zero");
            } else {
                store.write(&now.content[at..end], at as u64).expect("write");
            }
            now.written[at / SNAPSHOT_BLOCK..end.div_ceil(SNAPSHOT_BLOCK)].fill(Some(name));
        }
        now.name = name;
        freeze_one(&store, &image(name));
        copies.push(now.clone());
        // The newest one is what the volume stands on.
        while copies.len() > 2 && next(2) == 0 {
            let place = next(copies.len() - 1);
            let gone = copies.remove(place);
            merge_images(&image(gone.name), &image(copies[place].name)).expect("merge");
            deleted += 1;
            assert!(!image(gone.name).exists());
        }
        let images: Vec<PathBuf> = copies.iter().map(|copy| image(copy.name)).collect();
        assert_eq!(stored_bytes(&images).expect("sizes"), stored_by(&copies), "after snapshot {name}");
        for copy in &copies {
            assert!(content(&image(copy.name), &home.join("c-1")) == copy.content, "snapshot {} of {name}", copy.name);
        }
    }
    assert!(deleted > SNAPSHOTS / 3, "{deleted} were deleted");
    let mut seen = vec![0; SIZE];
    store.read(&mut seen, 0).expect("read");
    assert!(seen == now.content, "the volume, whose daemon has the files of all of them open");
    fs::remove_dir_all(home).expect("clean up");
}

#[test]
fn only_an_image_and_the_one_that_stands_on_it_are_merged() {
    let home = folder("order");
    let store = Store::create(&home.join("v-1"), SIZE as u64, None, false).expect("create");
    for name in ["a", "b", "c"] {
        store.write(&[1; BLOCK], 0).expect("write");
        freeze_one(&store, &home.join(name));
    }
    for (lower, upper) in [("a", "c"), ("b", "a"), ("c", "c")] {
        let error = merge_images(&home.join(lower), &home.join(upper)).expect_err("no pair");
        assert!(error.message.contains("does not stand on"), "{error:?}");
    }
    fs::remove_dir_all(home).expect("clean up");
}
