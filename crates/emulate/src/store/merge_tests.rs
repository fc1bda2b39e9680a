//! Chains of snapshots with deletions, against a model that keeps full copies.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::collect::Why;
use super::merge::{Merged, kill_after, merge, piece_bytes};

use super::*;

const BLOCK: usize = BLOCK_BYTES as usize;
const SNAPSHOT_BLOCK: usize = 512 << 10;
const SIZE: usize = 8 << 20;
const SNAPSHOTS: usize = 30;

/// A folder that is gone at the end of a test, also of one that fails.
struct Home(PathBuf);

impl Home {
    fn new(name: &str) -> Self {
        // In memory where there is some: nothing waits for a disk there.
        let memory = Path::new("/dev/shm");
        let above = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let path = above.join(format!("pgdyno-merge-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a folder");
        Self(path.canonicalize().expect("a path"))
    }

    fn names(&self) -> BTreeSet<String> {
        let entries = fs::read_dir(&self.0).expect("a folder");
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("a name")).collect()
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

/// The same numbers each time.
struct Random(u64);

impl Random {
    fn below(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below as u64) as usize
    }
}

fn collected(unlisted: &[PathBuf], needed: &[PathBuf]) -> Collected {
    collect(&Collection { unlisted: unlisted.to_vec(), needed: needed.to_vec(), merge: true, dry_run: false })
}

fn why(collected: &Collected, image: &Path) -> Option<String> {
    collected.kept.iter().find(|kept| kept.image == image).map(|kept| format!("{:?}", kept.why))
}

/// Bytes that the data of layers in a folder takes.
fn allocated(home: &Path) -> u64 {
    let folders = fs::read_dir(home).expect("a folder").map(|entry| entry.expect("an entry").path());
    folders.filter_map(|folder| fs::metadata(folder.join("data")).ok()).map(|facts| facts.blocks() * 512).sum()
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
    content_of(image, clone, SIZE)
}

fn content_of(image: &Path, clone: &Path, size: usize) -> Vec<u8> {
    let store = Store::create(clone, size as u64, Some(image), false).expect("clone");
    let mut content = vec![0xee; size];
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
    let (home, clones) = (Home::new("chain"), Home::new("chain-clones"));
    let image = |name: usize| home.join(format!("snap-{name}"));
    let store = Store::create(&clones.join("v-1"), SIZE as u64, None, false).expect("create");
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let mut now = Copy { name: 0, content: vec![0; SIZE], written: vec![None; SIZE / SNAPSHOT_BLOCK] };
    let (mut copies, mut deleted): (Vec<Copy>, Vec<PathBuf>) = (Vec::new(), Vec::new());
    let listed = |copies: &[Copy]| copies.iter().map(|copy| image(copy.name)).collect::<Vec<_>>();
    for name in 0..SNAPSHOTS {
        for _ in 0..1 + random.below(12) {
            let at = random.below(SIZE / BLOCK) * BLOCK;
            let end = SIZE.min(at + (1 + random.below(40)) * BLOCK);
            let byte = if random.below(4) == 0 { 0 } else { random.below(255) as u8 + 1 };
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
        while copies.len() > 2 && random.below(2) == 0 {
            deleted.push(image(copies.remove(random.below(copies.len())).name));
        }
        let before = allocated(&home);
        let kept = collected(&deleted, &listed(&copies)).kept;
        assert!(kept.iter().all(|kept| matches!(kept.why, Why::InUse | Why::Shared)), "{kept:?}");
        assert!(allocated(&home) <= before, "what is read is not copied");
        assert_eq!(stored_bytes(&listed(&copies)).expect("sizes"), stored_by(&copies), "after snapshot {name}");
        for copy in &copies {
            assert!(content(&image(copy.name), &clones.join("c-1")) == copy.content, "{} of {name}", copy.name);
        }
    }
    assert!(deleted.len() > SNAPSHOTS / 3, "{} were deleted", deleted.len());
    // No block is there twice for the same snapshot: at most each one's for each of them, and the volume's.
    assert!(allocated(&home) <= ((copies.len() + 1) * SIZE) as u64);
    let mut seen = vec![0; SIZE];
    store.read(&mut seen, 0).expect("read");
    assert!(seen == now.content, "the volume, which has the files of all of them open");
    store.remove().expect("remove");
    drop(store);
    collected(&deleted, &listed(&copies));
    assert_eq!(home.names(), copies.iter().map(|copy| format!("snap-{}", copy.name)).collect());
    assert_eq!(stored_bytes(&listed(&copies)).expect("sizes"), stored_by(&copies));
    while !copies.is_empty() {
        for copy in &copies {
            assert!(content(&image(copy.name), &clones.join("c-1")) == copy.content, "{}", copy.name);
        }
        let gone = image(copies.remove(random.below(copies.len())).name);
        assert_eq!(collected(&[gone], &listed(&copies)).kept.len(), 0);
    }
    assert_eq!(home.names(), BTreeSet::new());
}

/// Makes a chain of images of volumes that grow, and a copy of each one's content.
fn chain(home: &Path, clones: &Path, random: &mut Random, blocks: &[usize]) -> Vec<(PathBuf, Vec<u8>)> {
    let (mut images, mut content): (Vec<(PathBuf, Vec<u8>)>, Vec<u8>) = (Vec::new(), Vec::new());
    for (number, blocks) in blocks.iter().enumerate() {
        content.resize((1 << 20) + ((number / 2) << 19), 0);
        let below = images.last().map(|(image, _)| image.as_path());
        let store = Store::create(&clones.join("v-1"), content.len() as u64, below, false).expect("create");
        for _ in 0..*blocks {
            let at = random.below(content.len() / BLOCK) * BLOCK;
            let part = &mut content[at..at + BLOCK];
            part.fill(random.below(256) as u8);
            if part[0] == 0 {
                store.zero(at as u64, BLOCK as u64).expect("zero");
            } else {
                store.write(part, at as u64).expect("write");
            }
        }
        let image = home.join(format!("snap-{number}"));
        store.save(&image).expect("save");
        // It is listed as a snapshot, and not one that somebody may move.
        if let Some(below) = below {
            fs::rename(below.join("saved"), below.join("above")).expect("rename");
        }
        images.push((image, content.clone()));
    }
    images
}

fn copy_tree(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder").map(|entry| entry.expect("an entry")) {
        if entry.path().is_dir() {
            copy_tree(&entry.path(), &to.join(entry.file_name()));
        } else {
            fs::copy(entry.path(), to.join(entry.file_name())).expect("copy");
        }
    }
}

#[test]
fn a_collection_that_is_killed_anywhere_loses_nothing_and_can_be_done_again() {
    let (home, as_it_was, clones) = (Home::new("killed"), Home::new("killed-copy"), Home::new("killed-clones"));
    // Few blocks on many, many on few, and alike: what moves is the smaller part, up or down.
    for (seed, blocks) in [[200, 20, 30, 5], [3, 200, 10, 200], [40, 40, 40, 40]].into_iter().enumerate() {
        let mut random = Random(0x9e37_79b9_7f4a_7c15 + seed as u64);
        let _ = fs::remove_dir_all(&*home);
        let images = chain(&home, &clones, &mut random, &blocks);
        copy_tree(&home, &as_it_was);
        let mut steps = 0;
        loop {
            copy_tree(&as_it_was, &home);
            let before = allocated(&home);
            let (listed, unlisted): (Vec<_>, Vec<_>) =
                images.iter().enumerate().partition(|(number, _)| *number == 3 || (*number == 1 && steps % 2 == 0));
            let paths = |some: &[(usize, &(PathBuf, Vec<u8>))]| -> Vec<PathBuf> {
                some.iter().map(|(_, (path, _))| path.clone()).collect()
            };
            kill_after(Some(steps));
            let killed = !collected(&paths(&unlisted), &paths(&listed)).kept.is_empty();
            kill_after(None);
            assert!(allocated(&home) <= before + piece_bytes(), "a piece is there twice at most");
            let whole = |when: &str| {
                for (number, (image, expected)) in &listed {
                    let content = content_of(image, &clones.join("c-1"), expected.len());
                    assert!(content == *expected, "{number} {when} {steps} steps of {blocks:?}");
                }
            };
            whole("killed after");
            assert_eq!(collected(&paths(&unlisted), &paths(&listed)).kept.len(), 0, "after {steps}");
            whole("again after");
            assert_eq!(home.names().len(), listed.len());
            if !killed && steps > 0 {
                break;
            }
            steps += if steps < 40 { 1 } else { 7 };
        }
        assert!(steps > 20, "{steps}");
    }
}

#[test]
fn a_layer_that_a_volume_reads_directly_is_left_as_it_is() {
    let (home, clones) = (Home::new("direct"), Home::new("direct-clones"));
    let images = chain(&home, &clones, &mut Random(7), &[60, 60]);
    let [(lower, below), (upper, above)] = &images[..] else { panic!("two") };
    let on_it = Store::create(&clones.join("a-1"), below.len() as u64, Some(lower), false).expect("clone");
    let result = collected(std::slice::from_ref(lower), std::slice::from_ref(upper));
    assert_eq!(why(&result, lower).as_deref(), Some("InUse"));
    let mut seen = vec![0; below.len()];
    on_it.read(&mut seen, 0).expect("read");
    assert!(seen == *below);
    on_it.remove().expect("remove");
    drop(on_it);
    let (image, clone) = (clones.join("image"), clones.join("b-1"));
    let over_both = Store::create(&clone, above.len() as u64, Some(upper), false).expect("clone");
    let before = allocated(&home);
    let result = collected(std::slice::from_ref(lower), std::slice::from_ref(upper));
    assert_eq!(why(&result, lower).as_deref(), Some("InUse"));
    assert!(allocated(&home) < before, "what nobody reads is given back");
    over_both.read(&mut seen, 0).expect("read");
    assert!(seen == *above);
    over_both.save(&image).expect("save");
    drop(over_both);
    assert_eq!(collected(std::slice::from_ref(lower), std::slice::from_ref(upper)).kept.len(), 0);
    assert!(content_of(&image, &clones.join("c-1"), above.len()) == *above);
}

#[test]
fn what_came_to_stand_on_a_layer_since_it_was_looked_at_is_found_in_its_folder() {
    let (home, clones) = (Home::new("since"), Home::new("since-clones"));
    let images = chain(&home, &clones, &mut Random(19), &[60, 60]);
    let [(lower, below), (upper, _)] = &images[..] else { panic!("two") };
    let volume = Store::create(&clones.join("a-1"), below.len() as u64, Some(lower), false).expect("clone");
    let unknown = home.join("taken-meanwhile");
    freeze_one(&volume, &unknown);
    let before = allocated(&home);
    assert_eq!(merge(lower, upper).expect("answered"), Merged::Shared);
    assert_eq!(
        why(&collected(std::slice::from_ref(lower), std::slice::from_ref(upper)), lower).as_deref(),
        Some("Shared")
    );
    volume.remove().expect("remove");
    drop(volume);
    assert_eq!(allocated(&home), before, "nothing of it was given back");
    assert!(content_of(&unknown, &clones.join("c-1"), below.len()) == *below);
}

#[test]
fn what_a_saved_image_stands_on_stays_when_the_image_is_away() {
    let (home, clones) = (Home::new("away"), Home::new("away-clones"));
    let images = chain(&home, &clones, &mut Random(11), &[60, 60]);
    let [(lower, _), (upper, content)] = &images[..] else { panic!("two") };
    let (saved, moved) = (clones.join("saved"), clones.join("moved"));
    let volume = Store::create(&clones.join("a-1"), content.len() as u64, Some(upper), false).expect("clone");
    volume.save(&saved).expect("save");
    drop(volume);
    fs::rename(&saved, &moved).expect("move");
    let both = [lower.clone(), upper.clone()];
    let result = collected(&both, &[]);
    assert_eq!(result.removed, std::slice::from_ref(lower), "it was merged into the one above");
    assert_eq!(why(&result, upper), Some(format!("ImageMissing {{ images: [{saved:?}] }}")));
    assert!(content_of(&moved, &clones.join("c-1"), content.len()) == *content);
    // Another image at the same place is not that one.
    let other = Store::create(&clones.join("a-1"), 1 << 20, None, false).expect("create");
    other.save(&saved).expect("save");
    drop(other);
    assert!(why(&collected(&both, &[]), upper).is_some());
    fs::remove_dir_all(&saved).expect("remove");
    fs::rename(&moved, &saved).expect("move back");
    assert_eq!(collected(&both, &[]).kept.len(), 0);
    assert_eq!(home.names(), BTreeSet::new());
    assert!(content_of(&saved, &clones.join("c-1"), content.len()) == *content, "merged into the image");
    fs::remove_dir_all(&saved).expect("remove");
}

#[test]
fn an_unfinished_layer_goes_and_keeps_no_other() {
    let (home, clones) = (Home::new("unfinished"), Home::new("unfinished-clones"));
    let images = chain(&home, &clones, &mut Random(13), &[20, 20, 20]);
    let paths: Vec<PathBuf> = images.iter().map(|(path, _)| path.clone()).collect();
    fs::remove_file(paths[2].join("image.json")).expect("remove");
    let held = Store::create(&clones.join("a-1"), 2 << 20, Some(&paths[1]), false).expect("clone");
    let dry = Collection { unlisted: paths.clone(), needed: Vec::new(), merge: true, dry_run: true };
    assert_eq!(collect(&dry).removed, paths[2..]);
    let result = collected(&paths, &[]);
    assert_eq!(result.removed, paths[2..]);
    held.remove().expect("remove");
    drop(held);
    assert_eq!(collect(&dry).removed, [paths[1].clone(), paths[0].clone()], "the later ones first");
    assert_eq!(collected(&paths, &[]).kept.len(), 0);
    assert_eq!(home.names(), BTreeSet::new());
}

#[test]
fn below_a_damaged_image_nothing_is_removed() {
    let (home, clones) = (Home::new("damaged"), Home::new("damaged-clones"));
    let images = chain(&home, &clones, &mut Random(17), &[20, 20]);
    let [(lower, _), (upper, _)] = &images[..] else { panic!("two") };
    fs::write(upper.join("image.json"), "{").expect("write");
    let result = collected(std::slice::from_ref(lower), std::slice::from_ref(upper));
    assert_eq!(why(&result, lower), Some(format!("Damaged {{ by: {upper:?} }}")));
    assert!(lower.exists());
}
