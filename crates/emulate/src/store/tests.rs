//! The store against a plain vector of bytes.

use std::fs;
use std::path::{Path, PathBuf};

use pgdyno_volume::Extents;

use super::*;

const SIZE: u64 = 1 << 20;

fn folder(name: &str) -> PathBuf {
    folder_in(&std::env::temp_dir(), name)
}

fn folder_in(above: &Path, name: &str) -> PathBuf {
    let path = above.join(format!("pgdyno-store-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    path
}

fn block(byte: u8, count: usize) -> Vec<u8> {
    vec![byte; count * BLOCK_BYTES as usize]
}

fn read(store: &Store, offset: u64, blocks: usize) -> Vec<u8> {
    let mut buffer = block(0xee, blocks);
    store.read(&mut buffer, offset).expect("read");
    buffer
}

#[test]
fn a_clone_shares_the_image_and_never_changes_it() {
    let (base, image, clone) = (folder("base"), folder("image"), folder("clone"));
    let store = Store::create(&base, SIZE, None, false).expect("create");
    store.write(&block(1, 4), 8192).expect("write");
    store.save(&image).expect("save");

    let first = Store::create(&clone, SIZE, Some(&image), false).expect("clone");
    assert_eq!(read(&first, 8192, 4), block(1, 4));
    first.write(&block(2, 1), 12288).expect("write");
    first.zero(16384, BLOCK_BYTES).expect("zero");
    let seen = [block(0, 2), block(1, 1), block(2, 1), block(0, 1), block(1, 1), block(0, 2)].concat();
    assert_eq!(read(&first, 0, 8), seen);
    first.remove().expect("remove");

    let second = Store::create(&clone, SIZE, Some(&image), false).expect("clone");
    assert_eq!(read(&second, 8192, 4), block(1, 4), "the image is as it was");
    second.remove().expect("remove");
    fs::remove_dir_all(&image).expect("clean up");
}

#[test]
fn the_blocks_of_an_image_are_those_of_all_its_layers() {
    const BLOCK: u64 = 512 << 10;
    let (base, image, upper) = (folder("e-base"), folder("e-image"), folder("e-upper"));
    let store = Store::create(&base, 8 * BLOCK, None, false).expect("create");
    assert_eq!(store.image_extents(BLOCK), Extents::default(), "it has none");
    store.write(&block(1, 1), 0).expect("write");
    store.write(&block(1, 2), 3 * BLOCK - BLOCK_BYTES).expect("write");
    store.save(&image).expect("save");
    let clone = Store::create(&base, 8 * BLOCK, Some(&image), false).expect("clone");
    clone.write(&block(2, 1), 8 * BLOCK - BLOCK_BYTES).expect("write");
    clone.save(&upper).expect("save");
    let top = Store::create(&base, 16 * BLOCK, Some(&upper), false).expect("clone of a clone");
    top.write(&block(3, 1), 5 * BLOCK).expect("write");
    assert_eq!(top.image_extents(BLOCK).to_string(), "0+512,1024+1024,3584+512");
    top.remove().expect("remove");
    for path in [image, upper] {
        fs::remove_dir_all(path).expect("clean up");
    }
}

#[test]
fn zeros_over_an_image_survive_being_saved() {
    let (base, image, upper) = (folder("z-base"), folder("z-image"), folder("z-upper"));
    let store = Store::create(&base, SIZE, None, false).expect("create");
    store.write(&block(7, 256), 0).expect("write");
    store.save(&image).expect("save");
    let clone = Store::create(&base, SIZE, Some(&image), false).expect("clone");
    clone.zero(4096, 8192).expect("zero");
    clone.save(&upper).expect("save");
    let top = Store::create(&base, SIZE, Some(&upper), false).expect("clone of a clone");
    assert_eq!(read(&top, 0, 4), [block(7, 1), block(0, 2), block(7, 1)].concat());
    top.remove().expect("remove");
    for path in [image, upper] {
        fs::remove_dir_all(path).expect("clean up");
    }
}

#[test]
fn an_image_that_is_refused_leaves_nothing_behind() {
    let (base, image) = (folder("s-base"), folder("s-image"));
    Store::create(&base, SIZE, None, false).expect("create").save(&image).expect("save");
    let error = Store::create(&base, SIZE / 2, Some(&image), false).expect_err("too small");
    assert!(error.remedy.contains("at least as large"), "{error:?}");
    assert!(!base.exists(), "the layer of a volume that is too small");
    fs::write(image.join("image.json"), "{").expect("damage");
    let error = Store::create(&base, SIZE, Some(&image), false).expect_err("damaged");
    assert!(error.message.contains("is damaged"), "{error:?}");
    assert!(!base.exists(), "the layer of a volume whose image is damaged");
    fs::remove_dir_all(image).expect("clean up");
}

#[test]
fn content_that_is_there_already_is_neither_used_nor_removed() {
    let base = folder("t-base");
    let store = Store::create(&base, SIZE, None, false).expect("create");
    let error = Store::create(&base, SIZE, None, false).expect_err("taken");
    assert!(error.message.contains("cannot create"), "{error:?}");
    assert!(base.join("data").exists());
    store.remove().expect("remove");
}

#[test]
fn a_place_where_no_image_can_be_made_is_refused_before_it_is_too_late() {
    let (base, taken, free) = (folder("p-base"), folder("p-taken"), folder("p-free"));
    let store = Store::create(&base, SIZE, None, false).expect("create");
    fs::create_dir_all(taken.join("something")).expect("a folder that is not empty");
    for (target, part) in [(taken.as_path(), "already exists"), (Path::new("/proc/new"), "another file system")] {
        let error = store.require_savable(target).expect_err(part);
        assert!(error.message.contains(part), "{error:?}");
    }
    store.require_savable(&free.join("deep/image")).expect("its folders are made with it");
    store.require_savable(&free).expect("beside the content");
    for path in [base, taken] {
        fs::remove_dir_all(path).expect("clean up");
    }
}

#[test]
fn random_writes_zeros_and_clones_agree_with_plain_bytes() {
    random_steps(&std::env::temp_dir());
}

#[test]
fn random_writes_zeros_and_clones_agree_in_memory_too() {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        random_steps(memory);
    }
}

fn random_steps(above: &Path) {
    let mut random = 0x2545_f491_4f6c_dd1du64;
    let mut next = |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };
    let mut truth = vec![0u8; SIZE as usize];
    let mut images = Vec::new();
    let mut store = Store::create(&folder_in(above, "r-0"), SIZE, None, false).expect("create");
    for step in 0..2_000u64 {
        let first = next(SIZE / BLOCK_BYTES);
        let count = 1 + next((SIZE / BLOCK_BYTES - first).min(16));
        let (at, end) = ((first * BLOCK_BYTES) as usize, ((first + count) * BLOCK_BYTES) as usize);
        if next(4) == 0 {
            store.zero(at as u64, (end - at) as u64).expect("zero");
            truth[at..end].fill(0);
        } else {
            let byte = next(255) as u8 + 1;
            store.write(&truth[at..end].iter().map(|_| byte).collect::<Vec<_>>(), at as u64).expect("write");
            truth[at..end].fill(byte);
        }
        let seen = read(&store, at as u64, (end - at) / BLOCK_BYTES as usize);
        assert!(seen == truth[at..end], "step {step}");
        if step % 500 == 499 {
            let image = folder_in(above, &format!("r-image-{step}"));
            store.save(&image).expect("save");
            store = Store::create(&folder_in(above, &format!("r-{step}")), SIZE, Some(&image), false).expect("clone");
            images.push(image);
        }
    }
    for block in 0..SIZE / BLOCK_BYTES {
        let at = (block * BLOCK_BYTES) as usize;
        assert!(read(&store, at as u64, 1) == truth[at..at + BLOCK_BYTES as usize], "block {block}");
    }
    store.remove().expect("remove");
    for path in images {
        fs::remove_dir_all(path).expect("clean up");
    }
}

/// Minor faults of this thread so far (`proc_pid_stat(5)`, field 10).
fn faults() -> u64 {
    let stat = fs::read_to_string("/proc/thread-self/stat").expect("facts of this thread");
    let after_name = stat.rsplit_once(") ").expect("the name is in brackets").1;
    after_name.split(' ').nth(7).and_then(|text| text.parse().ok()).expect("a number")
}

/// Else each page costs an interruption of its first copy, long after it was written and within some request's time.
#[test]
fn what_was_written_once_is_overwritten_without_a_fault() {
    let memory = Path::new("/dev/shm");
    if !memory.is_dir() {
        return;
    }
    let store = Store::create(&folder_in(memory, "faults"), SIZE, None, false).expect("create");
    let (first, second) = (block(1, 64), block(2, 64));
    // Not of zeros: those have no memory before they are written, and each of their pages would be a fault.
    let mut seen = block(3, 64);
    store.write(&first, 0).expect("write");
    let before = faults();
    store.write(&second, 0).expect("overwrite");
    store.read(&mut seen, 0).expect("read");
    let after = faults();
    assert_eq!(seen, second);
    assert!(after - before < 8, "{} faults for 64 pages", after - before);
    store.remove().expect("remove");
}
