//! What this process has used.

use std::mem::MaybeUninit;

/// CPU and memory of the whole process since its beginning.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    /// CPU outside of the kernel, in milliseconds.
    pub user_ms: f64,
    /// CPU in the kernel, in milliseconds.
    pub system_ms: f64,
    /// Most memory that it had at any time; none where the kernel does not say.
    pub rss_bytes_max: Option<u64>,
}

impl Usage {
    /// Until now.
    pub(crate) fn now() -> Self {
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: getrusage writes to this local and to nothing else; all zeros is a valid rusage.
        let usage = unsafe {
            libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
            usage.assume_init()
        };
        let ms = |time: libc::timeval| time.tv_sec as f64 * 1e3 + time.tv_usec as f64 / 1e3;
        // Not ru_maxrss: that begins with what the process had which started this one.
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        Self { user_ms: ms(usage.ru_utime), system_ms: ms(usage.ru_stime), rss_bytes_max: peak(&status) }
    }
}

/// The peak of resident memory in the words of proc_pid_status(5).
fn peak(status: &str) -> Option<u64> {
    let kib = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.trim().strip_suffix(" kB")?;
    Some(kib.parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_the_kernels_high_water_mark() {
        assert_eq!(peak("VmPeak:\t  100 kB\nVmHWM:\t   12 kB\nVmRSS:\t 9 kB\n"), Some(12 * 1024));
        assert!(Usage::now().rss_bytes_max.is_some_and(|bytes| bytes > 0));
    }
}
