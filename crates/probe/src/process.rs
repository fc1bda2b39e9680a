//! CPU time of one process: `utime + stime` of `/proc/PID/stat`, which cover its threads, those that ended too.

use std::io;

use crate::kept::{KeptFile, unexpected};

/// Positions behind the name in parentheses, the state being 0.
const UTIME: usize = 11;
const STIME: usize = 12;

/// Reads one process and remembers what it had used when it ended.
pub(crate) struct ProcessReader {
    /// The process id.
    pub(crate) pid: u32,
    file: KeptFile,
    last_ns: u64,
}

impl ProcessReader {
    pub(crate) fn new(pid: u32) -> Self {
        Self { pid, file: KeptFile::new(format!("/proc/{pid}/stat")), last_ns: 0 }
    }

    /// CPU time until now, or until it was last seen, with the reason why it is not newer.
    pub(crate) fn read_ns(&mut self, tick_ns: u64) -> (u64, Option<io::Error>) {
        let ticks = self.file.read(false).and_then(|text| parse_ticks(text).ok_or_else(|| unexpected("CPU time")));
        match ticks {
            Ok(ticks) => {
                self.last_ns = ticks * tick_ns;
                (self.last_ns, None)
            }
            Err(error) => (self.last_ns, Some(error)),
        }
    }
}

/// A process may call itself `a) b (c`, so the fields are counted from the last parenthesis.
fn parse_ticks(text: &str) -> Option<u64> {
    let (_, behind) = text.rsplit_once(')')?;
    let mut fields = behind.split_ascii_whitespace().skip(UTIME);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.nth(STIME - UTIME - 1)?.parse().ok()?;
    Some(user + system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let text = "4242 (evil) 1 (name) S 1 4242 4242 0 -1 4194560 100 200 0 0 250 50 7 8 20 0 3 0 99 1000 20\n";
        assert_eq!(parse_ticks(text), Some(300));
    }

    #[test]
    fn this_process_uses_cpu() {
        let mut reader = ProcessReader::new(std::process::id());
        let (_, error) = reader.read_ns(10_000_000);
        assert!(error.is_none());
    }

    #[test]
    fn a_process_that_ended_keeps_what_it_used() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let mut reader = ProcessReader::new(child.id());
        let (before, error) = reader.read_ns(10_000_000);
        assert!(error.is_none());
        child.kill().unwrap();
        child.wait().unwrap();
        let (after, error) = reader.read_ns(10_000_000);
        assert_eq!(after, before);
        assert!(error.is_some());
    }
}
