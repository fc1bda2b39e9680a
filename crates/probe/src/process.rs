//! CPU time of one process: `utime + stime` of `/proc/PID/stat`, which cover its threads, those that ended too; on
//! request `cutime + cstime`, those of its children that ended.

use std::io;

use crate::kept::{KeptFile, unexpected};

/// Positions behind the name in parentheses, the state being 0.
const UTIME: usize = 11;
/// utime and stime; behind them the same of children that have ended.
const OWN: usize = 2;
const WITH_ENDED_CHILDREN: usize = 4;

/// Reads one process and remembers what it had used when it ended.
pub(crate) struct ProcessReader {
    /// The process id.
    pub(crate) pid: u32,
    file: KeptFile,
    fields: usize,
    last_ns: u64,
}

impl ProcessReader {
    pub(crate) fn new(pid: u32) -> Self {
        Self { pid, file: KeptFile::new(format!("/proc/{pid}/stat")), fields: OWN, last_ns: 0 }
    }

    /// Counts what its children had used when it took notice of their end, too.
    pub(crate) fn with_ended_children(pid: u32) -> Self {
        Self { fields: WITH_ENDED_CHILDREN, ..Self::new(pid) }
    }

    /// CPU time until now, or until it was last seen, with the reason why it is not newer.
    pub(crate) fn read_ns(&mut self, tick_ns: u64) -> (u64, Option<io::Error>) {
        let text = self.file.read(false);
        let ticks = text.and_then(|text| parse_ticks(text, self.fields).ok_or_else(|| unexpected("CPU time")));
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
fn parse_ticks(text: &str, fields: usize) -> Option<u64> {
    let (_, behind) = text.rsplit_once(')')?;
    let mut times = behind.split_ascii_whitespace().skip(UTIME).map(str::parse::<u64>);
    (0..fields).map(|_| times.next()?.ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let text = "4242 (evil) 1 (name) S 1 4242 4242 0 -1 4194560 100 200 0 0 250 50 7 8 20 0 3 0 99 1000 20\n";
        assert_eq!(parse_ticks(text, OWN), Some(300));
        assert_eq!(parse_ticks(text, WITH_ENDED_CHILDREN), Some(315));
        assert_eq!(parse_ticks("4242 (cut) S 1 4242", OWN), None);
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
