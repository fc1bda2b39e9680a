//! Objects that lie elsewhere. The process that asked for the load gets their bytes and sends them here: over a socket, in order,
//! from any place on.
//!
//! A request is a line of JSON. The answer is frames: a letter, four bytes of length (big-endian), as many bytes. `D` is
//! content, `E` says what went wrong, `Z` that it was all and, of a whole object, that it had the checksum that it should.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::spec::RemoteSpec;

/// A longer message is not one of this protocol.
const MESSAGE_BYTES_MAX: u32 = 1 << 20;

/// An object.
#[derive(Clone, Debug)]
pub(crate) struct Remote {
    /// Where it is asked for.
    socket: PathBuf,
    /// Its index among those that can be asked for, from 0.
    object: u64,
    /// Its length.
    pub bytes: u64,
}

/// Why no more of an object comes, in the words of the process that gets it.
#[derive(Clone, Debug, Deserialize, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Refused {
    pub message: String,
    pub remedy: String,
    /// A stable name of the error; empty where it has none.
    #[serde(default)]
    pub code: String,
    #[serde(default)]
    pub data: Value,
}

/// Reads an object. The first byte is asked for when it is wanted.
pub(crate) struct Reader {
    remote: Remote,
    /// Whether it is to be loaded, and so held to its checksum.
    is_whole: bool,
    connection: Option<UnixStream>,
    /// The place to begin at.
    first: u64,
    /// Bytes of the frame under way that have not been read.
    left: u32,
    /// Bytes of the object that have not come.
    to_come: u64,
    ended: bool,
}

impl Remote {
    /// As it was asked for.
    pub(crate) fn new(socket: &Path, spec: RemoteSpec) -> Self {
        Self { socket: socket.to_owned(), object: spec.object, bytes: spec.bytes }
    }

    /// From the beginning on.
    pub(crate) fn open(&self, is_whole: bool) -> Reader {
        let (remote, to_come) = (self.clone(), self.bytes);
        Reader { remote, is_whole, connection: None, first: 0, left: 0, to_come, ended: false }
    }
}

impl Reader {
    /// The object's length.
    pub(crate) fn length(&self) -> u64 {
        self.remote.bytes
    }

    /// Goes on at a place.
    pub(crate) fn go_to(&mut self, first: u64) {
        (self.first, self.connection, self.left, self.ended) = (first, None, 0, false);
        self.to_come = self.remote.bytes.saturating_sub(first);
    }

    /// The connection, asked if it was not yet. It has no deadline: the process that gets the bytes tries as long as that is worth it,
    /// and says so; when it dies, the connection ends.
    fn ask(&mut self) -> io::Result<&mut UnixStream> {
        if self.connection.is_none() {
            let mut connection = UnixStream::connect(&self.remote.socket)?;
            let request = json!({"object": self.remote.object, "first": self.first, "whole": self.is_whole});
            connection.write_all(format!("{request}\n").as_bytes())?;
            self.connection = Some(connection);
        }
        self.connection.as_mut().ok_or_else(gone)
    }

    /// Begins the next frame of content. False at the end.
    fn next_frame(&mut self) -> io::Result<bool> {
        let to_come = self.to_come;
        let connection = self.ask()?;
        let mut frame = [0; 5];
        read_all(connection, &mut frame)?;
        let [kind, length @ ..] = frame;
        let length = u32::from_be_bytes(length);
        match kind {
            b'D' if u64::from(length) <= to_come => {
                self.left = length;
                self.to_come = to_come - u64::from(length);
            }
            b'Z' if to_come == 0 => self.ended = true,
            b'D' | b'Z' => {
                let message = format!("the object's bytes are not {}, as was announced", self.remote.bytes);
                return Err(io::Error::new(ErrorKind::InvalidData, message));
            }
            b'E' if length <= MESSAGE_BYTES_MAX => {
                let mut message = vec![0; length as usize];
                read_all(connection, &mut message)?;
                let refused: Refused = serde_json::from_slice(&message)?;
                return Err(io::Error::other(refused));
            }
            _ => {
                return Err(io::Error::new(
                    ErrorKind::InvalidData,
                    "the bytes that arrived are not a frame of an object",
                ));
            }
        }
        Ok(!self.ended)
    }
}

impl Read for Reader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        while self.left == 0 {
            if self.ended || !self.next_frame()? {
                return Ok(0);
            }
        }
        let most = into.len().min(self.left as usize);
        let read = self.ask()?.read(&mut into[..most])?;
        if read == 0 {
            return Err(gone());
        }
        self.left -= u32::try_from(read).unwrap_or(self.left);
        Ok(read)
    }
}

/// Fills it. The end of the connection is not that of the object.
fn read_all(connection: &mut UnixStream, into: &mut [u8]) -> io::Result<()> {
    connection.read_exact(into).map_err(|error| if error.kind() == ErrorKind::UnexpectedEof { gone() } else { error })
}

fn gone() -> io::Error {
    io::Error::other(Refused {
        message: "the process that fetches the object's bytes has ended".to_owned(),
        remedy: "run it again: with a ledger it resumes where it stopped".to_owned(),
        code: String::new(),
        data: Value::Null,
    })
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::os::unix::net::UnixListener;
    use std::thread::JoinHandle;

    use super::*;

    /// Answers one request after another with what it is given, and returns the requests.
    fn serving(name: &str, answers: Vec<Vec<u8>>) -> (PathBuf, JoinHandle<Vec<String>>) {
        let socket = std::env::temp_dir().join(format!("pgdyno-remote-{}-{name}", std::process::id()));
        let _ = std::fs::remove_file(&socket);
        let listener = UnixListener::bind(&socket).unwrap();
        let bound = socket.clone();
        let thread = std::thread::spawn(move || {
            let answer = |answer: Vec<u8>| {
                let (mut connection, _) = listener.accept().unwrap();
                let mut request = String::new();
                BufReader::new(connection.try_clone().unwrap()).read_line(&mut request).unwrap();
                connection.write_all(&answer).unwrap();
                request
            };
            let requests = answers.into_iter().map(answer).collect();
            std::fs::remove_file(&bound).unwrap();
            requests
        });
        (socket, thread)
    }

    fn frame(kind: u8, content: &[u8]) -> Vec<u8> {
        let length = u32::try_from(content.len()).unwrap().to_be_bytes();
        [[kind].as_slice(), &length, content].concat()
    }

    fn remote(socket: &Path) -> Remote {
        Remote::new(socket, RemoteSpec { object: 3, bytes: 10 })
    }

    #[test]
    fn content_comes_from_any_place_on_and_its_end_is_said() {
        let whole = [frame(b'D', b"01234"), frame(b'D', b"56789"), frame(b'Z', b"")].concat();
        let rest = [frame(b'D', b"789"), frame(b'Z', b"")].concat();
        let (socket, thread) = serving("whole", vec![whole, rest]);
        let mut reader = remote(&socket).open(true);
        let mut found = String::new();
        reader.read_to_string(&mut found).unwrap();
        assert_eq!((found.as_str(), reader.length()), ("0123456789", 10));
        assert_eq!(reader.read(&mut [0; 8]).unwrap(), 0, "the end stays the end");
        reader.go_to(7);
        found.clear();
        reader.read_to_string(&mut found).unwrap();
        assert_eq!(found, "789");
        let asked: Vec<serde_json::Value> =
            thread.join().unwrap().iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(asked[0], json!({"object": 3, "first": 0, "whole": true}));
        assert_eq!(asked[1], json!({"object": 3, "first": 7, "whole": true}));
    }

    #[test]
    fn what_went_wrong_is_told_as_it_was_said() {
        let said = frame(b'E', br#"{"message": "no such object", "remedy": "name another"}"#);
        let (socket, thread) = serving("refused", vec![[frame(b'D', b"01"), said].concat()]);
        let error = remote(&socket).open(true).read_to_end(&mut Vec::new()).unwrap_err();
        let refused = error.get_ref().and_then(|inner| inner.downcast_ref::<Refused>()).unwrap();
        assert_eq!((refused.message.as_str(), refused.remedy.as_str()), ("no such object", "name another"));
        thread.join().unwrap();
    }

    #[test]
    fn a_connection_that_ends_is_no_end_of_the_object() {
        let cut = [&frame(b'D', b"01234")[..7]].concat();
        let short = [frame(b'D', b"012345678"), frame(b'Z', b"")].concat();
        let long = [frame(b'D', b"0123456789"), frame(b'D', b"0")].concat();
        let answers = vec![cut, frame(b'D', b"0"), b"X\0\0\0\0".to_vec(), short, long, b"D\xff\xff\xff\xff".to_vec()];
        let count = answers.len();
        let (socket, thread) = serving("cut", answers);
        for _ in 0..count {
            assert!(remote(&socket).open(false).read_to_end(&mut Vec::new()).is_err());
        }
        thread.join().unwrap();
    }
}
