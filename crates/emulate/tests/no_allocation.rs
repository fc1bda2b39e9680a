//! The daemon takes no memory while it serves: whoever writes a page back to make memory free must not wait for memory.
//!
//! The whole daemon is run in this process, with a device that another process reads and writes, and every call of the
//! allocator is counted meanwhile. It has no harness: the daemon calls its own program for the calibration, and that
//! program is this one.

#![allow(missing_docs, reason = "a program of its own, with nothing that another crate could see")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs::OpenOptions;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;

use serde_json::json;

struct Counting;

static COUNTS: AtomicBool = AtomicBool::new(false);
static CALLS: AtomicU64 = AtomicU64::new(0);

fn count() {
    if COUNTS.load(Ordering::Relaxed) {
        CALLS.fetch_add(1, Ordering::Relaxed);
    }
}

// SAFETY: every call goes on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count();
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const THREADS: u64 = 8;
const REQUESTS: u64 = 20_000;
const BLOCK: u64 = 8192;
const DEVICE_BYTES: u64 = 256 << 20;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["volume", "measure-path", device] => {
            println!("{}", pgdyno_emulate::measure_path(Path::new(device)).expect("measure the path"));
        }
        ["drive", device, requests] => drive(device, requests.parse().expect("a number")),
        _ => {
            if let Some(lacking) = lacking() {
                println!("skipped: {lacking}");
                return;
            }
            check("null:size=1GiB", false);
            check("gp3:size=1GiB", false);
            check("null:size=1GiB", true);
        }
    }
}

/// Serves a volume, drives it from another process and counts.
fn check(spec: &str, on_disk: bool) {
    let folder = std::env::temp_dir().join(format!("pgd-no-allocation-{}", std::process::id()));
    let store = folder.join("store");
    std::fs::create_dir_all(&store).expect("a folder");
    let store = if on_disk { store } else { "memory".into() };
    let request = json!({
        "name": "v", "spec": spec, "mount": null, "state_dir": folder, "image": null, "store": store,
        "submit_log": folder.join("log"), "write_log": folder.join("write-log"),
    });
    let request = serde_json::from_value(request).expect("a specification");
    let (tell, told) = channel();
    let daemon = std::thread::spawn(move || {
        pgdyno_emulate::serve(&request, |facts| {
            let _ = tell.send(facts["block_device"].as_str().unwrap_or_default().to_owned());
        })
    });
    let Ok(device) = told.recv() else {
        panic!("the volume did not come up: {:?}", daemon.join());
    };
    // The first requests may still find something that is made once.
    run_driver(&device, REQUESTS / 10);
    // A process is started with memory: that is before.
    let mut driver = Command::new(std::env::current_exe().expect("this program"));
    driver.args(["drive", &device, &REQUESTS.to_string()]);
    let mut driver = driver.spawn().expect("start the driver");
    COUNTS.store(true, Ordering::SeqCst);
    let ended = driver.wait();
    COUNTS.store(false, Ordering::SeqCst);
    let answer = pgdyno_emulate::request(&folder, "v", &json!({"command": "stats"})).expect("the counters");
    pgdyno_emulate::detach(&folder, "v", None).expect("detach");
    daemon.join().expect("the daemon's thread").expect("served");
    std::fs::remove_dir_all(&folder).expect("remove the folder");
    assert!(ended.expect("the driver").success());
    let counters = &answer["counters"];
    let served = counters["read_ops"].as_u64().unwrap_or(0) + counters["write_ops"].as_u64().unwrap_or(0);
    assert!(served >= REQUESTS, "{served} requests reached the daemon");
    let calls = CALLS.swap(0, Ordering::SeqCst);
    assert_eq!(calls, 0, "the allocator was called {calls} times for {REQUESTS} requests to {spec}");
    let place = if on_disk { " on a disk" } else { "" };
    println!("{spec}{place}: no call of the allocator in {REQUESTS} requests");
}

fn lacking() -> Option<&'static str> {
    if !rustix::process::geteuid().is_root() {
        return Some("not root");
    }
    let there = |path: &str| Path::new(path).exists();
    (!there("/dev/fuse") || !there("/dev/loop-control")).then_some("no /dev/fuse or no loop devices")
}

fn run_driver(device: &str, requests: u64) {
    let mut driver = Command::new(std::env::current_exe().expect("this program"));
    let status = driver.args(["drive", device, &requests.to_string()]).status().expect("start the driver");
    assert!(status.success());
}

/// Reads and writes in turn, from several threads, all over the beginning of the device.
fn drive(device: &str, requests: u64) {
    let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_DIRECT).open(device).expect("open");
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let file = &file;
            scope.spawn(move || {
                let memory = vec![1u8; 2 * BLOCK as usize];
                let start = memory.as_ptr().align_offset(BLOCK as usize);
                let mut memory = memory;
                let block = &mut memory[start..start + BLOCK as usize];
                for i in 0..requests / THREADS {
                    // A stride that is prime visits every block before it comes back to the first.
                    let offset = (i * THREADS + thread) * 7919 % (DEVICE_BYTES / BLOCK) * BLOCK;
                    if i % 2 == 0 {
                        file.write_all_at(block, offset).expect("write");
                    } else {
                        file.read_exact_at(block, offset).expect("read");
                    }
                }
            });
        }
    });
}
