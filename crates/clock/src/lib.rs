//! The kernel's clocks in nanoseconds, and what a thread needs to act at an instant. Every instant that is recorded is one of
//! CLOCK_MONOTONIC, so that what the parts of a run say of it can be laid beside each other.

mod policy;
mod waiter;
mod wake_lead;

use rustix::time::{ClockId, clock_gettime};

pub use policy::Policy;
pub use waiter::{Events, Waiter};
pub use wake_lead::WakeLead;

/// Nanoseconds of a second.
pub const SECOND_NS: u64 = 1_000_000_000;

/// CLOCK_MONOTONIC.
#[must_use]
pub fn monotonic_ns() -> u64 {
    read(ClockId::Monotonic)
}

/// CLOCK_REALTIME since 1970: for people, never for arithmetic.
#[must_use]
pub fn realtime_ns() -> u64 {
    read(ClockId::Realtime)
}

/// CPU time that this process has used, user and system.
#[must_use]
pub fn process_cpu_ns() -> u64 {
    read(ClockId::ProcessCPUTime)
}

/// CPU time that the calling thread has used, user and system.
#[must_use]
pub fn thread_cpu_ns() -> u64 {
    read(ClockId::ThreadCPUTime)
}

#[inline]
fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    // None of these is negative, unless the calendar is set to before 1970.
    u64::try_from(time.tv_sec).unwrap_or(0) * SECOND_NS + u64::try_from(time.tv_nsec).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_on_and_cpu_time_is_no_more_of_it_than_there_are_threads() {
        let begin = monotonic_ns();
        let cpu = thread_cpu_ns();
        let mut sum = 0u64;
        while monotonic_ns() - begin < 5_000_000 {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        // Read from the inside out: what lies between two readings counts for the time alone.
        let used = thread_cpu_ns() - cpu;
        let took = monotonic_ns() - begin;
        assert!(used > 0 && used <= took, "{used} ns of CPU in {took} ns");
        assert!(process_cpu_ns() >= thread_cpu_ns());
    }

    #[test]
    fn the_calendar_is_this_centurys() {
        let years = realtime_ns() / SECOND_NS / 31_556_952;
        assert!((50..130).contains(&years), "{years} years since 1970");
    }
}
