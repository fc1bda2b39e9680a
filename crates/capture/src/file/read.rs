//! Reads a capture.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::limits::{self, PARTS_MAX, TextBudget, VALUES_MAX, damaged};
use super::{
    ANSWER, CHECKPOINT, CUT, Checkpoint, DONE, FAILED, INLINE, Index, Indexed, Last, MAGIC, MAGIC_1, MAGIC_2, MORE,
    PLAIN, RECORDED, ROWS, UNNAMED, WITHOUT_VALUES,
};
use crate::account::Account;
use crate::call::{Call, Ending, Protocol, SessionFacts};
use crate::error::CaptureError;

/// Before a frame: its stored bytes, its bytes, its kind, four bytes each. Files without checkpoints have zeros for the kind.
const HEAD_BYTES: u64 = 12;
/// What a text or a value may keep of the memory of the one before it: most are shorter, and thousands of sessions each have a call.
const KEPT_BYTES: usize = 16 << 10;

/// What a capture holds.
#[derive(Debug, Clone)]
pub struct Contents {
    /// What was read of the logs.
    pub account: Account,
    /// The sessions, by number.
    pub sessions: Vec<SessionFacts>,
}

/// Where a reader is among the calls of a session.
pub struct Cursor {
    session: usize,
    /// Blocks that were read.
    blocks: usize,
    block: Vec<u8>,
    /// Where the next call begins in the last of them.
    at: usize,
    last: Last,
}

impl Cursor {
    /// Before the first call of a session.
    #[must_use]
    pub fn new(session: usize) -> Self {
        Self { session, blocks: 0, block: Vec::new(), at: 0, last: Last::default() }
    }
}

/// A capture that can be read.
pub struct CaptureFile {
    path: PathBuf,
    file: File,
    index: Arc<Index>,
    texts: Arc<Vec<String>>,
    /// Whether others than its owner may read it.
    pub exposed: bool,
}

impl CaptureFile {
    /// Opens a capture, and reads its index and its texts.
    pub fn open(path: &Path) -> Result<Self, CaptureError> {
        let file = File::open(path).map_err(|error| CaptureError::unreadable(path, &error))?;
        let mode = file.metadata().map_err(|error| CaptureError::unreadable(path, &error))?.mode();
        let exposed = mode & 0o077 != 0;
        let mut opened = Self { path: path.to_owned(), file, index: Arc::default(), texts: Arc::default(), exposed };
        opened.load().map_err(|error| match error.kind() {
            io::ErrorKind::InvalidInput => CaptureError::new(
                format!("{} is no capture", path.display()),
                "make one from the server's logs: `pgdyno capture read LOG --output FILE`",
            ),
            _ => CaptureError::unreadable(path, &error),
        })?;
        Ok(opened)
    }

    fn load(&mut self) -> io::Result<()> {
        let none = || io::Error::from(io::ErrorKind::InvalidInput);
        let mut magic = [0; MAGIC.len()];
        self.file.read_exact(&mut magic).map_err(|_| none())?;
        let known = [MAGIC, MAGIC_2, MAGIC_1];
        if !known.contains(&&magic) {
            return Err(none());
        }
        let mut index = match self.place_of_index(&known)? {
            Some(at) => {
                let mut index: Index = serde_json::from_slice(&self.frame(at)?)?;
                for at in std::mem::take(&mut index.checkpoints) {
                    let checkpoint = self.frame_of(at, |kind| matches!(kind, CHECKPOINT | RECORDED))?;
                    put_checkpoint(&mut index, &checkpoint)?;
                }
                index
            }
            None => self.recovered()?,
        };
        limits::index(&index)?;
        let (mut texts, mut budget) = (Vec::new(), TextBudget::default());
        for at in std::mem::take(&mut index.texts) {
            let block = self.frame(at)?;
            let mut rest = block.as_slice();
            while !rest.is_empty() {
                let found = text(take_bytes(&mut rest)?)?;
                budget.take(found.len())?;
                texts.push(found);
            }
        }
        (self.index, self.texts) = (Arc::new(index), Arc::new(texts));
        Ok(())
    }

    /// Where the index is; none if the file was not finished.
    fn place_of_index(&mut self, known: &[&[u8; 16]]) -> io::Result<Option<u64>> {
        let mut end = [0; 8 + MAGIC.len()];
        if self.file.seek(SeekFrom::End(-(end.len() as i64))).is_err() {
            return Ok(None);
        }
        self.file.read_exact(&mut end)?;
        let (at, magic) = end.split_at(8);
        let is_end = known.iter().any(|known| known.as_slice() == magic);
        Ok(is_end.then(|| u64::from_le_bytes(at.try_into().expect("eight bytes"))))
    }

    /// What a recording has that was killed: all up to its last checkpoint.
    fn recovered(&mut self) -> io::Result<Index> {
        let (mut index, mut is_recording) = (Index::default(), false);
        let length = self.file.seek(SeekFrom::End(0))?;
        let mut at = MAGIC.len() as u64;
        while let Some((_, stored, kind)) = self.head(at).ok().map(split_head) {
            let next = at + HEAD_BYTES + u64::from(stored);
            if next > length {
                break;
            }
            if kind == RECORDED {
                // What is behind one that is damaged is not known.
                let Ok(checkpoint) = self.frame_of(at, |kind| kind == RECORDED) else { break };
                if put_checkpoint(&mut index, &checkpoint).is_err() {
                    break;
                }
                is_recording = true;
            }
            at = next;
        }
        if !is_recording {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it is not complete"));
        }
        index.account.unfinished = true;
        index.account.not_ended = index.sessions.iter().filter(|session| !session.facts.ended).count() as u64;
        Ok(index)
    }

    /// The same for another reader: it reads on its own, and shares index and texts.
    pub fn another(&self) -> Result<Self, CaptureError> {
        let file = File::open(&self.path).map_err(|error| CaptureError::unreadable(&self.path, &error))?;
        let (index, texts) = (Arc::clone(&self.index), Arc::clone(&self.texts));
        Ok(Self { path: self.path.clone(), file, index, texts, exposed: self.exposed })
    }

    /// What it holds.
    pub fn contents(&self) -> Contents {
        let sessions = self.index.sessions.iter().map(|session| session.facts.clone()).collect();
        Contents { account: self.index.account.clone(), sessions }
    }

    /// A part of the rows of a COPY, by one of the places that [`Call::rows`] has.
    pub fn rows(&mut self, at: u64) -> Result<Vec<u8>, CaptureError> {
        self.frame(at).map_err(|error| CaptureError::unreadable(&self.path, &error))
    }

    /// Passes the calls of a session in order to `each`, in the memory of one: who keeps one takes it.
    pub fn calls(&mut self, session: usize, mut each: impl FnMut(&mut Call)) -> Result<(), CaptureError> {
        self.calls_of(session, |_, _| true, |_, call| each(call))
    }

    /// Passes the calls of a session to `each` that are `wanted` by their protocol and the number of their text, with that number. A text that
    /// stands where it is used has none.
    pub fn calls_of(
        &mut self,
        session: usize,
        mut wanted: impl FnMut(Protocol, Option<usize>) -> bool,
        mut each: impl FnMut(Option<usize>, &mut Call),
    ) -> Result<(), CaptureError> {
        let (mut cursor, mut call) = (Cursor::new(session), Call::default());
        loop {
            match self.advance(&mut cursor, &mut call, &mut wanted) {
                Ok(Some(text)) => each(text, &mut call),
                Ok(None) => return Ok(()),
                Err(error) => return Err(CaptureError::unreadable(&self.path, &error)),
            }
        }
    }

    /// Makes `call` the next one of a session. Returns the number of its text as [`Self::calls_of`] has it; none behind the last one.
    pub fn next_call(&mut self, cursor: &mut Cursor, call: &mut Call) -> Result<Option<Option<usize>>, CaptureError> {
        self.advance(cursor, call, &mut |_, _| true).map_err(|error| CaptureError::unreadable(&self.path, &error))
    }

    /// Makes `call` the next one that is `wanted`. Returns the number of its text.
    fn advance(
        &mut self,
        cursor: &mut Cursor,
        call: &mut Call,
        wanted: &mut impl FnMut(Protocol, Option<usize>) -> bool,
    ) -> io::Result<Option<Option<usize>>> {
        loop {
            while cursor.at == cursor.block.len() {
                let session = self.index.sessions.get(cursor.session).ok_or_else(damaged)?;
                let Some(&at) = session.blocks.get(cursor.blocks) else { return Ok(None) };
                cursor.block = self.frame(at)?;
                (cursor.blocks, cursor.at) = (cursor.blocks + 1, 0);
            }
            let mut rest = &cursor.block[cursor.at..];
            let found = decode(&mut rest, &mut cursor.last, &self.texts, wanted, call)?;
            cursor.at = cursor.block.len() - rest.len();
            if found.is_some() {
                return Ok(found);
            }
        }
    }

    fn head(&mut self, at: u64) -> io::Result<[u8; HEAD_BYTES as usize]> {
        let mut head = [0; HEAD_BYTES as usize];
        self.file.read_exact_at(&mut head, at)?;
        Ok(head)
    }

    fn frame(&mut self, at: u64) -> io::Result<Vec<u8>> {
        self.frame_of(at, |kind| kind == PLAIN)
    }

    fn frame_of(&mut self, at: u64, is_expected: impl Fn(u32) -> bool) -> io::Result<Vec<u8>> {
        let (length, stored, kind) = split_head(self.head(at)?);
        if !is_expected(kind) {
            return Err(damaged());
        }
        self.file.seek(SeekFrom::Start(at.checked_add(HEAD_BYTES).ok_or_else(damaged)?))?;
        let mut bytes = Vec::new();
        (&mut self.file).take(u64::from(stored)).read_to_end(&mut bytes)?;
        limits::inflate(&bytes, u64::from(length))
    }
}

/// Bytes of a frame, stored bytes, kind.
fn split_head(head: [u8; HEAD_BYTES as usize]) -> (u32, u32, u32) {
    let number = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four bytes"));
    (number(4), number(0), number(8))
}

/// Adds what a checkpoint says.
fn put_checkpoint(index: &mut Index, checkpoint: &[u8]) -> io::Result<()> {
    let checkpoint: Checkpoint = serde_json::from_slice(checkpoint)?;
    for delta in checkpoint.sessions {
        limits::facts(&delta.facts)?;
        // A session has its number since it began, so that none is left out.
        if delta.number == index.sessions.len() {
            index.sessions.push(Indexed::default());
        }
        let session = index.sessions.get_mut(delta.number).ok_or_else(damaged)?;
        session.facts = delta.facts;
        session.blocks.extend(delta.blocks);
    }
    index.texts.extend(checkpoint.texts);
    if let Some(account) = checkpoint.account {
        index.account = account;
    }
    Ok(())
}

fn take(rest: &mut &[u8]) -> io::Result<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, after) = rest.split_first().ok_or_else(damaged)?;
        *rest = after;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(damaged())
}

fn at_most(limit: u64, count: u64) -> io::Result<u64> {
    if count <= limit { Ok(count) } else { Err(damaged()) }
}

fn take_some<'a>(rest: &mut &'a [u8], length: u64) -> io::Result<&'a [u8]> {
    let length = usize::try_from(length).map_err(|_| damaged())?;
    let (bytes, after) = rest.split_at_checked(length).ok_or_else(damaged)?;
    *rest = after;
    Ok(bytes)
}

fn take_bytes<'a>(rest: &mut &'a [u8]) -> io::Result<&'a [u8]> {
    let length = take(rest)?;
    take_some(rest, length)
}

fn text(bytes: &[u8]) -> io::Result<String> {
    as_text(bytes).map(str::to_owned)
}

fn as_text(bytes: &[u8]) -> io::Result<&str> {
    std::str::from_utf8(bytes).map_err(|_| damaged())
}

/// Puts a text in the place of another one, in the memory of that.
fn put(into: &mut String, text: &str) {
    into.clear();
    into.shrink_to(KEPT_BYTES);
    into.push_str(text);
}

/// Makes the values of a call those that follow.
fn take_values(rest: &mut &[u8], protocol: Protocol, call: &mut Call, is_wanted: bool) -> io::Result<()> {
    let count = if protocol == Protocol::Text { 0 } else { at_most(VALUES_MAX, take(rest)?)? };
    let count = usize::try_from(count).map_err(|_| damaged())?;
    call.values.truncate(count);
    for place in 0..count {
        let length = take(rest)?;
        let bytes = if length == 0 { None } else { Some(take_some(rest, length - 1)?) };
        if !is_wanted {
            continue;
        }
        if call.values.len() == place {
            call.values.push(None);
        }
        match bytes {
            Some(bytes) => put(call.values[place].get_or_insert_default(), as_text(bytes)?),
            None => call.values[place] = None,
        }
    }
    Ok(())
}

/// Makes `call` the next one, in the memory of what it was. Returns the number of its text; none if it is not `wanted`, and then nothing is made.
fn decode(
    rest: &mut &[u8],
    last: &mut Last,
    texts: &[String],
    wanted: &mut impl FnMut(Protocol, Option<usize>) -> bool,
    call: &mut Call,
) -> io::Result<Option<Option<usize>>> {
    let flags = take_some(rest, 1)?[0];
    let protocol = match flags & 3 {
        0 => Protocol::Text,
        UNNAMED => Protocol::Unnamed,
        _ => Protocol::Named,
    };
    let delta = take(rest)?;
    last.due_us = limits::instant(last.due_us.wrapping_add((delta >> 1).cast_signed() ^ -(delta & 1).cast_signed()))?;
    last.transaction = last.transaction.wrapping_add(u32::try_from(take(rest)?).map_err(|_| damaged())?);
    let inline = if flags & INLINE != 0 { Some(take_bytes(rest)?) } else { None };
    let number = match inline {
        None => Some(usize::try_from(take(rest)?).map_err(|_| damaged())?),
        Some(_) => None,
    };
    let is_wanted = wanted(protocol, number);
    // What is not wanted is passed over, and not made.
    match (inline, number) {
        (Some(bytes), _) if is_wanted => put(&mut call.text, as_text(bytes)?),
        (None, Some(number)) if is_wanted => put(&mut call.text, texts.get(number).ok_or_else(damaged)?),
        _ => (),
    }
    call.ending = match flags & (DONE | FAILED) {
        DONE => Ending::Done(limits::duration(take(rest)?)?),
        FAILED => Ending::Failed(take_some(rest, 5)?.try_into().expect("five bytes")),
        _ => Ending::Unknown,
    };
    (call.due_us, call.protocol, call.transaction) = (last.due_us, protocol, last.transaction);
    (call.without_values, call.cut) = (flags & WITHOUT_VALUES != 0, flags & CUT != 0);
    let name = if protocol == Protocol::Named { take_bytes(rest)? } else { &[][..] };
    if is_wanted {
        put(&mut call.name, as_text(name)?);
    }
    take_values(rest, protocol, call, is_wanted)?;
    let more = if flags & MORE == 0 { 0 } else { take_some(rest, 1)?[0] };
    call.rows = None;
    if more & ROWS != 0 {
        let mut at = 0_u64;
        let mut places = Vec::new();
        for _ in 0..at_most(PARTS_MAX, take(rest)?)? {
            at = at.checked_add(take(rest)?).ok_or_else(damaged)?;
            places.push(at);
        }
        call.rows = Some(places);
    }
    call.answer.clear();
    if more & ANSWER != 0 {
        for _ in 0..at_most(VALUES_MAX, take(rest)?)? {
            let (name, value) = (take_bytes(rest)?, take_bytes(rest)?);
            if is_wanted {
                call.answer.push((text(name)?, text(value)?));
            }
        }
    }
    Ok(is_wanted.then_some(number))
}

#[cfg(test)]
mod tests {
    use super::super::Writer;
    use super::*;

    #[test]
    fn calls_that_are_not_wanted_are_passed_over() {
        let path = std::env::temp_dir().join(format!("pgdyno-calls-{}.capture", std::process::id()));
        let call = |number: u32, text: &str| Call {
            due_us: i64::from(number),
            protocol: Protocol::Named,
            name: format!("s{number}"),
            text: text.to_owned(),
            values: vec![Some("it's".to_owned()), None],
            transaction: number,
            ending: Ending::Done(7),
            without_values: false,
            cut: false,
            rows: Some(vec![3, 9]),
            answer: vec![("id".to_owned(), "7".to_owned())],
        };
        // A text is in the table from its second use on.
        let calls = [call(1, "a"), call(2, "b"), call(3, "a"), call(4, "b"), call(5, "c")];
        let mut writer = Writer::create(&path).unwrap();
        let session = writer.begin(&SessionFacts::default());
        calls.iter().for_each(|one| writer.call(session, one).unwrap());
        writer.end(session, SessionFacts::default()).unwrap();
        writer.finish(&Account::default()).unwrap();
        let mut file = CaptureFile::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let mut found = Vec::new();
        file.calls(session, |call| found.push(std::mem::take(call))).unwrap();
        assert_eq!(found, calls);
        for (wanted, numbers) in [(None, vec![1, 2, 5]), (Some(0), vec![3]), (Some(1), vec![4])] {
            let mut found = Vec::new();
            file.calls_of(session, |_, text| text == wanted, |text, call| found.push((text, call.clone()))).unwrap();
            let expected: Vec<_> = numbers.iter().map(|number| (wanted, calls[number - 1].clone())).collect();
            assert_eq!(found, expected);
        }
    }
}
