//! Entries whose times have whole seconds alone.

use std::io;

use crate::assemble::Assembler;
use crate::entry::Entry;
use crate::time::SECOND_US;

/// Entries of one second that are spread over it: with more than this much text in them the later ones are at its end.
const SPREAD_BYTES_MAX: usize = 64 << 20;

/// Spreads the entries of a second over it, in order, where a log has whole seconds.
#[derive(Default)]
pub(crate) struct Spread {
    entries: Vec<Entry<'static>>,
    bytes: usize,
    /// The second whose entries were too many to be kept.
    over_us: Option<i64>,
}

impl Spread {
    pub(crate) fn entry(&mut self, mut entry: Entry<'static>, to: &mut Assembler) -> io::Result<()> {
        if self.over_us == Some(entry.time_us) {
            entry.time_us += SECOND_US - 1;
            return to.entry(&entry);
        }
        self.over_us = None;
        if self.entries.first().is_some_and(|first| first.time_us != entry.time_us) {
            self.flush(to)?;
        }
        self.bytes += entry.kept_bytes();
        let second_us = entry.time_us;
        self.entries.push(entry);
        if self.bytes > SPREAD_BYTES_MAX {
            self.over_us = Some(second_us);
            self.flush(to)?;
        }
        Ok(())
    }

    pub(crate) fn flush(&mut self, to: &mut Assembler) -> io::Result<()> {
        self.bytes = 0;
        let count = i64::try_from(self.entries.len()).unwrap_or(i64::MAX).max(1);
        for (index, mut entry) in std::mem::take(&mut self.entries).into_iter().enumerate() {
            entry.time_us += i64::try_from(index).unwrap_or(0) * SECOND_US / count;
            to.entry(&entry)?;
        }
        Ok(())
    }
}
