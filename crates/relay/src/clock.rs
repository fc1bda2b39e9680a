//! CLOCK_MONOTONIC, which the probe's samples and the driver's instants have too.

use rustix::time::{ClockId, clock_gettime};

const SECOND_NS: u64 = 1_000_000_000;

/// Now.
pub(crate) fn monotonic_ns() -> u64 {
    read(ClockId::Monotonic)
}

/// CPU that this process has used, user and system.
pub(crate) fn process_cpu_ns() -> u64 {
    read(ClockId::ProcessCPUTime)
}

fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * SECOND_NS + time.tv_nsec as u64
}
