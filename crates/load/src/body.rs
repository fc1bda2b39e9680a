//! The bytes of a chunk: in memory, or where it is too long for that, in its own file or a temporary one.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::pool::Buffer;

/// What a chunk is of. Places are bytes from the beginning of the source.
pub(crate) struct Body {
    kept: Kept,
    /// Place of the first byte that is kept.
    first: u64,
    /// Place behind the last.
    end: u64,
}

enum Kept {
    Memory(Buffer),
    /// In the source itself.
    Source(File),
    /// In a file without a name.
    Temporary(File),
}

impl Body {
    /// Empty, beginning at a place.
    pub(crate) fn new(buffer: Buffer, first: u64) -> Self {
        Self { kept: Kept::Memory(buffer), first, end: first }
    }

    /// Place behind the last byte.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Appends. When memory does not do, `source` is where the bytes can be read again; otherwise they are written to a
    /// temporary file.
    pub(crate) fn append(&mut self, more: &[u8], source: impl FnOnce() -> Option<io::Result<File>>) -> io::Result<()> {
        if let Kept::Memory(buffer) = &mut self.kept
            && !buffer.append(more)
        {
            let kept = match source() {
                Some(file) => Kept::Source(file?),
                None => {
                    let mut file = temporary()?;
                    file.write_all(buffer.bytes())?;
                    Kept::Temporary(file)
                }
            };
            // The buffer goes back to the pool.
            self.kept = kept;
            if let Kept::Temporary(file) = &mut self.kept {
                file.write_all(more)?;
            }
        } else if let Kept::Temporary(file) = &mut self.kept {
            file.write_all(more)?;
        }
        self.end += more.len() as u64;
        Ok(())
    }

    /// Appends to `out` what lies at `begin`, up to `end` and to `most` bytes. Returns how many bytes that were: none where
    /// nothing is kept.
    pub(crate) fn read(&self, begin: u64, end: u64, most: usize, out: &mut Vec<u8>) -> io::Result<u64> {
        let end = end.min(self.end).min(begin.saturating_add(most as u64));
        let Some(count) = end.checked_sub(begin).filter(|count| *count > 0) else { return Ok(0) };
        let length = usize::try_from(count).unwrap_or(usize::MAX);
        let at = out.len();
        match &self.kept {
            Kept::Memory(buffer) => {
                let from = usize::try_from(begin - self.first).unwrap_or(usize::MAX);
                out.extend_from_slice(&buffer.bytes()[from..from + length]);
            }
            Kept::Source(file) => {
                out.resize(at + length, 0);
                file.read_exact_at(&mut out[at..], begin)?;
            }
            Kept::Temporary(file) => {
                out.resize(at + length, 0);
                file.read_exact_at(&mut out[at..], begin - self.first)?;
            }
        }
        Ok(count)
    }
}

/// A file that nobody else can open and that is gone with its descriptor.
fn temporary() -> io::Result<File> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("pgdyno-load-{}-{number}", std::process::id()));
    let file = File::options().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::pool::Pool;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_is_read_is_what_was_appended_wherever_it_lies(
            parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200_000), 0..6),
            first in 0_u64..1000, in_source in any::<bool>(), begin in 0_u64..500_000, most in 0_usize..300_000,
        ) {
            let whole = parts.concat();
            let mut original = temporary().unwrap();
            original.write_all(&vec![0; first as usize]).unwrap();
            original.write_all(&whole).unwrap();
            let mut body = Body::new(Pool::new(1, 1, 1 << 20).take().unwrap(), first);
            for part in &parts {
                body.append(part, || in_source.then(|| original.try_clone())).unwrap();
            }
            prop_assert_eq!(body.end(), first + whole.len() as u64);
            let begin = begin.min(whole.len() as u64);
            let end = (begin as usize + most).min(whole.len());
            let mut found = b"x".to_vec();
            let count = body.read(first + begin, u64::MAX, most, &mut found).unwrap();
            prop_assert_eq!(count as usize, end - begin as usize);
            prop_assert!(found[1..] == whole[begin as usize..end], "other bytes");
        }
    }
}
