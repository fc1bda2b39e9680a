//! Logs and captures that are made to harm: nothing panics, and nothing takes more memory or time than it should. `PGDYNO_FUZZ_S` lets each
//! of these go on for so many seconds.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pgdyno_capture::{CaptureFile, ReadSpec, ShowSpec, read, show};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::Value;

/// A folder that is gone at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("pgdyno-hostile-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, content).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Tries a case often enough, or for as long as it is asked for.
fn fuzz<S: Strategy>(cases: u32, strategy: S, case: impl Fn(S::Value)) {
    let seconds = std::env::var("PGDYNO_FUZZ_S").ok().and_then(|text| text.parse().ok()).unwrap_or(0.0);
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    loop {
        let config = Config { cases, failure_persistence: None, ..Config::default() };
        let tried = TestRunner::new(config).run(&strategy, |value| {
            case(value);
            Ok(())
        });
        tried.unwrap();
        if Instant::now() >= end {
            return;
        }
    }
}

/// Reads logs into a capture; what the last line says, or the error.
fn reads(logs: &[&Path], output: &Path, prefix: Option<&str>) -> Result<Value, pgdyno_capture::CaptureError> {
    let logs = logs.iter().map(|path| path.to_path_buf()).collect();
    let spec = ReadSpec { logs, output: output.to_owned(), prefix: prefix.map(str::to_owned), ..ReadSpec::default() };
    let mut out = Vec::new();
    read(&spec, &mut out)?;
    let last = String::from_utf8(out).unwrap().lines().last().unwrap().to_owned();
    Ok(serde_json::from_str::<Value>(&last).unwrap()["summary"].clone())
}

/// Everything that a capture can be asked.
fn look(path: &Path) {
    for session in [None, Some(1)] {
        let _ = show(&ShowSpec { capture: path.to_owned(), values: true, session });
    }
}

const CSV: &str = include_str!("../../../tests/capture/files/shop.csv");
const STDERR: &str = include_str!("../../../tests/capture/files/shop.log");
/// What is put into logs: numbers and letters at which readers went wrong.
const SPLINTERS: [&str; 22] = [
    "18446744073709551615",
    "9223372036854775807",
    "99999999999999999999",
    "-1",
    "4294967296",
    "\"",
    "\"\"",
    "\n",
    "\r\n",
    "\n\t",
    ",",
    "2026-11-25 07:04:42.123 UTC",
    "9999-12-31 24:59:60.999999 +15:59",
    "0000-01-01 00:00:00.0 UTC",
    "2026-11-25 07:04:42.123 +02:9223372036854775807",
    "duration: 18446744073709551615.9 ms  statement: SELECT 1",
    "duration: 1.00\u{e9} ms",
    "execute fetch from a/b: ",
    "$1 = 'a', $2 = NULL",
    "6563.fffffffff",
    ":[ @ ( ) [local] ::1",
    "\u{0}\u{fffd}\u{1f600}",
];

/// A change of a content: what is cut out at a share of its length, and what is put there.
#[derive(Debug, Clone)]
struct Change {
    share: f64,
    cut: usize,
    put: Vec<u8>,
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let put = prop_oneof![
        prop::sample::select(&SPLINTERS[..]).prop_map(|text| text.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 0..8),
    ];
    let change = (0.0..1.0, 0_usize..40, put).prop_map(|(share, cut, put)| Change { share, cut, put });
    prop::collection::vec(change, 1..12)
}

fn changed(content: &[u8], changes: &[Change]) -> Vec<u8> {
    let mut changed = content.to_vec();
    for change in changes {
        let at = ((changed.len() as f64 * change.share) as usize).min(changed.len());
        let end = (at + change.cut).min(changed.len());
        changed.splice(at..end, change.put.iter().copied());
    }
    changed
}

/// The first columns of a csvlog as a jsonlog, of the lines that are records by themselves.
fn json_log() -> String {
    let record = |(number, line): (usize, &str)| {
        let is_message =
            |column: &&str| ["statement: ", "execute ", "duration: "].iter().any(|begin| column.starts_with(begin));
        let message = line.split('"').find(is_message).unwrap_or("statement: SELECT 1");
        let document = serde_json::json!({
            "timestamp": line.get(..27)?, "user": "app", "dbname": "shop", "pid": 7, "remote_host": "10.0.0.1",
            "session_id": "6563.7", "line_num": number, "session_start": "2026-11-25 07:04:40 UTC", "vxid": "4/12",
            "error_severity": "LOG", "state_code": "00000", "message": message, "application_name": "shop",
        });
        line.starts_with("20").then(|| format!("{document}\n"))
    };
    CSV.lines().enumerate().filter_map(record).collect()
}

/// The lines of a log in what runtimes, the journal and stores put around them.
fn wrapped() -> Vec<String> {
    let all = |wrap: &dyn Fn(usize, &str) -> String| -> String {
        STDERR.lines().enumerate().map(|(n, line)| wrap(n, line)).collect()
    };
    let time = |n: usize| format!("2026-11-25T07:04:{:02}.000Z", n % 60);
    vec![
        all(&|n, line| format!("{} stderr {} {line}\n", time(n), if n % 7 == 3 { "P" } else { "F" })),
        all(&|n, line| format!("{} {line}\n", time(n))),
        all(&|n, line| format!("<134>1 {} db postgres {} - - [{n}-1] {line}\n", time(n), n % 3)),
        all(&|n, line| format!("Nov 25 07:04:{:02} db postgres[{}]: [{n}] {line}\n", n % 60, n % 3)),
        all(&|n, line| format!("{}\n", serde_json::json!({"log": format!("{line}\n"), "time": time(n)}))),
        format!(
            "[{}]",
            all(&|n, line| format!("{},", serde_json::json!({"textPayload": line, "timestamp": time(60 - n % 60)})))
        ),
        format!(
            "{{\"events\": [{}]}}",
            all(&|n, line| format!(
                "{},\n",
                serde_json::json!({"message": line, "timestamp": 1_795_590_280_000_u64 - n as u64})
            ))
        ),
        all(&|n, line| format!("__REALTIME_TIMESTAMP={n}\n_PID=7\nMESSAGE={line}\n\n")),
    ]
}

#[test]
fn logs_that_are_changed_anywhere_are_read_or_refused() {
    let (json, wrapped) = (json_log(), wrapped());
    let mut logs = vec![(CSV, None), (STDERR, None), (json.as_str(), None), (STDERR, Some("%m [%p] %q%u@%d/%a "))];
    logs.extend(wrapped.iter().map(|log| (log.as_str(), None)));
    for (log, _) in &logs {
        let folder = Folder::new();
        let found = reads(&[&folder.file("a.log", log.as_bytes())], &folder.0.join("a.capture"), None);
        assert!(found.is_ok_and(|account| account["calls"].as_u64() > Some(0)), "{log}");
    }
    for (log, prefix) in logs {
        fuzz(15, changes(), |changes| {
            let folder = Folder::new();
            let (path, output) = (folder.file("a.log", &changed(log.as_bytes(), &changes)), folder.0.join("a.capture"));
            if reads(&[&path], &output, prefix).is_ok() {
                look(&output);
                assert!(CaptureFile::open(&output).is_ok());
            }
        });
    }
}

#[test]
fn captures_that_are_changed_anywhere_are_read_or_refused() {
    let folder = Folder::new();
    let (log, output) = (folder.file("a.csv", CSV.as_bytes()), folder.0.join("a.capture"));
    reads(&[&log], &output, None).unwrap();
    let whole = std::fs::read(&output).unwrap();
    // Behind the checksums of frames: what a file says that was made to harm.
    let inner = frames(&whole);
    let index_of = |share: f64| ((inner.len() as f64 * share) as usize).min(inner.len() - 1);
    fuzz(100, (changes(), 0.0..1.0_f64, any::<bool>()), |(changes, share, is_outer)| {
        let content = if is_outer {
            changed(&whole, &changes)
        } else {
            let mut inner = inner.clone();
            let frame = &mut inner[index_of(share)];
            frame.1 = changed(&frame.1, &changes);
            packed(&inner)
        };
        let folder = Folder::new();
        look(&folder.file("a.capture", &content));
    });
}

/// Frames of a capture: kind and content.
fn frames(whole: &[u8]) -> Vec<(u32, Vec<u8>)> {
    let number = |at: usize| u32::from_le_bytes(whole[at..at + 4].try_into().unwrap());
    let (mut at, mut found) = (16, Vec::new());
    while at < whole.len() - 24 {
        let (stored, length, kind) = (number(at) as usize, number(at + 4) as usize, number(at + 8));
        found.push((kind, zstd::bulk::decompress(&whole[at + 12..at + 12 + stored], length).unwrap()));
        at += 12 + stored;
    }
    found
}

/// A capture of frames, the last of which is its index. Places in it are those of the frames as they were.
fn packed(frames: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let mut whole = b"pgdyno-capture-3".to_vec();
    let mut index = 0;
    for (kind, content) in frames {
        index = whole.len() as u64;
        frame(&mut whole, *kind, content);
    }
    whole.extend(index.to_le_bytes());
    whole.extend(b"pgdyno-capture-3");
    whole
}

fn frame(whole: &mut Vec<u8>, kind: u32, content: &[u8]) {
    let stored = zstd::bulk::compress(content, 1).unwrap();
    for number in [u32::try_from(stored.len()).unwrap(), u32::try_from(content.len()).unwrap(), kind] {
        whole.extend(number.to_le_bytes());
    }
    whole.extend(stored);
}

/// The most memory that this process has had, in bytes (`VmHWM`).
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

#[test]
fn a_frame_that_inflates_to_gigabytes_is_refused_in_little_memory() {
    // 1.9 GB of zeros in streaming frames of zstd, whose stored form has 60 KB.
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
    let zeros = vec![0; 1 << 20];
    for _ in 0..1900 {
        std::io::Write::write_all(&mut encoder, &zeros).unwrap();
    }
    let stored = encoder.finish().unwrap();
    for claimed in [1900_u32 << 20, 200 << 20, 1 << 20, 0, u32::MAX] {
        let mut whole = b"pgdyno-capture-3".to_vec();
        for number in [u32::try_from(stored.len()).unwrap(), claimed, 0] {
            whole.extend(number.to_le_bytes());
        }
        whole.extend(&stored);
        whole.extend(16_u64.to_le_bytes());
        whole.extend(b"pgdyno-capture-3");
        let folder = Folder::new();
        let before = peak_bytes();
        assert!(CaptureFile::open(&folder.file("bomb.capture", &whole)).is_err(), "{claimed}");
        assert!(peak_bytes() - before < 600 << 20, "{claimed}: {} MiB", (peak_bytes() - before) >> 20);
    }
}

fn record(number: impl std::fmt::Display, time: &str, message: &str) -> String {
    format!(
        "{time},\"app\",\"shop\",7,\"10.0.0.1:5000\",6563.7,{number},\"SELECT\",2026-11-25 07:04:40 UTC,4/12,0,LOG,00000,\
         \"{message}\",,,,,,,,,\"a b\",\"client backend\",,0\n"
    )
}

const NOW: &str = "2026-11-25 07:04:42.123 UTC";

#[test]
fn numbers_that_cannot_be_are_counted_with_their_place_and_change_no_sum() {
    let good = |number: u32| record(number, NOW, "duration: 1.000 ms  statement: SELECT 1");
    let cases = [
        ("line", record(u64::MAX, NOW, "duration: 1.000 ms  statement: SELECT 1"), 3),
        ("duration", record(2, NOW, "duration: 18446744073709551615.9 ms  statement: SELECT 1"), 3),
        ("duration", record(2, NOW, "duration: 99999999999999999999 ms  statement: SELECT 1"), 3),
        ("time", record(2, "9999-12-31 23:59:59.999 UTC", "duration: 1.000 ms  statement: SELECT 1"), 2),
        ("time", record(2, "0001-01-01 00:00:00.000 UTC", "duration: 1.000 ms  statement: SELECT 1"), 2),
    ];
    for (what, bad, calls) in cases {
        let folder = Folder::new();
        let log = folder.file("a.csv", format!("{}{bad}{}", good(1), good(3)).as_bytes());
        let account = reads(&[&log], &folder.0.join("a.capture"), None).unwrap();
        assert_eq!((&account["implausible"], &account["calls"]), (&1.into(), &calls.into()), "{what}: {account}");
        assert_eq!(account["first_implausible"][1], 2, "{account}");
        assert_eq!(account["first_implausible"][2], what);
        assert!(
            account["missing"].as_u64().unwrap() <= 1 && account["last_us"].as_i64() <= Some(1_795_590_282_123_000),
            "{account}"
        );
        look(&folder.0.join("a.capture"));
    }
}

#[test]
fn captures_of_the_form_before_are_still_read() {
    let folder = Folder::new();
    let old = folder.file("old.capture", include_bytes!("files/form_2.capture"));
    let found = show(&ShowSpec { capture: old, values: true, session: None }).unwrap();
    assert_eq!((&found["calls"], &found["sessions"]), (&80.into(), &1.into()));
    assert_eq!(found["account"]["unfinished"], Value::Null);
}
