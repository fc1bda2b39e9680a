//! In the place of libc's clocks: the calendar time of a program, shifted by a constant. Monotonic clocks stay as they are.
//!
//! `build.rs` makes a library of this file alone. It allocates nothing and cannot panic, so it needs nothing but libc. PostgreSQL asks
//! for the time by `gettimeofday`, `time` and `clock_gettime`; the real clock is libc's next one, which reads it without a system call.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicI64, AtomicPtr, Ordering};

/// The variable of the environment with the shift in microseconds, negative for the past.
pub(crate) const VARIABLE: &CStr = c"CLOCK_SHIFT_US";
/// CLOCK_REALTIME, its coarse one, its alarm's, and CLOCK_TAI (clock_gettime(2)).
const OF_CALENDAR: [c_int; 4] = [0, 5, 8, 11];
/// The next one after this library's (dlsym(3)).
const RTLD_NEXT: *mut c_void = usize::MAX as *mut c_void;

/// `struct timespec` of 64-bit Linux.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

/// `struct timeval` of 64-bit Linux.
#[repr(C)]
pub(crate) struct Timeval {
    seconds: i64,
    microseconds: i64,
}

type ClockGettime = unsafe extern "C" fn(c_int, *mut Timespec) -> c_int;

#[link(name = "c")]
#[link(name = "dl")]
unsafe extern "C" {
    fn getenv(name: *const c_char) -> *const c_char;
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

static SHIFT_US: AtomicI64 = AtomicI64::new(0);
static REAL: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// A number of microseconds; what is none shifts nothing.
fn parse(text: &[u8]) -> i64 {
    let (sign, digits) = match text {
        [b'-', digits @ ..] => (-1, digits),
        digits => (1, digits),
    };
    let mut sum = 0_i64;
    for digit in digits {
        let value = match digit {
            b'0'..=b'9' => i64::from(digit - b'0'),
            _ => return 0,
        };
        sum = match sum.checked_mul(10).and_then(|sum| sum.checked_add(value)) {
            Some(sum) => sum,
            None => return 0,
        };
    }
    sum * sign
}

/// libc's own. What every first caller finds is the same, so it does not matter who is first.
fn real() -> Option<ClockGettime> {
    let known = REAL.load(Ordering::Acquire);
    if !known.is_null() {
        // SAFETY: it is what `dlsym` said that this function is.
        return Some(unsafe { core::mem::transmute::<*mut c_void, ClockGettime>(known) });
    }
    // SAFETY: both names end with a zero; a variable that is there ends with one too.
    let (found, text) = unsafe { (dlsym(RTLD_NEXT, c"clock_gettime".as_ptr()), getenv(VARIABLE.as_ptr())) };
    if !text.is_null() {
        // SAFETY: see above.
        SHIFT_US.store(parse(unsafe { CStr::from_ptr(text) }.to_bytes()), Ordering::Relaxed);
    }
    REAL.store(found, Ordering::Release);
    if found.is_null() {
        return None;
    }
    // SAFETY: see above.
    Some(unsafe { core::mem::transmute::<*mut c_void, ClockGettime>(found) })
}

fn shifted(at: Timespec, by_us: i64) -> Timespec {
    let nanoseconds = at.nanoseconds + by_us.rem_euclid(1_000_000) * 1000;
    Timespec {
        seconds: at.seconds + by_us.div_euclid(1_000_000) + nanoseconds / 1_000_000_000,
        nanoseconds: nanoseconds % 1_000_000_000,
    }
}

/// CLOCK_REALTIME, shifted; `None` if there is no clock.
fn now() -> Option<Timespec> {
    let mut at = Timespec { seconds: 0, nanoseconds: 0 };
    // SAFETY: it is written by the callee, and is ours.
    (unsafe { clock_gettime(0, &raw mut at) } == 0).then_some(at)
}

/// In the place of libc's.
///
/// # Safety
/// As of libc's: `at` can be written.
#[cfg_attr(preloaded, unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn clock_gettime(clock: c_int, at: *mut Timespec) -> c_int {
    let Some(real) = real() else { return -1 };
    // SAFETY: the caller's pointer, as it is.
    let said = unsafe { real(clock, at) };
    if said == 0 && OF_CALENDAR.contains(&clock) {
        // SAFETY: libc has written there.
        unsafe { *at = shifted(*at, SHIFT_US.load(Ordering::Relaxed)) };
    }
    said
}

/// In the place of libc's.
///
/// # Safety
/// As of libc's: what is not null can be written.
#[cfg_attr(preloaded, unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn gettimeofday(at: *mut Timeval, zone: *mut [c_int; 2]) -> c_int {
    let Some(found) = now() else { return -1 };
    if !at.is_null() {
        // SAFETY: the caller's.
        unsafe { *at = Timeval { seconds: found.seconds, microseconds: found.nanoseconds / 1000 } };
    }
    if !zone.is_null() {
        // SAFETY: the caller's. Nothing is in it on Linux (gettimeofday(2)).
        unsafe { *zone = [0, 0] };
    }
    0
}

/// In the place of libc's.
///
/// # Safety
/// As of libc's: what is not null can be written.
#[cfg_attr(preloaded, unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn time(at: *mut i64) -> i64 {
    let seconds = now().map_or(-1, |found| found.seconds);
    if !at.is_null() {
        // SAFETY: the caller's.
        unsafe { *at = seconds };
    }
    seconds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_is_the_one_that_others_set() {
        assert_eq!(VARIABLE.to_str(), Ok(crate::VARIABLE));
    }

    #[test]
    fn a_shift_is_a_number_and_anything_else_is_none() {
        assert_eq!(parse(b"-34560000000000"), -34_560_000_000_000);
        assert_eq!(parse(b"1500000"), 1_500_000);
        for text in [&b""[..], b"-", b"+1", b"1.5", b"99999999999999999999"] {
            assert_eq!(parse(text), 0, "{text:?}");
        }
    }

    #[test]
    fn nanoseconds_stay_below_a_second() {
        let at = |seconds, nanoseconds| Timespec { seconds, nanoseconds };
        assert_eq!(shifted(at(100, 900_000_000), 200_000), at(101, 100_000_000));
        assert_eq!(shifted(at(100, 100_000_000), -200_000), at(99, 900_000_000));
        assert_eq!(shifted(at(100, 1), 0), at(100, 1));
    }

    #[test]
    fn without_a_shift_the_three_say_what_libc_says() {
        let known = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
        let is_now = |seconds: i64| (seconds - i64::try_from(known.as_secs()).expect("before 2262")).abs() <= 60;
        let (mut of_day, mut of_clock) =
            (Timeval { seconds: 0, microseconds: 0 }, Timespec { seconds: 0, nanoseconds: 0 });
        let mut second = 0;
        // SAFETY: all are of this function.
        unsafe {
            assert_eq!(gettimeofday(&raw mut of_day, null_mut()), 0);
            assert_eq!(clock_gettime(0, &raw mut of_clock), 0);
            assert_eq!(time(&raw mut second), second);
            assert_eq!(clock_gettime(-1, &raw mut of_clock), -1, "there is no such clock");
        }
        assert!(is_now(of_day.seconds) && is_now(of_clock.seconds) && is_now(second));
        assert!((0..1_000_000).contains(&of_day.microseconds));
    }
}
