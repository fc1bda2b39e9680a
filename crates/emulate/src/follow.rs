//! Follows the path's cost while the volume is in use.
//!
//! What a request spends outside the model depends on the load: who else runs, which core wakes whom, how many requests
//! stand in line for the kernel's worker. The block layer counts the time of every request at the device, and the model
//! says how long each should have taken; the difference, above what an application adds to it, is an error of the
//! release and is taken off the next ones. Only the instant of a release moves, never what the model said.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use pgdyno_host::{Context, Result};

use crate::last_words::{self, Thread};
use crate::pipeline::Pipeline;
use crate::stats::{Completed, Totals};

/// So short that a stall of the host, which is in few windows, does not weigh in all of them.
const WINDOW: Duration = Duration::from_millis(20);
/// The device counts in milliseconds: over this many requests that is 60 us either way, and windows take its mean.
const MIN_OPS: u64 = 16;
/// One part in so many of an error is corrected by one window: the rest may be noise.
const GAIN: i64 = 4;
/// More than this says that the host stalled, not how much the path costs. With a limit the correction follows what is
/// usual: one request in a hundred that stalls is one window in four, and it errs by 3 us.
const MAX_ERROR_NS: i64 = 10_000;
/// A path that costs more is an overloaded host; its lateness is counted and shown.
const MAX_CORRECTION_NS: i64 = 1_000_000;
/// From this share of requests on, in per cent, a window's releases waited for their instant, and could have been earlier.
const HELD_PERCENT: u64 = 90;

/// The block layer's own account of a device.
#[derive(Debug)]
pub(crate) struct DeviceAccount(File);

impl DeviceAccount {
    /// Of `/dev/NAME`.
    pub(crate) fn open(device: &Path) -> io::Result<Self> {
        let name = device.file_name().unwrap_or_default();
        File::open(Path::new("/sys/block").join(name).join("stat")).map(Self)
    }

    pub(crate) fn read(&self) -> io::Result<Totals> {
        let mut text = [0; 512];
        let len = self.0.read_at(&mut text, 0)?;
        parse(&text[..len]).ok_or_else(|| io::Error::other("the device's statistics have an unknown format"))
    }
}

/// Columns of `/sys/block/*/stat` (Documentation/block/stat.rst): for reads, then for writes, the requests, merges,
/// sectors and milliseconds.
fn parse(text: &[u8]) -> Option<Totals> {
    let mut columns = std::str::from_utf8(text).ok()?.split_ascii_whitespace().map(|column| column.parse::<u64>().ok());
    let mut totals = Totals::default();
    for i in 0..2 {
        totals.ops[i] = columns.next()??;
        totals.ns[i] = columns.nth(2)?? * 1_000_000;
    }
    Some(totals)
}

/// The correction of one operation.
#[derive(Clone, Copy, Debug, Default)]
struct Follower {
    correction_ns: i64,
    /// Up to where the accounts were compared.
    device: (u64, u64),
    modelled: (u64, u64),
    held: u64,
}

impl Follower {
    /// Compares what came since the last comparison, if it is enough. `beside_ns`: what the application adds.
    fn follow(&mut self, device: (u64, u64), modelled: (u64, u64), held: u64, beside_ns: u64) {
        let ops = modelled.0 - self.modelled.0;
        let (Some(seen_ns), Some(wanted_ns)) = (mean(self.device, device), mean(self.modelled, modelled)) else {
            return;
        };
        if ops < MIN_OPS {
            return;
        }
        let could_be_earlier = (held - self.held) * 100 >= ops * HELD_PERCENT;
        (self.device, self.modelled, self.held) = (device, modelled, held);
        let error_ns = seen_ns + i64::try_from(beside_ns).unwrap_or(0) - wanted_ns;
        // Under a saturated limit an answer leaves as soon as the model grants it; it is late by the path, and asking for
        // it earlier changes nothing.
        if error_ns < 0 || could_be_earlier {
            let step_ns = error_ns.clamp(-MAX_ERROR_NS, MAX_ERROR_NS) / GAIN;
            self.correction_ns = (self.correction_ns + step_ns).clamp(-MAX_CORRECTION_NS, MAX_CORRECTION_NS);
        }
    }
}

/// Nanoseconds of a request between two counts of (requests, nanoseconds).
fn mean(before: (u64, u64), after: (u64, u64)) -> Option<i64> {
    let ns = after.1.checked_sub(before.1)?.checked_div(after.0.checked_sub(before.0)?)?;
    i64::try_from(ns).ok()
}

/// The thread that follows.
#[derive(Debug)]
pub(crate) struct PathFollower {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl PathFollower {
    /// Follows the path of `device` from now on. `beside_ns`: what an application waits beyond the device's time.
    pub(crate) fn start(device: &Path, beside_ns: u64, pipeline: Arc<Pipeline>) -> Result<Self> {
        let account = DeviceAccount::open(device)
            .context(|| format!("cannot read the kernel's statistics of {}", device.display()), "mount /sys")?;
        let (stop, stopped) = channel();
        let thread = std::thread::Builder::new()
            .name("follow".to_owned())
            .spawn(move || follow(&account, beside_ns, &pipeline, &stopped))
            .context(|| "cannot start a thread".to_owned(), "raise the limit on processes")?;
        Ok(Self { stop, thread })
    }

    pub(crate) fn finish(self) {
        drop(self.stop);
        let _ = self.thread.join();
    }
}

fn follow(account: &DeviceAccount, beside_ns: u64, pipeline: &Pipeline, stopped: &Receiver<()>) {
    let mut followers = [Follower::default(); 2];
    let Ok(begin) = account.read() else { return };
    for (i, follower) in followers.iter_mut().enumerate() {
        follower.device = (begin.ops[i], begin.ns[i]);
    }
    while matches!(stopped.recv_timeout(WINDOW), Err(RecvTimeoutError::Timeout)) {
        last_words::pass(Thread::Follower);
        let Ok(device) = account.read() else { return };
        let Completed { modelled, held } = pipeline.completed();
        for (i, follower) in followers.iter_mut().enumerate() {
            follower.follow((device.ops[i], device.ns[i]), (modelled.ops[i], modelled.ns[i]), held[i], beside_ns);
        }
        pipeline.correct(followers.map(|follower| follower.correction_ns));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVICE_NS: u64 = 500_000;

    /// Windows of 200 requests whose path costs `path_ns` above the calibrated one.
    fn after(windows: usize, path_ns: i64, held_percent: u64, follower: &mut Follower) -> i64 {
        for _ in 0..windows {
            let seen_ns = SERVICE_NS as i64 + path_ns - follower.correction_ns;
            let device = (follower.device.0 + 200, follower.device.1 + 200 * seen_ns as u64);
            let modelled = (follower.modelled.0 + 200, follower.modelled.1 + 200 * SERVICE_NS);
            follower.follow(device, modelled, follower.held + 2 * held_percent, 0);
        }
        follower.correction_ns
    }

    #[test]
    fn the_correction_becomes_what_the_path_costs_and_follows_it_back() {
        let mut follower = Follower::default();
        assert!((after(80, 80_000, 100, &mut follower) - 80_000).abs() < 100);
        assert!((after(90, -20_000, 100, &mut follower) + 20_000).abs() < 100);
        // A stall in every fourth window.
        for _ in 0..200 {
            after(3, -20_000, 100, &mut follower);
            after(1, 300_000, 100, &mut follower);
        }
        assert!((after(3, -20_000, 100, &mut follower) + 20_000).abs() < 5_000);
    }

    #[test]
    fn a_stall_weighs_no_more_than_its_limit() {
        let mut follower = Follower::default();
        assert_eq!(after(1, 50_000_000, 100, &mut follower), MAX_ERROR_NS / GAIN);
    }

    #[test]
    fn what_cannot_be_earlier_is_not_asked_for_earlier_but_may_be_later() {
        let mut follower = Follower::default();
        assert_eq!(after(50, 80_000, 10, &mut follower), 0);
        assert!((after(90, -30_000, 10, &mut follower) + 30_000).abs() < 100);
    }

    #[test]
    fn a_few_requests_are_not_enough_and_are_not_forgotten() {
        let mut follower = Follower::default();
        follower.follow((10, 10 * 508_000), (10, 10 * 500_000), 10, 0);
        assert_eq!(follower.correction_ns, 0);
        follower.follow((20, 20 * 508_000), (20, 20 * 500_000), 20, 0);
        assert_eq!(follower.correction_ns, 8_000 / GAIN);
    }

    #[test]
    fn the_kernels_columns_are_read() {
        let text = b"   1234      5   678   90   4321    6   987   65   0   100   155  0 0 0 0 0 0\n";
        let totals = parse(text).expect("two groups of four");
        assert_eq!(totals, Totals { ops: [1234, 4321], ns: [90_000_000, 65_000_000] });
        assert_eq!(parse(b"12 x"), None);
    }
}
