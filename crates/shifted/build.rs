//! Makes the library of `src/preload.rs`, with no part of Rust's own library in it, for `lib.rs` to embed.

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

/// Nothing in it panics, but the language asks what would be done.
const ROOT: &str = "#[panic_handler]\nfn panic(_: &core::panic::PanicInfo<'_>) -> ! {\n    loop {}\n}\n";

fn main() {
    let variable = |name: &str| env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"));
    let source = PathBuf::from(variable("CARGO_MANIFEST_DIR")).join("src/preload.rs");
    println!("cargo::rustc-check-cfg=cfg(preloaded)");
    println!("cargo::rerun-if-changed={}", source.display());

    let folder = PathBuf::from(variable("OUT_DIR"));
    let root = folder.join("root.rs");
    let text = format!("#![no_std]\n#[path = {source:?}]\nmod preload;\n{ROOT}");
    fs::write(&root, text).unwrap_or_else(|error| panic!("cannot write {}: {error}", root.display()));

    let mut rustc = Command::new(variable("RUSTC"));
    rustc.args(["--crate-name=pgdyno_shifted", "--crate-type=cdylib", "--edition=2024", "--cfg=preloaded"]);
    rustc.args(["-Copt-level=2", "-Cpanic=abort", "--target", &variable("TARGET")]);
    // The one that cargo links with for this target, where one was chosen.
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        rustc.arg(format!("-Clinker={linker}"));
    }
    rustc.arg("-o").arg(folder.join("shifted.so")).arg(root);
    let ended = rustc.status().unwrap_or_else(|error| panic!("{rustc:?} does not run: {error}"));
    assert!(ended.success(), "{rustc:?} failed");
}
