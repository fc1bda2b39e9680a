//! Seconds of a run and the whole of it, in the lines of the driver.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pgdyno_clock::{SECOND_NS, monotonic_ns, process_cpu_ns};
use pgdyno_measure::{Account, Line, Record, Second, Summary, say};
use pgdyno_workload::{Groups, ScriptInfo, Transaction};

/// The name of the only type of transaction.
const NAME: &str = "sample";

/// What all clients count, each thread for itself. Times are nanoseconds since the beginning of the run.
pub(crate) struct Course {
    begin_ns: u64,
    threads: Vec<Mutex<Counted>>,
}

/// What the clients of one thread count.
#[derive(Clone, Copy)]
pub(crate) struct Part<'a> {
    course: &'a Course,
    counted: &'a Mutex<Counted>,
}

struct Counted {
    now: Record,
    second_end_ns: u64,
    cpu_ns: u64,
    over: Vec<Record>,
}

impl Course {
    /// A run that begins at an instant of CLOCK_MONOTONIC. Seconds end where its warm-up does, and each second before and after.
    pub(crate) fn new(begin_ns: u64, warmup_ns: u64, statements: usize, threads: usize) -> Self {
        let second_end_ns = match warmup_ns.checked_sub(1) {
            Some(before) => warmup_ns - before / SECOND_NS * SECOND_NS,
            None => SECOND_NS,
        };
        let cpu_ns = process_cpu_ns();
        let counted = || Counted { now: Record::new(1, statements, 0), second_end_ns, cpu_ns, over: Vec::new() };
        Self { begin_ns, threads: (0..threads).map(|_| Mutex::new(counted())).collect() }
    }

    /// What the clients of this thread count.
    pub(crate) fn part(&self, thread: usize) -> Part<'_> {
        Part { course: self, counted: &self.threads[thread] }
    }

    /// Since the beginning.
    pub(crate) fn now(&self) -> u64 {
        monotonic_ns().saturating_sub(self.begin_ns)
    }

    /// The same instant on CLOCK_MONOTONIC.
    pub(crate) fn monotonic_ns(&self, at: u64) -> u64 {
        self.begin_ns + at
    }

    /// Takes the seconds that are over.
    pub(crate) fn take(&self) -> Vec<Record> {
        self.over_by(self.now())
    }

    /// The end of the run: the seconds that are left, and what comes behind the last whole one, with transactions that were never
    /// begun.
    pub(crate) fn end(&self, never_begun: u64) -> (Vec<Record>, Record) {
        let now = self.now();
        let over = self.over_by(now);
        let last = self.parts().map(|part| {
            let mut counted = part.at(now);
            counted.now.end_ns = now;
            counted.now.cpu_ns = process_cpu_ns() - counted.cpu_ns;
            let next = counted.now.successor();
            std::mem::replace(&mut counted.now, next)
        });
        let mut last = added(last).expect("there is a thread");
        last.never_begun(never_begun);
        (over, last)
    }

    /// Takes the seconds that are over at this time; all threads have the same.
    fn over_by(&self, now: u64) -> Vec<Record> {
        let mut parts: Vec<_> = self.parts().map(|part| std::mem::take(&mut part.at(now).over).into_iter()).collect();
        std::iter::from_fn(|| added(parts.iter_mut().filter_map(Iterator::next))).collect()
    }

    fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        (0..self.threads.len()).map(|thread| self.part(thread))
    }
}

/// What several threads counted in the same time. Each notes the CPU of the whole process, which counts once.
fn added(parts: impl Iterator<Item = Record>) -> Option<Record> {
    parts.reduce(|mut sum, part| {
        let cpu_ns = sum.cpu_ns.max(part.cpu_ns);
        sum.add(&part);
        sum.cpu_ns = cpu_ns;
        sum
    })
}

impl Part<'_> {
    /// Since the beginning.
    pub(crate) fn now(&self) -> u64 {
        self.course.now()
    }

    /// The same instant on CLOCK_MONOTONIC.
    pub(crate) fn monotonic_ns(&self, at: u64) -> u64 {
        self.course.monotonic_ns(at)
    }

    /// Counts a transaction that is over.
    pub(crate) fn transaction(&self, now: u64, done: &Transaction) {
        self.at(now).now.transaction(now, done);
    }

    /// Counts a statement that was answered.
    pub(crate) fn statement(&self, now: u64, group: u32, ns: u64) {
        self.at(now).now.statement(group, ns);
    }

    /// Counts how late a client was where it waited for nothing but a time.
    pub(crate) fn wake(&self, now: u64, late_ns: u64) {
        self.at(now).now.wake(late_ns);
    }

    /// Counts a connection that was lost, and how long there was none.
    pub(crate) fn lost(&self, now: u64, down_ns: u64) {
        let mut counted = self.at(now);
        counted.now.lost += 1;
        counted.now.down_ns += down_ns;
    }

    /// What is counted at this time: the seconds before it are over.
    fn at(&self, now: u64) -> MutexGuard<'_, Counted> {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        while now >= counted.second_end_ns {
            let cpu_ns = process_cpu_ns();
            counted.now.end_ns = counted.second_end_ns;
            counted.now.cpu_ns = cpu_ns - counted.cpu_ns;
            counted.cpu_ns = cpu_ns;
            let next = counted.now.successor();
            let over = std::mem::replace(&mut counted.now, next);
            counted.over.push(over);
            counted.second_end_ns += SECOND_NS;
        }
        counted
    }
}

/// The sums of a run, and what is said of it.
pub(crate) struct Sum<'a> {
    course: &'a Course,
    groups: &'a Groups,
    scripts: [ScriptInfo; 1],
    warmup_ns: u64,
    warmup: Account,
    whole: Record,
}

impl<'a> Sum<'a> {
    pub(crate) fn new(course: &'a Course, groups: &'a Groups, warmup_ns: u64) -> Self {
        let whole = Record::new(1, groups.texts.len(), warmup_ns);
        Self { course, groups, scripts: [ScriptInfo::new(NAME, 1)], warmup_ns, warmup: Account::default(), whole }
    }

    /// Says a second that is over.
    pub(crate) fn second(&mut self, record: &Record, out: &mut impl Write) {
        let (begin_ns, end_ns) = (self.course.monotonic_ns(record.begin_ns), self.course.monotonic_ns(record.end_ns));
        let stretch = record.stretch(&self.scripts, self.groups, begin_ns, end_ns);
        say(out, &Line::Second(Box::new(Second { stretch, warmup: self.add(record) })));
    }

    /// Adds a stretch of time to the whole, or to the warm-up. Whether it is of the latter.
    pub(crate) fn add(&mut self, record: &Record) -> bool {
        let is_warmup = record.end_ns <= self.warmup_ns;
        if is_warmup {
            self.warmup.add(&record.account());
        } else {
            self.whole.add(record);
        }
        is_warmup
    }

    /// Says the whole, after proving that nothing that was scheduled is missing from it.
    pub(crate) fn finish(
        self,
        scheduled: u64,
        connect_ns: u64,
        inputs: BTreeMap<&'static str, u64>,
        out: &mut impl Write,
    ) {
        let account = self.whole.account();
        assert_eq!(
            scheduled,
            account.settled() + self.warmup.settled(),
            "scheduled = skipped + succeeded + rolled back + failed"
        );
        let elapsed_s = self.whole.end_ns.saturating_sub(self.warmup_ns).max(1) as f64 / 1e9;
        let (begin_ns, end_ns) =
            (self.course.monotonic_ns(self.warmup_ns), self.course.monotonic_ns(self.whole.end_ns));
        let summary = Summary {
            stretch: self.whole.stretch(&self.scripts, self.groups, begin_ns, end_ns),
            tps: account.succeeded as f64 / elapsed_s,
            qps: self.whole.queries_total() as f64 / elapsed_s,
            connect_ns,
            begin_late_ns: 0,
            woke_late_ns: 0,
            scheduled_with_warmup: scheduled,
            settled_in_warmup: self.warmup.settled(),
            process_user_ns: process_cpu_ns(),
            process_system_ns: 0,
            clients_disconnected: 0,
            reconnects_failed: BTreeMap::new(),
            reconnect_error: None,
            inputs,
            ended_by: None,
            unit: "us",
        };
        say(out, &Line::Summary(Box::new(summary)));
    }
}

#[cfg(test)]
mod tests {
    use pgdyno_workload::Verdict;

    use super::*;

    fn done(started: u64) -> Transaction {
        Transaction { script: 0, ordinal: 0, scheduled: started, started, tries: 1, verdict: Verdict::Succeeded }
    }

    #[test]
    fn seconds_end_where_the_warm_up_does_and_what_follows_the_last_is_part_of_the_whole() {
        let course = Course::new(monotonic_ns(), 1_500_000_000, 0, 2);
        for (thread, at) in [400_000_000, 1_400_000_000, 2_400_000_000].into_iter().enumerate() {
            course.part(thread % 2).transaction(at, &done(at));
        }
        let over = course.over_by(2_600_000_000);
        let edges: Vec<_> = over.iter().map(|one| (one.begin_ns / 100_000_000, one.end_ns / 100_000_000)).collect();
        assert_eq!(edges, [(0, 5), (5, 15), (15, 25)]);
        let groups = Groups::default();
        let mut sum = Sum::new(&course, &groups, 1_500_000_000);
        let warmups: Vec<_> = over.iter().map(|one| sum.add(one)).collect();
        assert_eq!((warmups, sum.warmup.settled(), sum.whole.account().settled()), (vec![true, true, false], 2, 1));
        let mut said = Vec::new();
        sum.finish(3, 7, BTreeMap::new(), &mut said);
        let line: serde_json::Value = serde_json::from_slice(&said).unwrap();
        assert_eq!(line["summary"]["succeeded"], 1);
        assert_eq!(line["summary"]["scripts"][0]["name"], NAME);
    }
}
