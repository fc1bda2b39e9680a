//! Puts things in order that do not fit into memory: sorted parts go to a file without a name, and are merged.
//!
//! Memory: at most [`HELD_BYTES_MAX`] of what is being sorted, and for each part what reading it takes, about 2 MiB: of 64 GiB there are at most [`RUNS_MAX`] on each of two levels.
//! Disk: what was given, compressed, and once more while parts are merged.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Held in memory before it is written.
const HELD_BYTES_MAX: usize = 64 << 20;
/// So many parts are merged into one.
const RUNS_MAX: usize = 32;
const LEVEL: i32 = 1;

/// By what things are ordered.
pub(crate) type Order = (i64, u64, i64);

/// Takes things in any order.
pub(crate) struct Sorter<T> {
    folder: PathBuf,
    held: Vec<(Order, T)>,
    held_bytes: usize,
    held_bytes_max: usize,
    /// Parts; those of each level are of so many of the level before, so that each thing is written once for each level.
    levels: Vec<Vec<File>>,
}

impl<T: Serialize + DeserializeOwned> Sorter<T> {
    /// Parts are written into this folder, and have no names there.
    pub(crate) fn new(folder: &Path) -> Self {
        let (held, levels) = (Vec::new(), Vec::new());
        Self { folder: folder.to_owned(), held, held_bytes: 0, held_bytes_max: HELD_BYTES_MAX, levels }
    }

    /// Takes one, which has about so many bytes.
    pub(crate) fn push(&mut self, order: Order, thing: T, bytes: usize) -> io::Result<()> {
        self.held.push((order, thing));
        self.held_bytes += bytes;
        if self.held_bytes < self.held_bytes_max {
            return Ok(());
        }
        let held = self.sorted();
        let mut file = written(&self.folder, held.into_iter().map(Ok))?;
        for level in 0.. {
            if level == self.levels.len() {
                self.levels.push(Vec::new());
            }
            self.levels[level].push(file);
            if self.levels[level].len() < RUNS_MAX {
                break;
            }
            let merged = Merged::<T>::of(std::mem::take(&mut self.levels[level]), Vec::new())?;
            file = written(&self.folder, merged)?;
        }
        Ok(())
    }

    fn sorted(&mut self) -> Vec<(Order, T)> {
        self.held_bytes = 0;
        let mut held = std::mem::take(&mut self.held);
        held.sort_by_key(|(order, _)| *order);
        held
    }

    /// All of them in order.
    pub(crate) fn finish(mut self) -> io::Result<Merged<T>> {
        let held = self.sorted();
        Merged::of(self.levels.into_iter().flatten().collect(), held)
    }
}

/// Writes a sorted part.
fn written<T: Serialize>(folder: &Path, things: impl Iterator<Item = io::Result<(Order, T)>>) -> io::Result<File> {
    let mut file = unnamed(folder)?;
    let mut out = BufWriter::new(zstd::stream::write::Encoder::new(&mut file, LEVEL)?);
    for thing in things {
        serde_json::to_writer(&mut out, &thing?)?;
        out.write_all(b"\n")?;
    }
    out.into_inner().map_err(io::IntoInnerError::into_error)?.finish()?;
    file.rewind()?;
    Ok(file)
}

fn unnamed(folder: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags, open};

    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    match open(folder, flags, Mode::RUSR | Mode::WUSR) {
        Ok(file) => Ok(file.into()),
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::ISDIR) => {
            let path = folder.join(format!(".pgdyno-sort-{}", std::process::id()));
            let _ = std::fs::remove_file(&path);
            let file = File::options().read(true).write(true).create_new(true).open(&path)?;
            std::fs::remove_file(&path)?;
            Ok(file)
        }
        Err(error) => Err(error.into()),
    }
}

/// Reads a part.
struct Run {
    lines: BufReader<zstd::stream::read::Decoder<'static, BufReader<File>>>,
    line: String,
}

impl Run {
    fn next<T: DeserializeOwned>(&mut self) -> io::Result<Option<(Order, T)>> {
        self.line.clear();
        if self.lines.read_line(&mut self.line)? == 0 {
            return Ok(None);
        }
        Ok(Some(serde_json::from_str(&self.line)?))
    }
}

/// Gives all parts in order.
pub(crate) struct Merged<T> {
    held: std::vec::IntoIter<(Order, T)>,
    runs: Vec<Run>,
    /// The next one of each, by its order; the last number is that of what is held.
    heads: BinaryHeap<Reverse<(Order, usize)>>,
    next: Vec<Option<T>>,
}

impl<T: DeserializeOwned> Merged<T> {
    fn of(files: Vec<File>, held: Vec<(Order, T)>) -> io::Result<Self> {
        let run = |file: File| -> io::Result<Run> {
            Ok(Run { lines: BufReader::new(zstd::stream::read::Decoder::new(file)?), line: String::new() })
        };
        let runs: Vec<Run> = files.into_iter().map(run).collect::<io::Result<_>>()?;
        let next = (0..=runs.len()).map(|_| None).collect();
        let mut merged = Self { held: held.into_iter(), runs, heads: BinaryHeap::new(), next };
        for number in 0..merged.next.len() {
            merged.fetch(number)?;
        }
        Ok(merged)
    }

    fn fetch(&mut self, number: usize) -> io::Result<()> {
        let found = match self.runs.get_mut(number) {
            Some(run) => run.next()?,
            None => self.held.next(),
        };
        if let Some((order, thing)) = found {
            self.heads.push(Reverse((order, number)));
            self.next[number] = Some(thing);
        }
        Ok(())
    }
}

impl<T: DeserializeOwned> Iterator for Merged<T> {
    type Item = io::Result<(Order, T)>;

    fn next(&mut self) -> Option<Self::Item> {
        let Reverse((order, number)) = self.heads.pop()?;
        let thing = self.next[number].take()?;
        Some(self.fetch(number).map(|()| (order, thing)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_into_memory_comes_in_order() {
        let mut sorter = Sorter { held_bytes_max: 100, ..Sorter::new(&std::env::temp_dir()) };
        let count = 20_000_u64;
        for number in 0..count {
            // 7919 is a prime: each number comes once.
            let value = number * 7919 % count;
            sorter.push((i64::try_from(value / 2).unwrap(), value % 2, 0), format!("{value}\n"), 10).unwrap();
        }
        assert!(sorter.levels.iter().all(|level| level.len() < RUNS_MAX) && sorter.levels.len() == 3);
        let found: Vec<String> = sorter.finish().unwrap().map(|found| found.unwrap().1).collect();
        let wanted: Vec<String> = (0..count).map(|value| format!("{value}\n")).collect();
        assert_eq!(found, wanted);
    }
}
