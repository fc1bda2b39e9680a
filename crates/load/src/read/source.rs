//! Sources: files, pipes and objects elsewhere, and what is stored in them.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use memchr::memchr_iter;

use crate::error::{LoadError, lacks};
use crate::read::inflate;
use crate::read::pool::{BLOCK_BYTES, Blocks, Content};
use crate::read::remote::{Reader, Refused, Remote};
use crate::spec::{Compression, FileSpec, SourceSpec};

/// As many of the first bytes as tell a compression.
const MAGIC_BYTES: usize = 10;

/// A source as it was when the load began.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// What it is called in messages.
    pub name: String,
    path: PathBuf,
    /// `Auto` only for a pipe, which cannot be looked into beforehand.
    pub compression: Compression,
    /// The file that all of it comes from, as it was; none for other pipes, and for what lies elsewhere.
    file: Option<FileSpec>,
    /// Whether that file is read here. Another process may read it, and give its content through a pipe.
    is_file: bool,
    /// For a pipe: where a byte says that all of it was written.
    end: Option<PathBuf>,
    remote: Option<Remote>,
}

/// An opened source.
pub(crate) enum Input {
    /// What is not compressed, and can be read from any place on.
    Plain(Stored),
    /// Anything else, uncompressed.
    Stream(Box<dyn Content + Send>),
}

/// The bytes of a source as they are stored.
pub(crate) enum Stored {
    File(File),
    Remote(Reader),
}

impl Source {
    /// Looks at a source; a pipe is not opened yet, which could wait for its writer.
    pub(crate) fn inspect(spec: &SourceSpec) -> Result<Self, LoadError> {
        let failed = |error: io::Error| LoadError::unreadable(&spec.name, &error);
        if let Some(remote) = spec.remote {
            let remote = Remote::new(&spec.path, remote);
            return Self::new(spec, None, false, Some(remote)).sniffed().map_err(failed);
        }
        let facts = std::fs::metadata(&spec.path).map_err(failed)?;
        if facts.is_dir() {
            let message = format!("{} is a directory", spec.name);
            return Err(LoadError::new(message, "name the files in it"));
        }
        let is_file = facts.is_file();
        let file = spec.file.clone().or_else(|| is_file.then(|| FileSpec::of(spec.path.clone(), &facts)));
        let source = Self::new(spec, file, is_file, None);
        if is_file { source.sniffed().map_err(failed) } else { Ok(source) }
    }

    fn new(spec: &SourceSpec, file: Option<FileSpec>, is_file: bool, remote: Option<Remote>) -> Self {
        let SourceSpec { path, compression, name, end, .. } = spec.clone();
        Self { name, path, compression, file, is_file, end, remote }
    }

    /// With its compression, as its first bytes say where the order does not. A file that cannot be read is found so, too.
    fn sniffed(mut self) -> io::Result<Self> {
        let mut stored = self.stored(false)?;
        if self.compression == Compression::Auto {
            self.compression = sniff(&head(&mut stored)?);
        }
        Ok(self)
    }

    /// Its bytes from the beginning on. `is_whole`: all of them are read, to be loaded.
    fn stored(&self, is_whole: bool) -> io::Result<Stored> {
        Ok(match &self.remote {
            Some(remote) => Stored::Remote(remote.open(is_whole)),
            None => Stored::File(File::open(&self.path)?),
        })
    }

    /// Whether it is compressed, or may be.
    pub(crate) fn is_packed(&self) -> bool {
        self.compression != Compression::None
    }

    /// Whether it can be read again.
    pub(crate) fn can_be_read_again(&self) -> bool {
        self.is_file || self.remote.is_some()
    }

    /// Its bytes as they are stored; none of a pipe.
    pub(crate) fn stored_bytes(&self) -> Option<u64> {
        self.remote.as_ref().map(|remote| remote.bytes).or(self.file_bytes())
    }

    fn file_bytes(&self) -> Option<u64> {
        self.file.as_ref().filter(|_| self.is_file).map(|file| file.bytes)
    }

    /// The length of a file whose bytes are the content, so that they can be read again at any place.
    pub(crate) fn plain_bytes(&self) -> Option<u64> {
        self.file_bytes().filter(|_| self.compression == Compression::None)
    }

    /// Opens it from the beginning. Stored bytes that are read are added to `stored`; of a plain file the reader does that.
    pub(crate) fn open(&self, stored: &Arc<AtomicU64>, blocks: &Arc<Blocks>) -> Result<Input, LoadError> {
        let failed = |error: io::Error| LoadError::unreadable(&self.name, &error);
        let mut file = self.stored(true).map_err(failed)?;
        if let (Stored::File(opened), Some(before), true) = (&file, &self.file, self.is_file) {
            before.compare(&self.name, &opened.metadata().map_err(failed)?)?;
        }
        if self.can_be_read_again() && self.compression == Compression::None {
            return Ok(Input::Plain(file));
        }
        let head = if self.compression == Compression::Auto { head(&mut file).map_err(failed)? } else { Vec::new() };
        let compression = if self.compression == Compression::Auto { sniff(&head) } else { self.compression };
        let input = Counted { input: Cursor::new(head).chain(file), count: Arc::clone(stored) };
        inflate::open(compression, input, blocks).map(Input::Stream).map_err(failed)
    }

    /// How often a byte stands in the first bytes of a plain source.
    pub(crate) fn count(&self, byte: u8, bytes: u64) -> io::Result<u64> {
        let mut file = self.stored(false)?.take(bytes);
        let (mut block, mut found) = (vec![0; BLOCK_BYTES], 0);
        loop {
            match file.read(&mut block)? {
                0 => return Ok(found),
                read => found += memchr_iter(byte, &block[..read]).count() as u64,
            }
        }
    }

    /// Refuses a file that is not as it was when the load began: removed, replaced, or written to.
    pub(crate) fn unchanged(&self) -> Result<(), LoadError> {
        self.file.as_ref().map_or(Ok(()), |file| file.prove(&self.name))
    }

    /// Why something failed: a file that was written to explains everything else that is wrong with its rows.
    pub(crate) fn cause(&self, error: LoadError) -> LoadError {
        if error.absent { error } else { self.unchanged().err().unwrap_or(error) }
    }

    /// Refuses the end of a pipe that was not confirmed to be complete: the kernel closes what a killed process has written to,
    /// and the last row may be a part of one.
    pub(crate) fn whole(&self) -> Result<(), LoadError> {
        let Some(end) = &self.end else { return Ok(()) };
        match File::open(end).and_then(|mut end| end.read_exact(&mut [0])) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                let message = format!("{} broke off: the process that writes it has ended", self.name);
                Err(LoadError::new(message, "check why that process has ended"))
            }
            Err(error) => Err(LoadError::unreadable(&self.name, &error)),
        }
    }

    /// What it means that reading ended with an error, after this number of its stored bytes.
    pub(crate) fn broken(&self, error: &io::Error, at: u64) -> LoadError {
        if let Some(refused) = error.get_ref().and_then(|inner| inner.downcast_ref::<Refused>()) {
            let error = LoadError::new(&refused.message, &refused.remedy);
            return LoadError { code: refused.code.clone().into(), data: refused.data.clone(), ..error };
        }
        if !matches!(self.compression, Compression::None) && !lacks(error) {
            let what = if error.kind() == io::ErrorKind::UnexpectedEof { "ends too early" } else { "is damaged" };
            let message = format!("{} {what}: after {at} bytes of its content: {error}", self.name);
            return LoadError::new(
                message,
                "fetch or compress the file again; rows that were loaded stay in the table",
            );
        }
        LoadError::unreadable(&self.name, error)
    }
}

impl Stored {
    /// How many there are.
    pub(crate) fn length(&self) -> io::Result<u64> {
        match self {
            Self::File(file) => Ok(file.metadata()?.len()),
            Self::Remote(reader) => Ok(reader.length()),
        }
    }

    /// Itself, to be read at places beside; nothing of what lies elsewhere, where each place is a request.
    pub(crate) fn shared(&self) -> io::Result<Option<Arc<File>>> {
        match self {
            Self::File(file) => file.try_clone().map(|file| Some(Arc::new(file))),
            Self::Remote(_) => Ok(None),
        }
    }

    /// Goes on at a place.
    pub(crate) fn go_to(&mut self, at: u64) -> io::Result<()> {
        match self {
            Self::File(file) => file.seek(SeekFrom::Start(at)).map(|_| ()),
            Self::Remote(reader) => {
                reader.go_to(at);
                Ok(())
            }
        }
    }
}

impl Read for Stored {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.read(into),
            Self::Remote(reader) => reader.read(into),
        }
    }
}

/// The first bytes, as many as there are.
fn head(input: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(MAGIC_BYTES);
    input.take(MAGIC_BYTES as u64).read_to_end(&mut head)?;
    Ok(head)
}

/// The compression that begins so: RFC 1952, RFC 8878 (frames, also those to be skipped), the .xz format 1.2.1, and bzip2
/// with the mark of its first block or its end, since text may begin with `BZh`, too.
fn sniff(head: &[u8]) -> Compression {
    match head {
        [0x1f, 0x8b, ..] => Compression::Gzip,
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Compression::Zstd,
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Compression::Xz,
        [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, ..]
        | [b'B', b'Z', b'h', b'1'..=b'9', 0x17, 0x72, 0x45, 0x38, 0x50, 0x90, ..] => Compression::Bzip2,
        _ => Compression::None,
    }
}

/// Counts what is read.
struct Counted<R> {
    input: R,
    count: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(into)?;
        self.count.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_not_taken_for_something_else() {
        assert_eq!(sniff(b""), Compression::None);
        assert_eq!(sniff(b"BZh9,a,b,c"), Compression::None);
        assert_eq!(sniff(b"BZh91AY&SY"), Compression::Bzip2);
        assert_eq!(sniff(b"\x28\xb5\x2f\xfd\0"), Compression::Zstd);
    }

    #[test]
    fn a_pipe_is_whole_when_somebody_says_so() {
        let is_whole = |end: Option<&str>| {
            let name = "n".to_owned();
            let compression = Compression::None;
            let end = end.map(PathBuf::from);
            let spec = SourceSpec { path: "/dev/null".into(), compression, name, end, remote: None, file: None };
            Source::inspect(&spec).unwrap().whole()
        };
        assert!(is_whole(None).is_ok());
        assert!(is_whole(Some("/dev/zero")).is_ok(), "there is a byte");
        assert!(is_whole(Some("/dev/null")).unwrap_err().message.contains("n broke off"));
    }

    #[test]
    fn what_is_no_file_is_said() {
        let spec = |path: &str| SourceSpec {
            path: path.into(),
            compression: Compression::Auto,
            name: "n".to_owned(),
            end: None,
            remote: None,
            file: None,
        };
        assert!(Source::inspect(&spec("/")).unwrap_err().message.contains("directory"));
        assert!(Source::inspect(&spec("/absent")).unwrap_err().message.contains("cannot read n"));
    }
}
