//! CPU time of a process with its children, as they come and go: a PostgreSQL server that has no cgroup of its own.
//!
//! What an ended child used is in its parent's `cutime` and `cstime` from the moment in which the parent took notice of
//! its end, so nothing is lost between two samples. The parent is read before its children: a child that ends between
//! the two readings is missing from one sample, which keeps the last value, and is never counted twice.

use std::collections::BTreeMap;
use std::fs;
use std::io;

use crate::kept::KeptFile;
use crate::process::ProcessReader;

/// Reads one parent and its children; grandchildren count when their own parent has ended them.
pub(crate) struct FamilyReader {
    parent: ProcessReader,
    list: KeptFile,
    children: BTreeMap<u32, ProcessReader>,
    last_ns: u64,
}

impl FamilyReader {
    pub(crate) fn new(pid: u32) -> Self {
        Self {
            parent: ProcessReader::with_ended_children(pid),
            list: KeptFile::new(format!("/proc/{pid}/task/{pid}/children")),
            children: BTreeMap::new(),
            last_ns: 0,
        }
    }

    /// The parent's process id.
    pub(crate) fn pid(&self) -> u32 {
        self.parent.pid
    }

    /// CPU time until now, or until the family was last seen, with the reason why it is not newer.
    pub(crate) fn read_ns(&mut self, tick_ns: u64) -> (u64, Option<io::Error>) {
        let (mut sum_ns, error) = self.parent.read_ns(tick_ns);
        if let Some(error) = error.or_else(|| self.list_children().err()) {
            return (self.last_ns, Some(error));
        }
        // One that ended just now is in its parent's sum at the next sample; its number may be another's by then.
        self.children.retain(|_, child| {
            let (used_ns, error) = child.read_ns(tick_ns);
            sum_ns += if error.is_none() { used_ns } else { 0 };
            error.is_none()
        });
        self.last_ns = self.last_ns.max(sum_ns);
        (self.last_ns, None)
    }

    fn list_children(&mut self) -> io::Result<()> {
        let first = self.parent.pid.to_string();
        let mut now = pids(self.list.read(false)?);
        // A child is listed at the thread that started it. Threads come and go; who ends leaves its children to another.
        for task in fs::read_dir(format!("/proc/{first}/task"))?.flatten() {
            if task.file_name() != *first {
                now.extend(pids(&fs::read_to_string(task.path().join("children")).unwrap_or_default()));
            }
        }
        self.children.retain(|pid, _| now.contains(pid));
        for pid in now {
            self.children.entry(pid).or_insert_with(|| ProcessReader::with_ended_children(pid));
        }
        Ok(())
    }
}

fn pids(list: &str) -> Vec<u32> {
    list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Command, Stdio};

    const TICK_NS: u64 = 10_000_000;
    const BURN: &str = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";

    #[test]
    fn what_children_used_is_counted_while_they_live_and_after() {
        // Burns in a child, which then waits for a line and ends; its parent says when it has taken notice.
        let script = format!("({BURN}; echo burnt; read -r _); echo ended; read -r _");
        let mut shell =
            Command::new("sh").args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut family = FamilyReader::new(shell.id());
        let mut said = BufReader::new(shell.stdout.take().unwrap()).lines();
        let mut say = shell.stdin.take().unwrap();
        assert_eq!(said.next().unwrap().unwrap(), "burnt");
        let (alive_ns, error) = family.read_ns(TICK_NS);
        assert!(error.is_none(), "{error:?}");
        assert!(alive_ns >= 2 * TICK_NS, "200,000 turns of a shell's loop take longer: {alive_ns}");
        writeln!(say).unwrap();
        assert_eq!(said.next().unwrap().unwrap(), "ended");
        let (after_ns, error) = family.read_ns(TICK_NS);
        assert!(error.is_none(), "{error:?}");
        assert!(after_ns >= alive_ns && after_ns < 2 * alive_ns + 10 * TICK_NS, "{alive_ns} then {after_ns}");
        writeln!(say).unwrap();
        shell.wait().unwrap();
        let (gone_ns, error) = family.read_ns(TICK_NS);
        assert_eq!(gone_ns, after_ns);
        assert!(error.is_some());
    }

    #[test]
    fn children_of_every_thread_are_the_processs() {
        // Tests run in threads of their own, so this child is not listed at the process's first one.
        let mut child = Command::new("sh").args(["-c", "read -r _"]).stdin(Stdio::piped()).spawn().unwrap();
        let mut family = FamilyReader::new(std::process::id());
        let (_, error) = family.read_ns(TICK_NS);
        assert!(error.is_none(), "{error:?}");
        assert!(family.children.contains_key(&child.id()), "{:?}", family.children.keys());
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
