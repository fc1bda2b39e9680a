//! Rows on their way into a COPY: from memory, or from a file.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::fs::sendfile;

use super::{Talk, lost, waits};
use crate::error::DriveError;
use crate::wire;

/// A COPY that takes rows in.
pub struct CopyIn<'a> {
    talk: &'a mut Talk,
    /// What the server said against rows that were sent.
    refusal: Option<DriveError>,
    /// What is read of files that the kernel does not hand on.
    spare: Vec<u8>,
}

impl<'a> CopyIn<'a> {
    /// The server waits for rows.
    pub(super) fn new(talk: &'a mut Talk) -> Self {
        Self { talk, refusal: None, spare: Vec::new() }
    }

    /// Sends bytes of rows, from where they lie. False when there is no use in more: the server has refused some, which the
    /// end will tell, or everything is to stop.
    pub fn send(&mut self, rows: &[u8]) -> Result<bool, DriveError> {
        if self.is_over() {
            return Ok(false);
        }
        wire::copy_data(&mut self.talk.out, rows.len());
        self.talk.flush_with(rows)?;
        self.goes_on()
    }

    /// As [`CopyIn::send`], of so many bytes of a file. The kernel hands them on from where it has them, which spares a copy out of it
    /// and one into it; what it does not hand on, as with TLS, is read and sent.
    ///
    /// The inner error is the file's: something else went in the place of its bytes, and nothing of this COPY may be committed.
    pub fn send_file(&mut self, file: &File, at: u64, length: usize) -> Result<io::Result<bool>, DriveError> {
        if self.is_over() {
            return Ok(Ok(false));
        }
        wire::copy_data(&mut self.talk.out, length);
        let handed_on = self.talk.hand_on(file, at, length)?;
        // The message was announced with this length, so something must fill it.
        self.spare.resize(length - handed_on, 0);
        let read = file.read_exact_at(&mut self.spare, at + handed_on as u64);
        self.talk.flush_with(&self.spare)?;
        read.map_or_else(|error| Ok(Err(error)), |()| self.goes_on().map(Ok))
    }

    /// There are no more rows, or none that are to be kept where everything is to stop. Returns how many the server took.
    pub fn end(self) -> Result<u64, DriveError> {
        let Self { talk, refusal, .. } = self;
        if talk.stopping() {
            wire::copy_fail(&mut talk.out, "told to stop");
        } else {
            wire::copy_done(&mut talk.out);
        }
        let end = talk.flush().and_then(|()| talk.end_of_answer());
        if let Some(refusal) = refusal {
            return Err(refusal);
        }
        let rows = end?.tag.strip_prefix("COPY ").and_then(|rows| rows.parse().ok());
        Ok(rows.unwrap_or_default())
    }

    fn is_over(&self) -> bool {
        self.refusal.is_some() || self.talk.stopping()
    }

    /// Whether there is use in more.
    fn goes_on(&mut self) -> Result<bool, DriveError> {
        self.refusal = self.talk.refused_meanwhile()?;
        Ok(!self.is_over())
    }
}

impl Talk {
    /// Has the kernel send what is in the buffer and then bytes of a file. Returns how many: fewer where it cannot, and then the
    /// buffer may be as it was.
    fn hand_on(&mut self, file: &File, at: u64, length: usize) -> Result<usize, DriveError> {
        if self.stream.holds_back() {
            return Ok(0);
        }
        self.flush()?;
        let (mut next, end) = (at, at + length as u64);
        while next < end {
            let left = usize::try_from(end - next).unwrap_or(usize::MAX);
            match sendfile(&self.stream, file, Some(&mut next), left).map_err(io::Error::from) {
                // The file is shorter than it was.
                Ok(0) => break,
                Ok(_) => (),
                Err(error) if waits(&error) => self.heed()?,
                Err(error) if error.kind() == io::ErrorKind::TimedOut => return Err(lost(&error)),
                // The file is on something that gives no pages, or the server has gone: sending the rest tells.
                Err(_) => break,
            }
        }
        Ok(usize::try_from(next - at).unwrap_or(length))
    }
}
