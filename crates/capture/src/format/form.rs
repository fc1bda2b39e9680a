//! What a format is: how a file is divided, what is around each line, and what a line is.

use super::csv::Layout;
use super::frame::Frame;
use super::json::Documents;
use super::prefix::Prefix;

/// What a line of a log is, without what is around it.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Inner {
    Csv(Layout),
    Json(Documents),
    Stderr { prefix: Prefix, crlf: bool },
}

/// How the lines, or documents, of a file are divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Division {
    Lines,
    Documents,
    /// Records of the journal's export format.
    Export,
}

/// A format, as it was told from the beginning of a file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Format {
    pub(super) frames: Vec<Frame>,
    pub(super) division: Division,
    pub(super) inner: Inner,
}
