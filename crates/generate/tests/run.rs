//! Files are the same however they are made.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use pgdyno_dataset::{DataFile, Rows};
use pgdyno_generate::imdb::{File, files};
use pgdyno_generate::{GenerateSpec, run};

/// A folder of the test's own, gone afterwards.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("pgdyno-generate-{}-{name}", std::process::id()));
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn asked(set: Vec<DataFile>, folder: &Folder) -> GenerateSpec {
    let (out, files) = (folder.0.clone(), Vec::new());
    GenerateSpec { set, scale: 1.0, seed: None, out, files, gzip: false, overwrite: false, threads: 1 }
}

fn made(name: &str, gzip: bool, threads: usize) -> BTreeMap<String, Vec<u8>> {
    let folder = Folder::new(name);
    let spec = GenerateSpec { gzip, threads, ..asked(files(0.0005, 7).unwrap(), &folder) };
    let mut said = Vec::new();
    run(&spec, &mut said).unwrap();
    let said = String::from_utf8(said).unwrap();
    assert_eq!(said.lines().filter(|line| line.starts_with("{\"file\"")).count(), 7);
    assert!(said.lines().last().unwrap().starts_with("{\"summary\""));
    std::fs::read_dir(&folder.0)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            (path.file_name().unwrap().to_str().unwrap().to_owned(), std::fs::read(path).unwrap())
        })
        .collect()
}

#[test]
fn threads_and_compression_change_nothing() {
    let (one, three, packed) = (made("one", false, 1), made("three", false, 3), made("packed", true, 2));
    assert_eq!(one, three);
    assert_eq!(one.keys().cloned().collect::<Vec<_>>(), File::ALL.map(|file| format!("{}.tsv", file.name())).to_vec());
    for (name, bytes) in &one {
        let mut text = Vec::new();
        let stored = &packed[&format!("{name}.gz")];
        std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&stored[..]), &mut text).unwrap();
        assert_eq!(&text, bytes, "{name}");
        let file = File::named(name.trim_end_matches(".tsv")).unwrap();
        let head = bytes.split(|byte| *byte == b'\n').next().unwrap();
        assert_eq!(std::str::from_utf8(head).unwrap(), file.columns().join("\t"));
    }
}

#[test]
fn what_cannot_be_made_is_refused_with_a_remedy() {
    for (scale, word) in [(0.0, "the scale is 0"), (f64::NAN, "the scale is NaN"), (11.0, "the scale is 11")] {
        let error = files(scale, 1).unwrap_err();
        assert!(error.message.contains(word) && !error.remedy.is_empty(), "{error}");
    }
    for (names, out, word) in [
        (vec!["title.cast".to_owned()], "/nowhere", "there is no file title.cast"),
        (vec!["title.ratings.tbl".to_owned()], "/nowhere", "there is no file title.ratings.tbl"),
        (Vec::new(), "/dev/null/folder", "/dev/null/folder cannot be written"),
    ] {
        let folder = Folder(PathBuf::from(out));
        let spec = GenerateSpec { files: names, ..asked(files(0.1, 1).unwrap(), &folder) };
        let error = run(&spec, &mut Vec::new()).unwrap_err();
        assert!(error.message.contains(word) && !error.remedy.is_empty(), "{error}");
    }
}

/// Units of very different length: the first of each hundred takes as long as thousands of others.
#[derive(Debug)]
struct Uneven;

impl Rows for Uneven {
    fn units(&self) -> u64 {
        20_000
    }

    fn write(&self, unit: u64, out: &mut Vec<u8>) -> u64 {
        let values = if unit.is_multiple_of(100) { 20_000 } else { 1 };
        (0..values).for_each(|value| out.extend_from_slice(format!("{unit} {value}\n").as_bytes()));
        values
    }
}

#[test]
fn blocks_are_in_their_order_whoever_makes_them() {
    let folder = Folder::new("uneven");
    let file =
        DataFile { name: "uneven", suffix: "tbl".into(), head: None, bytes_per_row: 3000, rows: Arc::new(Uneven) };
    let spec = GenerateSpec { threads: 8, ..asked(vec![file], &folder) };
    run(&spec, &mut Vec::new()).unwrap();
    let mut wanted = Vec::new();
    for unit in 0..Uneven.units() {
        Uneven.write(unit, &mut wanted);
    }
    assert!(std::fs::read(folder.0.join("uneven.tbl")).unwrap() == wanted, "the file of one thread");
}

/// Rows of which one cannot be made.
#[derive(Debug)]
struct Broken;

impl Rows for Broken {
    fn units(&self) -> u64 {
        20_000
    }

    fn write(&self, unit: u64, out: &mut Vec<u8>) -> u64 {
        assert!(unit != 10_000, "row {unit} cannot be made");
        out.extend_from_slice(format!("{unit}\n").as_bytes());
        1
    }
}

#[test]
fn a_panic_ends_all_threads_with_its_message_and_leaves_no_file() {
    let folder = Folder::new("broken");
    let file =
        DataFile { name: "broken", suffix: "tbl".into(), head: None, bytes_per_row: 3000, rows: Arc::new(Broken) };
    let spec = GenerateSpec { threads: 4, ..asked(vec![file], &folder) };
    let error = run(&spec, &mut Vec::new()).unwrap_err();
    assert_eq!(
        (error.code.as_ref(), error.data["message"].as_str()),
        ("engine.panic", Some("row 10000 cannot be made"))
    );
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 0);
}

#[test]
fn a_file_that_is_there_stays_unless_it_may_be_replaced() {
    let folder = Folder::new("there");
    std::fs::create_dir(&folder.0).unwrap();
    let path = folder.0.join("title.ratings.tsv");
    std::fs::write(&path, "mine").unwrap();
    let spec = asked(files(0.0005, 7).unwrap(), &folder);
    let error = run(&spec, &mut Vec::new()).unwrap_err();
    assert!(error.message.ends_with("title.ratings.tsv is there already"), "{error}");
    assert!(error.remedy.contains("--overwrite"), "{error}");
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 1, "nothing was begun");
    assert_eq!(std::fs::read(&path).unwrap(), b"mine");
    run(&GenerateSpec { overwrite: true, ..spec }, &mut Vec::new()).unwrap();
    assert!(std::fs::read(&path).unwrap().starts_with(b"tconst\t"));
}
