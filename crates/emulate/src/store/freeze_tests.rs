//! What a frozen layer holds, by what was answered when, under writers that do not stop.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::*;

const BLOCKS: u64 = 24;
const SIZE: u64 = 1 << 20;
const VOLUMES: usize = 3;
const WRITERS: u64 = 4;
const SETS: usize = 60;

/// A folder that is gone at the end of a test, also of one that fails: in memory it would take the machine's.
struct Home(PathBuf);

impl Home {
    fn new(above: &Path, name: &str) -> Self {
        let path = above.join(format!("pgdyno-freeze-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }
}

impl std::ops::Deref for Home {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Numbers for one test: the same ones each time.
struct Random(u64);

impl Random {
    fn below(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }
}

/// What one writer has done, in its order: each request was answered before the next one was submitted.
#[derive(Clone, Debug, Default)]
struct Done {
    /// Volume, block and what it holds since; 0 is a discard.
    submitted: Vec<(usize, u64, u64)>,
    answered: usize,
}

/// Writes and discards blocks of its own, among volumes at random, each request after the answer to the one before.
fn write(writer: u64, stores: &[Store], done: &Mutex<Done>, stop: &AtomicBool) {
    let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ (writer + 1));
    for number in 1.. {
        if stop.load(Ordering::Acquire) {
            return;
        }
        let volume = random.below(VOLUMES as u64) as usize;
        let block = writer * BLOCKS + random.below(BLOCKS);
        let stamp = if random.below(8) == 0 { 0 } else { number };
        done.lock().expect("no panic").submitted.push((volume, block, stamp));
        let offset = block * BLOCK_BYTES;
        let result = if stamp == 0 {
            stores[volume].zero(offset, BLOCK_BYTES)
        } else {
            stores[volume].write(&stamp.to_le_bytes().repeat(BLOCK_BYTES as usize / 8), offset)
        };
        result.expect("it works");
        done.lock().expect("no panic").answered += 1;
    }
}

/// What the blocks of a writer hold on each volume.
type Blocks = Vec<Vec<u64>>;

fn empty() -> Blocks {
    vec![vec![0; BLOCKS as usize]; VOLUMES]
}

fn apply(blocks: &mut Blocks, requests: &[(usize, u64, u64)]) {
    for (volume, block, stamp) in requests {
        blocks[*volume][(block % BLOCKS) as usize] = *stamp;
    }
}

/// The same as an image has it. A block is of one request: it is never a mix here, since no other writer has it.
fn of_images(images: &[Store], writer: u64) -> Blocks {
    let mut content = vec![0; BLOCK_BYTES as usize];
    let mut of_block = |image: &Store, block: u64| {
        image.read(&mut content, (writer * BLOCKS + block) * BLOCK_BYTES).expect("read");
        let (stamps, _) = content.as_chunks::<8>();
        assert!(stamps.iter().all(|stamp| *stamp == stamps[0]), "a block that was torn");
        u64::from_le_bytes(stamps[0])
    };
    images.iter().map(|image| (0..BLOCKS).map(|block| of_block(image, block)).collect()).collect()
}

/// Freezes volumes under writers, and finds in each set of images what each writer had done up to one of its requests: no
/// earlier one than had been answered before, and none that was submitted after.
fn sets_under_writers(above: &Path) {
    let home = Home::new(above, "sets");
    let create = |volume| Store::create(&home.join(format!("v{volume}-1")), SIZE, None, false).expect("create");
    let stores: Vec<Store> = (0..VOLUMES).map(create).collect();
    let done: Vec<Mutex<Done>> = (0..WRITERS).map(|_| Mutex::default()).collect();
    let stop = AtomicBool::new(false);
    let mut bounds = Vec::new();
    let image = |set: usize, volume: usize| home.join(format!("set-{set}/v{volume}"));
    std::thread::scope(|scope| {
        for (writer, done) in (0..).zip(&done) {
            let (stores, stop) = (&stores, &stop);
            scope.spawn(move || write(writer, stores, done, stop));
        }
        for set in 0..SETS {
            let enough = (set + 1) * 40;
            while done.iter().any(|done| done.lock().expect("no panic").answered < enough) {
                std::thread::yield_now();
            }
            let freezing = stores.iter().enumerate().map(|(volume, store)| store.prepare(&image(set, volume)));
            let mut freezing: Vec<_> = freezing.map(|freezing| freezing.expect("prepare")).collect();
            let answered: Vec<usize> = done.iter().map(|done| done.lock().expect("no panic").answered).collect();
            freeze(&mut freezing);
            let submitted: Vec<usize> =
                done.iter().map(|done| done.lock().expect("no panic").submitted.len()).collect();
            for freezing in freezing {
                freezing.keep().expect("keep");
            }
            bounds.push((answered, submitted));
        }
        stop.store(true, Ordering::Release);
    });
    let done: Vec<Done> = done.into_iter().map(|done| done.into_inner().expect("no panic")).collect();
    let mut answered_by = vec![(0, empty()); done.len()];
    for (set, (answered, submitted)) in bounds.iter().enumerate() {
        let open = |volume| {
            let clone = home.join(format!("c{volume}-1"));
            let _ = fs::remove_dir_all(&clone); // of the set before
            Store::create(&clone, SIZE, Some(&image(set, volume)), false).expect("clone")
        };
        let images: Vec<Store> = (0..VOLUMES).map(open).collect();
        for (writer, done) in done.iter().enumerate() {
            let found = of_images(&images, writer as u64);
            let (known, blocks) = &mut answered_by[writer];
            apply(blocks, &done.submitted[*known..answered[writer]]);
            *known = answered[writer];
            let possible = *known..submitted[writer];
            let mut blocks = blocks.clone();
            let is_there = blocks == found
                || done.submitted[possible.clone()].iter().any(|request| {
                    apply(&mut blocks, &[*request]);
                    blocks == found
                });
            assert!(is_there, "set {set}: writer {writer} never had that after any of its requests {possible:?}");
        }
    }
    for (writer, done) in done.iter().enumerate() {
        let mut blocks = empty();
        apply(&mut blocks, &done.submitted);
        assert_eq!(of_images(&stores, writer as u64), blocks, "the volumes go on");
    }
}

#[test]
fn images_of_a_set_hold_what_was_answered_before_one_instant_and_nothing_from_after() {
    sets_under_writers(&std::env::temp_dir());
}

#[test]
fn images_of_volumes_in_memory_do_too() {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        sets_under_writers(memory);
    }
}

fn freeze_one(store: &Store, target: &Path) -> Kept {
    let mut freezing = [store.prepare(target).expect("prepare")];
    freeze(&mut freezing);
    let [freezing] = freezing;
    freezing.keep().expect("keep")
}

#[test]
fn a_read_asks_one_layer_however_many_there_are() {
    let home = Home::new(&std::env::temp_dir(), "chain");
    let store = Store::create(&home.join("v-1"), SIZE, None, false).expect("create");
    let mut random = Random(7);
    let mut truth = vec![0u8; SIZE as usize];
    for layer in 0..100u8 {
        for _ in 0..3 {
            let at = (random.below(SIZE / BLOCK_BYTES) * BLOCK_BYTES) as usize;
            let content = vec![layer + 1; BLOCK_BYTES as usize];
            store.write(&content, at as u64).expect("write");
            truth[at..at + content.len()].copy_from_slice(&content);
        }
        freeze_one(&store, &home.join(format!("image-{layer}")));
        let asked = store.stack().asked_max();
        assert!(asked <= 2, "{asked} layers are asked after {layer} others");
    }
    assert_eq!(store.stack().asked_max(), 1, "only the writable one, before the index");
    let clone = Store::create(&home.join("c-1"), SIZE, Some(&home.join("image-99")), false).expect("clone");
    assert_eq!(clone.stack().asked_max(), 1);
    for store in [&store, &clone] {
        let mut seen = vec![0xee; SIZE as usize];
        store.read(&mut seen, 0).expect("read");
        assert!(seen == truth);
    }
}

#[test]
fn a_volume_that_grew_is_frozen_as_large_as_it_is() {
    let home = Home::new(&std::env::temp_dir(), "grown");
    let store = Store::create(&home.join("v-1"), SIZE, None, false).expect("create");
    let block = |byte: u8| vec![byte; BLOCK_BYTES as usize];
    for step in 1..5u8 {
        store.write(&block(step), 0).expect("write");
        let kept = freeze_one(&store, &home.join(format!("image-{step}")));
        assert_eq!(kept.size_bytes, SIZE * u64::from(step));
        store.grow(SIZE * u64::from(step + 1)).expect("grow");
        store.write(&block(step + 100), SIZE * u64::from(step)).expect("write behind the old end");
    }
    let mut seen = block(0);
    for (offset, byte) in [(0, 4), (SIZE, 101), (3 * SIZE, 103), (4 * SIZE, 104)] {
        store.read(&mut seen, offset).expect("read");
        assert_eq!(seen, block(byte), "at {offset}");
    }
}

/// 10 GiB, of which 4 change, and then 2 more: 16 GiB are stored for three snapshots (EBS user guide, "Amazon EBS
/// snapshots"), here in MiB.
#[test]
fn a_snapshot_counts_what_changed_since_the_one_before() {
    let home = Home::new(&std::env::temp_dir(), "bytes");
    let store = Store::create(&home.join("v-1"), 32 << 20, None, false).expect("create");
    let write = |from_mib: u64, mib: u64| {
        for offset in (from_mib << 20..(from_mib + mib) << 20).step_by(512 << 10) {
            store.write(&vec![1; BLOCK_BYTES as usize], offset + 4096).expect("write");
        }
    };
    let mut held = Vec::new();
    for (name, from_mib, mib) in [("a", 0, 10), ("b", 3, 4), ("c", 10, 2)] {
        write(from_mib, mib);
        let kept = freeze_one(&store, &home.join(name));
        assert_eq!(kept.changed_bytes, mib << 20, "{name}");
        held.push(kept.held_bytes >> 20);
    }
    assert_eq!(held, [10, 10, 12]);
}

#[test]
fn of_a_set_that_cannot_be_prepared_nothing_is_left() {
    let home = Home::new(&std::env::temp_dir(), "refused");
    let stores: Vec<Store> =
        [1, 2].map(|n| Store::create(&home.join(format!("v-{n}")), SIZE, None, false).expect("create")).into();
    fs::create_dir_all(home.join("taken/something")).expect("a folder that is not empty");
    let first = stores[0].prepare(&home.join("first")).expect("prepare");
    let error = stores[1].prepare(&home.join("taken")).expect_err("taken");
    assert!(error.message.contains("already exists"), "{error:?}");
    drop(first);
    let mut left: Vec<_> =
        fs::read_dir(&*home).expect("a folder").map(|entry| entry.expect("an entry").file_name()).collect();
    left.sort();
    assert_eq!(left, ["taken", "v-1", "v-2"]);
}

/// Its layers are files without memory: what is made and gone through is what was written.
#[test]
fn a_volume_of_64_tib_is_frozen_in_100_ms() {
    let memory = Path::new("/dev/shm");
    if !memory.is_dir() {
        return;
    }
    let home = Home::new(memory, "large");
    let store = Store::create(&home.join("v-1"), 64 << 40, None, false).expect("create");
    // Of several, the quickest: a neighbour of this test makes some of them longer.
    let (mut least, mut least_waited) = (Duration::MAX, Duration::MAX);
    for number in 0..4u64 {
        for place in 0..64 {
            store.write(&vec![1; BLOCK_BYTES as usize], place << 40 | number << 20).expect("write");
        }
        let begun = std::time::Instant::now();
        let mut freezing = [store.prepare(&home.join(format!("image-{number}"))).expect("prepare")];
        let waited = freeze(&mut freezing).waited;
        least = least.min(begun.elapsed());
        least_waited = least_waited.min(waited);
        let [freezing] = freezing;
        freezing.keep().expect("keep");
    }
    assert!(least_waited < Duration::from_millis(20), "requests waited {least_waited:?}");
    assert!(least < Duration::from_millis(100), "{least:?}");
}
