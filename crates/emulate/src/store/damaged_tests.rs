//! Images whose files have any bytes: read right, or refused; never a panic, and never more memory or time than the files are long.

use std::fs;
use std::path::{Path, PathBuf};

use pgdyno_host::Fault;
use proptest::prelude::*;

use super::*;

const SIZE: u64 = 4 << 20;

/// A folder that is gone at the end of a test, also of one that fails.
struct Home(PathBuf);

impl Home {
    fn new(name: &str) -> Self {
        // In memory where there is some: nothing waits for a disk there.
        let memory = Path::new("/dev/shm");
        let above = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let path = above.join(format!("pgdyno-damaged-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a folder");
        Self(path.canonicalize().expect("a path"))
    }

    /// Two images, of which the upper one stands on the lower one.
    fn images(&self) -> (PathBuf, PathBuf) {
        let (lower, upper) = (self.0.join("lower"), self.0.join("upper"));
        for (image, below) in [(&lower, None), (&upper, Some(&*lower))] {
            let store = Store::create(&self.0.join("a-1"), SIZE, below, false).expect("create");
            store.write(&[7; 8192], if below.is_some() { 4096 } else { 0 }).expect("write");
            store.save(image).expect("save");
        }
        (lower, upper)
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Does with an image what commands do.
fn use_image(home: &Path, image: &Path, below: &Path) -> Result<(), Fault> {
    let _ = stored_bytes(&[image.to_owned()]);
    let wanted = |dry_run: bool| Collection {
        unlisted: vec![below.to_owned()],
        needed: vec![image.to_owned()],
        merge: !dry_run,
        dry_run,
    };
    let _ = collect(&wanted(true));
    let store = Store::create(&home.join("a-1"), SIZE, Some(image), false)?;
    let mut seen = vec![0; SIZE as usize];
    let read = store.read(&mut seen, 0);
    store.remove().expect("remove");
    drop(store);
    let _ = collect(&wanted(false));
    read.map_err(|error| Fault::new(error.to_string(), ""))
}

/// Bytes like those of a file, and unlike them.
fn bytes_like(whole: Vec<u8>) -> impl Strategy<Value = Vec<u8>> {
    let len = whole.len().max(1);
    let changed = prop::collection::vec((0..len, any::<u8>()), 1..6).prop_map(move |changes| {
        let mut bytes = whole.clone();
        bytes.resize(len, 0);
        for (at, byte) in changes {
            bytes[at] = byte;
        }
        bytes
    });
    prop_oneof![4 => (changed, 0..=len).prop_map(|(mut bytes, cut)| { bytes.truncate(cut.max(1)); bytes }), 1 => prop::collection::vec(any::<u8>(), 0..300)]
}

#[test]
fn an_image_of_any_bytes_is_read_or_refused() {
    let home = Home::new("bytes");
    let (_, upper) = home.images();
    let meta = fs::read(upper.join("image.json")).expect("read");
    let json = prop_oneof![
        bytes_like(meta),
        (any::<u64>(), "[a-z/.]{0,12}").prop_map(|(size, parent)| {
            format!("{{\"version\":1,\"size_bytes\":{size},\"parent\":\"{parent}\"}}").into_bytes()
        }),
    ];
    let file = prop_oneof![
        json.prop_map(|bytes| ("image.json", bytes)),
        bytes_like(fs::read(upper.join("map")).expect("read")).prop_map(|bytes| ("map", bytes)),
        bytes_like(br#""/nowhere/image""#.to_vec()).prop_map(|bytes| ("saved", bytes)),
        bytes_like(vec![0; 8192]).prop_map(|bytes| ("data", bytes)),
    ];
    let config = ProptestConfig { cases: 250, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |((name, bytes) in file, of_lower in any::<bool>())| {
        let _ = fs::remove_dir_all(&home.0);
        fs::create_dir_all(&home.0).expect("a folder");
        let (lower, upper) = home.images();
        fs::write(if of_lower { &lower } else { &upper }.join(name), bytes).expect("write");
        if let Err(error) = use_image(&home.0, &upper, &lower) {
            prop_assert!(error.message.len() < 1000, "{}", error.message);
            prop_assert!(!error.remedy.is_empty() || error.code.is_empty());
        }
    });
}

#[test]
fn an_image_that_cannot_be_is_refused_by_its_code() {
    let home = Home::new("codes");
    let refused = |make: &dyn Fn(&Path, &Path)| {
        let _ = fs::remove_dir_all(&home.0);
        fs::create_dir_all(&home.0).expect("a folder");
        let (lower, upper) = home.images();
        make(&lower, &upper);
        Store::create(&home.0.join("a-1"), SIZE, Some(&upper), false).map(drop).expect_err("refused").code
    };
    let write = |folder: &Path, name: &str, bytes: &[u8]| fs::write(folder.join(name), bytes).expect("write");
    let on = |folder: &Path, parent: &Path, size: u64| {
        let parent = parent.display();
        write(
            folder,
            "image.json",
            format!("{{\"version\":1,\"size_bytes\":{size},\"parent\":\"{parent}\"}}").as_bytes(),
        );
    };
    assert_eq!(refused(&|_, upper| write(upper, "image.json", b"{")), "image.damaged");
    assert_eq!(refused(&|_, upper| write(upper, "image.json", &[b' '; 1 << 20])), "image.damaged");
    assert_eq!(refused(&|_, upper| fs::remove_file(upper.join("image.json")).expect("remove")), "image.missing");
    assert_eq!(refused(&|lower, upper| on(upper, lower, SIZE * 2)), "image.damaged", "its data is shorter");
    assert_eq!(refused(&|lower, upper| on(upper, lower, u64::MAX)), "image.damaged");
    assert_eq!(refused(&|lower, upper| on(lower, upper, SIZE)), "image.damaged", "each stands on the other");
    assert_eq!(refused(&|_, upper| write(upper, "map", &[0; 8])), "image.damaged");
    assert_eq!(refused(&|_, upper| write(upper, "data", &[0; 8])), "image.damaged");
    assert_eq!(refused(&|lower, _| fs::remove_dir_all(lower).expect("remove")), "image.base.missing");
}

#[test]
fn a_map_that_is_as_long_as_the_largest_file_is_read_at_once() {
    let home = Home::new("long");
    let (_, upper) = home.images();
    // What a map says where its file has nothing is nothing, however long that is.
    let (size, map_bytes) = (1u64 << 43, 1u64 << 28);
    let grow = |name: &str, len: u64| {
        fs::OpenOptions::new().write(true).open(upper.join(name)).and_then(|file| file.set_len(len)).expect("grow");
    };
    grow("map", map_bytes);
    grow("data", size);
    let meta = format!("{{\"version\":1,\"size_bytes\":{size},\"parent\":null}}");
    fs::write(upper.join("image.json"), meta).expect("write");
    let begin = cpu_s();
    assert_eq!(stored_bytes(&[upper]).expect("sizes")[0].held_bytes, 512 << 10);
    assert!(cpu_s() - begin < 1.0);
}

fn cpu_s() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
