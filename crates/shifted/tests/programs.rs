//! The library, loaded into programs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use pgdyno_shifted::{LIBRARY, VARIABLE};

const DAY_S: i64 = 86_400;

fn written() -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("shifted.so");
    fs::write(&path, LIBRARY).expect("written");
    path
}

/// Seconds since 1970, as a program says.
fn said(shift_us: Option<&str>) -> i64 {
    let mut date = Command::new("date");
    if let Some(shift_us) = shift_us {
        date.env("LD_PRELOAD", written()).env(VARIABLE, shift_us);
    }
    let ended = date.arg("+%s").output().expect("date");
    assert!(ended.stderr.is_empty(), "{}", String::from_utf8_lossy(&ended.stderr));
    String::from_utf8_lossy(&ended.stdout).trim().parse().expect("a number")
}

#[test]
fn a_program_with_the_library_has_another_day() {
    let before = said(None);
    let found = said(Some("-34560000000000"));
    let after = said(None);
    assert!((before..=after).contains(&(found + 400 * DAY_S)), "{before} {found} {after}");
}

#[test]
fn the_library_needs_nothing_but_libc() {
    // Rust's own library would bring libgcc_s, and a server need not have it.
    let held = |name: &[u8]| LIBRARY.windows(name.len()).any(|part| part == name);
    assert!(held(b"libc.so.6"));
    assert!(!held(b"libgcc_s"));
}
