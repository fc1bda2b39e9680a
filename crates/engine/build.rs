//! Puts the identity of the engine's sources into the binary, as `PGDYNO_BUILD_HASH`.
//!
//! The Python package computes the same number (`python/pgdyno/_build.py`) and refuses an engine that was built from
//! other sources. A test compares the two; whoever changes the rule changes both.

use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};

const SKIPPED_FOLDERS: [&str; 5] = ["tests", "benches", "examples", "target", "published"];
const SKIPPED_FILES: [&str; 2] = ["clippy.toml", "rustfmt.toml"];

fn main() {
    let manifest = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR"));
    let root = manifest.ancestors().nth(2).expect("this crate lies in crates/engine").to_path_buf();

    let mut names: Vec<String> = ["Cargo.lock", "Cargo.toml"].iter().map(|name| (*name).to_string()).collect();
    names.retain(|name| root.join(name).is_file());
    for top in ["crates", "catalog"] {
        collect(&root, top, &mut names);
    }
    names.sort();

    let mut digest = Sha256::new();
    for name in &names {
        let path = root.join(name);
        let content = fs::read(&path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
        digest.update(name.as_bytes());
        digest.update([0]);
        digest.update((content.len() as u64).to_le_bytes());
        digest.update(&content);
        println!("cargo::rerun-if-changed={}", path.display());
    }
    let hash: String = digest.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    println!("cargo::rustc-env=PGDYNO_BUILD_HASH={hash}");
}

/// Adds the files below `folder` (relative to `root`) that can change the engine, and has cargo watch their folders.
fn collect(root: &Path, folder: &str, names: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(root.join(folder)) else {
        return;
    };
    for entry in entries {
        let entry = entry.expect("a source folder can be listed");
        let name = entry.file_name().into_string().expect("source files have UTF-8 names");
        if name.starts_with('.') {
            continue;
        }
        let relative = format!("{folder}/{name}");
        if entry.path().is_dir() {
            if SKIPPED_FOLDERS.contains(&name.as_str()) {
                continue;
            }
            // A new file must be seen too. Cargo looks into a folder recursively, so a crate's own folder is not
            // watched: that would rebuild the engine whenever a test changes.
            if name == "src" || folder == "catalog" {
                println!("cargo::rerun-if-changed={}", entry.path().display());
            }
            collect(root, &relative, names);
        } else if !SKIPPED_FILES.contains(&name.as_str()) {
            names.push(relative);
        }
    }
}
