//! What to plan: one JSON document on standard input, JSON lines out.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::LoadError;
use crate::format::{Format, LineEnd};
use crate::read::pool::BLOCK_BYTES;
use crate::split::plan::{Chunk, Planner};

/// Files of one format that are to be cut.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanSpec {
    /// Files that are not compressed.
    pub sources: Vec<PathBuf>,
    /// The format of all of them.
    pub format: Format,
    /// Whether the first row of each is a header.
    #[serde(default)]
    pub header: bool,
    /// Least length of a chunk, except the last of a file.
    pub chunk_bytes: u64,
}

/// What a plan says, in the order of the files.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlanLine {
    /// A chunk of the file that is under way.
    Chunk(Chunk),
    /// A file that has been read.
    Source(Source),
}

/// A file.
#[derive(Clone, Debug, Serialize)]
pub struct Source {
    /// As asked for.
    pub path: PathBuf,
    /// Its length.
    pub bytes: u64,
    /// How its lines end; none without a line that ends.
    pub line_end: Option<LineEnd>,
    /// Whether a mark ended the data before the end of the file.
    pub ended: bool,
}

/// Cuts files into chunks, and says each as soon as it is known.
pub fn plan(spec: &PlanSpec, mut say: impl FnMut(&PlanLine)) -> Result<(), LoadError> {
    let format = spec.format.check()?;
    if spec.chunk_bytes == 0 {
        return Err(LoadError::new("chunk_bytes is 0", "give a size, for example 8388608"));
    }
    let mut block = vec![0; BLOCK_BYTES];
    for path in &spec.sources {
        let planner = Planner::new(format, spec.chunk_bytes, spec.header);
        let source = cut(path, planner, &mut block, |chunk| say(&PlanLine::Chunk(chunk)))?;
        say(&PlanLine::Source(source));
    }
    Ok(())
}

fn cut(path: &Path, mut planner: Planner, block: &mut [u8], mut done: impl FnMut(Chunk)) -> Result<Source, LoadError> {
    let failed = |error: std::io::Error| {
        LoadError::new(format!("cannot read {}: {error}", path.display()), "name a file that can be read")
    };
    let mut file = File::open(path).map_err(failed)?;
    let mut bytes = 0;
    loop {
        let read = match file.read(block) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(failed(error)),
        };
        planner.take(&block[..read], &mut done);
        bytes += read as u64;
    }
    if let Some(last) = planner.finish() {
        done(last);
    }
    Ok(Source { path: path.to_owned(), bytes, line_end: planner.line_end(), ended: planner.ended() })
}
