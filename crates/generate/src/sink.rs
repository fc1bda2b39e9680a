//! A file in the making: it has its name when it is whole.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use pgdyno_host::Fault;
use rustix::io::Errno;
use serde_json::json;

/// What the kernel refused of a file or a folder.
pub(crate) fn refused(path: &Path, error: &std::io::Error) -> Fault {
    let what = format!("{} cannot be written", path.display());
    if let Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM) = Errno::from_io_error(error) {
        return Fault::of_kernel(&what, error);
    }
    Fault::new(format!("{what}: {error}"), "name another folder, or free some space")
        .coded("generate.file.unwritable", json!({"path": path, "errno": error.raw_os_error()}))
}

/// Where lines go.
pub(crate) struct Sink {
    path: PathBuf,
    partial: PathBuf,
    to: Option<To>,
}

enum To {
    Plain(File),
    Gzip(Box<GzEncoder<File>>),
}

impl Sink {
    /// A file that is compressed if its name ends in `.gz`: quickly, as this makes data and does not keep it.
    pub(crate) fn create(path: &Path) -> Result<Self, Fault> {
        let mut partial = path.as_os_str().to_owned();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        let file = File::create(&partial).map_err(|error| refused(&partial, &error))?;
        let compressed = path.extension().is_some_and(|extension| extension == "gz");
        let to =
            if compressed { To::Gzip(Box::new(GzEncoder::new(file, Compression::fast()))) } else { To::Plain(file) };
        Ok(Self { path: path.to_owned(), partial, to: Some(to) })
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        let written = match &mut self.to {
            Some(To::Plain(file)) => file.write_all(bytes),
            Some(To::Gzip(encoder)) => encoder.write_all(bytes),
            None => unreachable!("a file that is finished is written no more"),
        };
        written.map_err(|error| refused(&self.path, &error))
    }

    /// Ends it, and gives it its name; whatever was there of that name is replaced. Returns its bytes on disk.
    pub(crate) fn finish(mut self) -> Result<u64, Fault> {
        let ended = match self.to.take() {
            Some(To::Plain(file)) => Ok(file),
            Some(To::Gzip(encoder)) => encoder.finish(),
            None => unreachable!("it is finished once"),
        };
        let done = ended.and_then(|file| {
            let bytes = file.metadata()?.len();
            std::fs::rename(&self.partial, &self.path)?;
            Ok(bytes)
        });
        done.map_err(|error| {
            self.remove();
            refused(&self.path, &error)
        })
    }

    fn remove(&self) {
        // If it cannot be removed, its name says what it is.
        let _ = std::fs::remove_file(&self.partial);
    }
}

impl Drop for Sink {
    /// What was not finished is not left behind.
    fn drop(&mut self) {
        if self.to.take().is_some() {
            self.remove();
        }
    }
}
