//! What readers of all formats find, and hand on.

use std::io;

use crate::entry::Entry;
use crate::input::{Input, line_length};

/// What takes entries; an error of its own ends the reading.
pub(crate) type Sink<'s, E> = dyn FnMut(Found<'_>) -> Result<(), E> + 's;

/// What a reader found.
pub(crate) enum Found<'a> {
    /// An entry.
    Entry(&'a Entry<'a>),
    /// A record that is not whole, or is no record.
    Torn,
    /// A record that is not text in UTF-8.
    NotText,
    /// A line that is not text in UTF-8. The entry that it is of is handed on as one that is cut.
    LineNotText,
    /// A line of another program.
    Foreign,
    /// A record that is longer than one may be.
    TooLong,
    /// So many messages are missing by the numbers of what is around them.
    Missing(u64),
}

/// Skips what is next up to the next line that `begins` an entry. A record that is torn or too long ends there.
pub(super) fn skip_to(input: &mut Input<'_>, begins: impl Fn(&[u8]) -> bool) -> io::Result<()> {
    loop {
        input.skip_line()?;
        let Some(after) = input.next(line_length)? else { return Ok(()) };
        if begins(&input.seen()[..after.length]) {
            return Ok(());
        }
    }
}
