//! What a process must do before it may serve a block device to the machine that it runs on.
//!
//! The kernel may need this process to write a page before it can give anyone memory. So the process must not wait for
//! memory itself: its threads are marked as I/O flushers, its pages are locked, it is the last to be killed, and it is
//! scheduled ahead of the load that it serves (Mayastor and libfuse users report the hangs that follow otherwise).
//!
//! Ahead of the load, in two ways (docs/decision/0010). The release thread has real-time priority: an answer has an
//! instant. Threads that take requests in have the best ordinary priority: real-time ones would interrupt the kernel's
//! worker at each single request it hands over, and take twice the CPU for it.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Command;

use pgdyno_clock::Policy;
use pgdyno_host::{Context, Fault, Result};
use pgdyno_signals::Hangup;

/// What is shown of a tool's complaint at most: mkfs.xfs prints its whole usage after it.
const COMPLAINT_CHARS: usize = 300;

/// The best that an ordinary thread can have.
const BEST_NICE: libc::c_int = -20;

/// `linux/prctl.h`; not in the libc crate yet.
const PR_SET_IO_FLUSHER: libc::c_int = 57;

/// Precautions of the process; call it before any thread is started, so that threads inherit them.
///
/// Returns a sentence for each precaution that the host refused; the emulator works without them, less reliably.
pub(crate) fn protect_process() -> Vec<String> {
    let mut refused = Vec::new();
    // SAFETY: prctl with these arguments touches none of our memory.
    let flusher = unsafe { libc::prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) };
    note(&mut refused, "threads are not marked as I/O flushers (needs CAP_SYS_RESOURCE)", check(flusher));
    // SAFETY: no memory is passed. ONFAULT: what is touched stays, what is only reserved is not populated.
    let locked = unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE | libc::MCL_ONFAULT) };
    note(&mut refused, "memory is not locked", check(locked).and_then(|()| require_locked()));
    note(&mut refused, "a volume cannot be frozen often: files are limited", all_files());
    note(&mut refused, "the process may be killed for memory", fs::write("/proc/self/oom_score_adj", "-1000"));
    // SAFETY: as above.
    note(&mut refused, "timers have the default slack", check(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) }));
    note(&mut refused, "threads have no real-time priority", realtime_priority());
    ordinary_priority();
    note(&mut refused, "threads are not ahead of ordinary ones", set_nice(BEST_NICE));
    refused
}

/// That the kernel has locked something, as it says: this process is in memory, so a part of it is.
fn require_locked() -> std::io::Result<()> {
    let status = fs::read_to_string("/proc/self/status")?;
    let locked = status.lines().find_map(|line| line.strip_prefix("VmLck:")).map(str::trim);
    if locked == Some("0 kB") { Err(std::io::Error::other("the kernel has locked none of it")) } else { Ok(()) }
}

/// As many open files as the host allows at most: a volume has one for each of its layers.
fn all_files() -> std::io::Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` outlives both calls.
    check(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) })?;
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: as above.
    check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) })
}

/// Puts the calling thread ahead of every ordinary one: for the thread whose work has an instant.
pub(crate) fn realtime_priority() -> std::io::Result<()> {
    Policy::REALTIME.set()
}

/// Puts the calling thread, and those that it starts, ahead of ordinary ones by the best ordinary priority: for the threads
/// of a volume that joins.
pub(crate) fn data_path_priority() {
    // Where the host refuses, that was said when the process was protected.
    let _ = set_nice(BEST_NICE);
}

/// Gives the calling thread ordinary priority back: for threads off the data path.
pub(crate) fn ordinary_priority() {
    // Failing leaves the thread where it was, which is safe.
    let _ = Policy::ORDINARY.set();
    let _ = set_nice(0);
}

fn set_nice(nice: libc::c_int) -> std::io::Result<()> {
    // SAFETY: no memory is passed.
    check(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) })
}

/// A tool started from here (mkfs, mount) is an ordinary process and not part of the I/O path. It blocks no signal, which
/// this process does, and it is killed when this process dies: a mkfs that outlived it would never let go of the device.
pub(crate) fn tool(program: &str) -> Command {
    let mut command = Command::new(program);
    let parent = std::process::id();
    // SAFETY: between fork and exec only system calls that touch none of our memory are made.
    unsafe {
        command.pre_exec(move || {
            pgdyno_signals::reset(Hangup::Reset);
            ordinary_priority();
            libc::prctl(PR_SET_IO_FLUSHER, 0, 0, 0, 0);
            pgdyno_signals::end_with_parent(libc::SIGKILL, parent)
        })
    };
    command
}

/// Runs a tool to its end and returns what it printed.
pub(crate) fn run(command: &mut Command, remedy: &str) -> Result<Vec<u8>> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().context(|| format!("cannot start {program}"), remedy)?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = complaint(&String::from_utf8_lossy(&output.stderr));
    Err(Fault::new(format!("{program} failed: {said}"), remedy))
}

/// The first lines of what a tool said, without the usage that some print after their complaint.
fn complaint(said: &str) -> String {
    let lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    let lines: Vec<&str> = lines.take_while(|line| !line.to_lowercase().starts_with("usage")).collect();
    lines.join("; ").chars().take(COMPLAINT_CHARS).collect()
}

/// Runs a hidden command of this very binary in a process of its own, and returns what it printed.
pub(crate) fn run_helper(arguments: &[&OsStr]) -> Result<Vec<u8>> {
    let remedy = "run `pgdyno doctor`";
    let engine = std::env::current_exe().context(|| "cannot find this program".to_owned(), remedy)?;
    run(tool(&engine.to_string_lossy()).arg("volume").args(arguments), remedy)
}

fn check(result: libc::c_int) -> std::io::Result<()> {
    if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

fn note(refused: &mut Vec<String>, what: &str, result: std::io::Result<()>) {
    if let Err(error) = result {
        refused.push(format!("{what}: {error}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_blocks_no_signal_whatever_the_daemon_blocks() {
        let _blocked = pgdyno_signals::block().expect("a descriptor");
        let status = run(tool("cat").arg("/proc/self/status"), "").expect("cat is everywhere");
        let status = String::from_utf8(status).expect("text");
        let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).expect("it is there").trim();
        assert_eq!(u64::from_str_radix(blocked, 16), Ok(0));
    }

    #[test]
    fn of_what_a_tool_says_its_usage_is_left_out() {
        let said = "size 256 of data subvolume is too small, minimum 300 blocks\n\nUsage: mkfs.xfs\n/* blocksize */";
        assert_eq!(complaint(said), "size 256 of data subvolume is too small, minimum 300 blocks");
        assert_eq!(complaint("mount: wrong fs type,\n       bad option"), "mount: wrong fs type,; bad option");
        assert_eq!(complaint(&"x".repeat(1_000)).len(), COMPLAINT_CHARS);
    }
}
