//! A file of the kernel that stays open and is read again from its start.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

const FIRST_BYTES: usize = 8 * 1024;

/// An open file of `/proc`, `/sys` or a cgroup.
///
/// Staying open is cheaper than opening it each time, and safer: `/proc/PID/stat` that was opened for a process never
/// answers for another one that got the same number later.
pub(crate) struct KeptFile {
    path: PathBuf,
    file: Option<File>,
    buffer: Vec<u8>,
}

impl KeptFile {
    /// A file that is opened when it is read first.
    pub(crate) fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), file: None, buffer: vec![0; FIRST_BYTES] }
    }

    /// Its text now. After an error the next call opens it again if `reopen`.
    pub(crate) fn read(&mut self, reopen: bool) -> io::Result<&str> {
        let file = match self.file.take() {
            Some(file) => file,
            None => File::open(&self.path)?,
        };
        let length = match fill(&file, &mut self.buffer) {
            Ok(length) => length,
            Err(error) => {
                if !reopen {
                    self.file = Some(file);
                }
                return Err(error);
            }
        };
        self.file = Some(file);
        std::str::from_utf8(&self.buffer[..length]).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }
}

/// Reads to the end, growing the buffer when the text is longer than any before.
fn fill(file: &File, buffer: &mut Vec<u8>) -> io::Result<usize> {
    let mut length = 0;
    loop {
        if length == buffer.len() {
            buffer.resize(2 * length, 0);
        }
        match file.read_at(&mut buffer[length..], length as u64) {
            Ok(0) => return Ok(length),
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// An error for text that is not what the kernel's documentation says.
pub(crate) fn unexpected(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{what} is not in the text"))
}
