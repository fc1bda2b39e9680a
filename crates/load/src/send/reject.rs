//! Rows that the table does not take: their bytes as they were, and why.
//!
//! Each chunk writes a part of its own, which is on disk before the chunk is committed. At the end the parts of the chunks
//! that were committed become one file. A part of a chunk that never was is overwritten by the next try, or left out.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

use crate::error::LoadError;
use crate::format::LineEnd;
use crate::ledger::Chunks;
use crate::spec::RejectSpec;
use crate::split::chunk_data::{ChunkData, READ_BYTES};

/// Why a row was rejected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Reason {
    /// What its source is called.
    pub source: String,
    /// Its first line, from 1; the header counts.
    pub line: u64,
    /// Where it begins: bytes of the uncompressed source, from 0.
    pub byte: u64,
    /// The column that was at fault, where the server says.
    pub column: Option<String>,
    /// Five characters.
    pub sqlstate: String,
    /// The server's message.
    pub reason: String,
    /// More of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// All of a load.
pub(crate) struct Rejects {
    path: PathBuf,
    parts: PathBuf,
    max: u64,
    /// Rows that were rejected, with those of chunks under way.
    count: AtomicU64,
    /// Of committed chunks that have any: how many.
    committed: Mutex<BTreeMap<(usize, u64), u64>>,
    /// How lines end in the first source that has any: a file of rows with several kinds of ends could not be loaded.
    line_end: Mutex<Option<LineEnd>>,
}

impl Rejects {
    /// Makes the folder of parts. `done`: what was committed before counts too.
    pub(crate) fn new(spec: &RejectSpec, done: &Chunks) -> Result<Self, LoadError> {
        let parts = beside(&spec.path, ".parts");
        let create = || {
            std::fs::create_dir_all(&parts)?;
            // What is written in it must not be lost with its name.
            File::open(parts.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new(".")))?
                .sync_all()
        };
        create().map_err(|error| cannot_write(&parts, &error))?;
        let committed: BTreeMap<_, _> = done
            .iter()
            .filter(|(_, chunk)| chunk.rows_rejected > 0)
            .map(|(place, chunk)| (*place, chunk.rows_rejected))
            .collect();
        let count = committed.values().sum::<u64>();
        let (path, max) = (spec.path.clone(), spec.max);
        let (count, committed) = (AtomicU64::new(count), Mutex::new(committed));
        Ok(Self { path, parts, max, count, committed, line_end: Mutex::new(None) })
    }

    /// Begins the part of a chunk; what another try wrote there is gone. `line_end` is its source's.
    pub(crate) fn part(&self, source: usize, chunk: u64, line_end: Option<LineEnd>) -> Result<Part<'_>, LoadError> {
        self.require_one(line_end)?;
        let path = self.part_path((source, chunk));
        let create = |path: &Path| File::create(path).map(BufWriter::new).map_err(|error| cannot_write(path, &error));
        let (rows, reasons) = (create(&path)?, create(&beside(&path, ".jsonl"))?);
        Ok(Part { all: self, place: (source, chunk), path, rows, reasons, count: 0 })
    }

    /// Refuses rows that would not fit to those that are there.
    fn require_one(&self, line_end: Option<LineEnd>) -> Result<(), LoadError> {
        let mut first = self.line_end.lock().unwrap_or_else(PoisonError::into_inner);
        if line_end.is_none_or(|line_end| *first.get_or_insert(line_end) == line_end) {
            return Ok(());
        }
        let message = "rejected rows of files with different line ends cannot be written to one file";
        Err(LoadError::new(message, "load the files separately, each kind with its own reject file"))
    }

    /// A chunk is in the table, and another session has written its line in the ledger.
    pub(crate) fn recorded(&self, place: (usize, u64), count: u64) {
        self.count.fetch_add(count, Ordering::Relaxed);
        self.commit(place, count);
    }

    fn commit(&self, place: (usize, u64), count: u64) {
        if count > 0 {
            self.committed.lock().unwrap_or_else(PoisonError::into_inner).insert(place, count);
        }
    }

    /// Makes one file of rows, with the header of the first source that has any, and one of reasons. Returns their names;
    /// without a rejected row there are none.
    pub(crate) fn join(&self, header: impl Fn(usize) -> Vec<u8>) -> Result<Vec<PathBuf>, LoadError> {
        let committed = self.committed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some((first, _)) = committed.keys().next() else { return Ok(Vec::new()) };
        let reasons = beside(&self.path, ".jsonl");
        let names = vec![self.path.clone(), reasons.clone()];
        let is_joined = self.path.exists() && reasons.exists();
        if is_joined && !committed.keys().any(|place| self.part_path(*place).exists()) {
            // An earlier run came to the end of this job.
            return Ok(names);
        }
        self.join_one(&self.path, "", &header(*first), committed.keys())?;
        self.join_one(&reasons, ".jsonl", b"", committed.keys())?;
        Ok(names)
    }

    /// The load is over: the parts are not needed any more.
    pub(crate) fn tidy(&self) -> Result<(), LoadError> {
        // All at once: a run that is killed here must leave all of them or none.
        let old = beside(&self.parts, ".old");
        let gone = |error: io::Error| match error.kind() {
            ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        };
        let remove = || {
            std::fs::remove_dir_all(&old).or_else(gone)?;
            std::fs::rename(&self.parts, &old)?;
            std::fs::remove_dir_all(&old)
        };
        remove().map_err(|error| cannot_write(&self.parts, &error))
    }

    /// This try is over, and its sessions have ended. One that rejected nothing leaves no folder. A planner may hold this for
    /// longer, when the folder is the next try's: so that is not done when it is dropped.
    pub(crate) fn leave(&self) {
        let _ = std::fs::remove_dir(&self.parts);
    }

    /// The file appears whole or not at all.
    fn join_one<'a>(
        &self,
        path: &Path,
        suffix: &str,
        header: &[u8],
        places: impl Iterator<Item = &'a (usize, u64)>,
    ) -> Result<(), LoadError> {
        let new = beside(path, ".new");
        let write = || {
            let mut file = File::create(&new)?;
            file.write_all(header)?;
            for place in places {
                let part = beside(&self.part_path(*place), suffix);
                let read = File::open(&part).and_then(|mut part| io::copy(&mut part, &mut file));
                read.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", part.display())))?;
            }
            file.sync_all()?;
            std::fs::rename(&new, path)
        };
        write().map_err(|error| cannot_write(path, &error))
    }

    fn part_path(&self, (source, chunk): (usize, u64)) -> PathBuf {
        self.parts.join(format!("{source:06}-{chunk:09}"))
    }
}

/// The rejected rows of a chunk under way. Dropped without [`Part::committed`], they do not count.
pub(crate) struct Part<'a> {
    all: &'a Rejects,
    place: (usize, u64),
    path: PathBuf,
    rows: BufWriter<File>,
    reasons: BufWriter<File>,
    count: u64,
}

impl Part<'_> {
    /// Writes a row as it is, from `begin` to `end` of a chunk. A row without an end of its own, the last of its source, gets
    /// that of the lines before it, or the next one would be part of it.
    pub(crate) fn reject(
        &mut self,
        body: &ChunkData,
        (begin, end): (u64, u64),
        line_end: Option<LineEnd>,
        reason: &Reason,
    ) -> Result<(), LoadError> {
        self.count += 1;
        let before = self.all.count.fetch_add(1, Ordering::Relaxed);
        self.write(body, begin, end, line_end, reason).map_err(|error| cannot_write(&self.path, &error))?;
        if before < self.all.max {
            return Ok(());
        }
        let Reason { source, line, byte, sqlstate, reason, .. } = reason;
        let message = format!(
            "more than {} rows were rejected; the last one is {source} line {line} (byte {byte}): {reason} ({sqlstate})",
            self.all.max
        );
        Err(LoadError::new(message, "check delimiter, quote, columns and encoding, or allow more rejected rows"))
    }

    fn write(
        &mut self,
        body: &ChunkData,
        begin: u64,
        end: u64,
        line_end: Option<LineEnd>,
        reason: &Reason,
    ) -> io::Result<()> {
        let (mut at, mut bytes, mut last) = (begin, Vec::new(), None);
        loop {
            bytes.clear();
            let read = body.read(at, end, READ_BYTES, &mut bytes)?;
            if read == 0 {
                break;
            }
            self.rows.write_all(&bytes)?;
            (at, last) = (at + read, bytes.last().copied());
        }
        if !matches!(last, Some(b'\n' | b'\r')) {
            self.rows.write_all(match line_end {
                Some(LineEnd::Return) => &b"\r"[..],
                Some(LineEnd::ReturnNewline) => &b"\r\n"[..],
                Some(LineEnd::Newline) | None => &b"\n"[..],
            })?;
        }
        serde_json::to_writer(&mut self.reasons, reason)?;
        self.reasons.write_all(b"\n")
    }

    /// Rows that are in it.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Puts everything on disk.
    pub(crate) fn sync(&mut self) -> Result<(), LoadError> {
        let mut sync = || {
            self.rows.flush()?;
            self.reasons.flush()?;
            self.rows.get_ref().sync_all()?;
            self.reasons.get_ref().sync_all()?;
            File::open(&self.all.parts)?.sync_all()
        };
        sync().map_err(|error| cannot_write(&self.path, &error))
    }

    /// Its chunk is in the table.
    pub(crate) fn committed(mut self) {
        let count = std::mem::take(&mut self.count);
        self.all.commit(self.place, count);
    }
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        self.all.count.fetch_sub(self.count, Ordering::Relaxed);
    }
}

/// The same name with something behind it.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn cannot_write(path: &Path, error: &io::Error) -> LoadError {
    let message = format!("cannot write rejected rows to {}: {error}", path.display());
    LoadError::new(message, "name a file in a folder that can be written to, with space left")
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::ledger::Done;
    use crate::split::chunk_data::chunk_data_of;

    fn reason(line: u64) -> Reason {
        Reason {
            source: "a.csv".to_owned(),
            line,
            byte: 0,
            column: None,
            sqlstate: "22P02".to_owned(),
            reason: "no".to_owned(),
            detail: None,
        }
    }

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("pgdyno-reject-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&folder).unwrap();
            Self(folder)
        }

        fn spec(&self, max: u64) -> RejectSpec {
            RejectSpec { path: self.0.join("rej"), max }
        }

        fn text(&self, name: &str) -> String {
            let mut text = String::new();
            File::open(self.0.join(name)).unwrap().read_to_string(&mut text).unwrap();
            text
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn parts_are_joined_in_order_behind_the_header_and_those_of_no_chunk_are_left_out() {
        let folder = Folder::new("join");
        let rejects = Rejects::new(&folder.spec(9), &Chunks::new()).unwrap();
        let body = chunk_data_of(b"x,1\r\ny,2", 0);
        for (place, row) in [((1, 0), (5, 8)), ((0, 7), (0, 5)), ((0, 8), (0, 5))] {
            let mut part = rejects.part(place.0, place.1, Some(LineEnd::ReturnNewline)).unwrap();
            part.reject(&body, row, Some(LineEnd::ReturnNewline), &reason(place.1)).unwrap();
            part.sync().unwrap();
            if place.1 != 8 {
                part.committed();
            }
        }
        assert_eq!(rejects.join(|source| format!("h{source}\r\n").into_bytes()).unwrap().len(), 2);
        assert_eq!(folder.text("rej"), "h0\r\nx,1\r\ny,2\r\n");
        assert_eq!(folder.text("rej.jsonl").lines().count(), 2);
        rejects.tidy().unwrap();
        assert!(!folder.0.join("rej.parts").exists() && !folder.0.join("rej.parts.old").exists());
        assert_eq!(rejects.join(|_| Vec::new()).unwrap().len(), 2, "they are there already");
        assert_eq!(folder.text("rej"), "h0\r\nx,1\r\ny,2\r\n");
    }

    #[test]
    fn a_try_that_is_held_for_longer_leaves_the_folder_to_the_next_one() {
        let folder = Folder::new("late");
        let late = Rejects::new(&folder.spec(9), &Chunks::new()).unwrap();
        late.leave();
        assert!(!folder.0.join("rej.parts").exists());
        let next = Rejects::new(&folder.spec(9), &Chunks::new()).unwrap();
        drop(late);
        assert!(next.part(0, 0, None).is_ok());
    }

    #[test]
    fn rows_that_end_in_different_ways_do_not_go_into_one_file() {
        let folder = Folder::new("ends");
        let rejects = Rejects::new(&folder.spec(9), &Chunks::new()).unwrap();
        for line_end in [None, Some(LineEnd::Newline), None, Some(LineEnd::Newline)] {
            assert!(rejects.part(0, 0, line_end).is_ok());
        }
        let Err(error) = rejects.part(1, 0, Some(LineEnd::Return)) else { panic!("it was taken") };
        assert!(error.remedy.contains("separately"), "{error}");
    }

    #[test]
    fn more_than_are_allowed_end_the_load_and_those_that_are_taken_back_do_not_count() {
        let folder = Folder::new("max");
        let earlier = Chunks::from([((0, 0), Done { begin: 0, end: 1, rows_loaded: 0, rows_rejected: 1 })]);
        let rejects = Rejects::new(&folder.spec(2), &earlier).unwrap();
        let body = chunk_data_of(b"x\n", 0);
        for _ in 0..2 {
            let mut part = rejects.part(0, 1, None).unwrap();
            part.reject(&body, (0, 2), None, &reason(1)).unwrap();
            let error = part.reject(&body, (0, 2), None, &reason(2)).unwrap_err();
            assert!(error.message.starts_with("more than 2 rows"), "{error}");
        }
        assert_eq!(rejects.count.load(Ordering::Relaxed), 1);
    }
}
