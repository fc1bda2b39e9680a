//! Files are the same however they are made.

use std::collections::BTreeMap;
use std::path::PathBuf;

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

fn made(name: &str, gzip: bool, threads: usize) -> BTreeMap<String, Vec<u8>> {
    let folder = Folder::new(name);
    let spec =
        GenerateSpec { set: files, scale: 0.0005, out: folder.0.clone(), files: Vec::new(), gzip, seed: 7, threads };
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
    let spec = |scale, files: &[&str], out: &str| GenerateSpec {
        set: self::files,
        scale,
        out: PathBuf::from(out),
        files: files.iter().map(|name| (*name).to_owned()).collect(),
        gzip: false,
        seed: 1,
        threads: 1,
    };
    for (asked, word) in [
        (spec(0.0, &[], "/nowhere"), "the scale is 0"),
        (spec(f64::NAN, &[], "/nowhere"), "the scale is NaN"),
        (spec(11.0, &[], "/nowhere"), "the scale is 11"),
        (spec(0.1, &["title.cast"], "/nowhere"), "there is no file title.cast"),
        (spec(0.1, &[], "/dev/null/folder"), "/dev/null/folder cannot be written"),
    ] {
        let error = run(&asked, &mut Vec::new()).unwrap_err();
        assert!(error.message.contains(word) && !error.remedy.is_empty(), "{error}");
    }
}
