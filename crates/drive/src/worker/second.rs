//! Seconds: each is handed in when it is over.

use pgdyno_clock::{SECOND_NS, thread_cpu_ns};

use super::{Report, Worker};

impl Worker<'_> {
    /// Hands in each second that is over.
    pub(super) fn roll(&mut self, now: u64) {
        while now >= self.second_end_ns {
            let end = self.second_end_ns;
            self.end_stretch(end);
            let next = Box::new(self.record.successor());
            let done = std::mem::replace(&mut self.record, next);
            self.second_end_ns += SECOND_NS;
            let _ = self.report.send(Report::Second(self.index, done));
        }
    }

    pub(super) fn end_stretch(&mut self, end_ns: u64) {
        self.record.end_ns = end_ns;
        let cpu_ns = thread_cpu_ns();
        self.record.cpu_ns += cpu_ns - self.cpu_ns;
        self.cpu_ns = cpu_ns;
    }
}
