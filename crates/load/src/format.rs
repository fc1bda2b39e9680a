//! The two formats of text that COPY reads, as far as the end of a row depends on them.

use serde::{Deserialize, Serialize};

use crate::error::LoadError;

/// A format of COPY, with what decides where its rows end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Format {
    /// `FORMAT csv`: a quoted value may hold line ends.
    Csv {
        /// `QUOTE`.
        #[serde(default = "quote")]
        quote: char,
        /// `ESCAPE`: in a quoted value, what stands before a quote that belongs to the value.
        #[serde(default = "quote")]
        escape: char,
        /// Whether a line of `\.` alone ends the data: it does before version 18.
        #[serde(default)]
        marker: bool,
    },
    /// `FORMAT text`: a backslash takes the special meaning from what follows; `\.` ends the data.
    Text,
}

/// How the lines of a file end. COPY takes the first line's end for that of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LineEnd {
    /// LF
    Newline,
    /// CR
    Return,
    /// CR LF
    ReturnNewline,
}

impl LineEnd {
    /// The last byte of each line; LF while no line has ended.
    pub(crate) fn last_byte(line_end: Option<Self>) -> u8 {
        if line_end == Some(Self::Return) { b'\r' } else { b'\n' }
    }
}

fn quote() -> char {
    '"'
}

impl Format {
    /// Refuses what COPY refuses: characters that are not one byte, and line ends as quotes.
    pub(crate) fn check(self) -> Result<Self, LoadError> {
        let Self::Csv { quote, escape, .. } = self else { return Ok(self) };
        for (name, character) in [("quote", quote), ("escape", escape)] {
            if !character.is_ascii() || matches!(character, '\n' | '\r' | '\0') {
                let message = format!("{name} must be one single-byte character other than a line end");
                return Err(LoadError::new(message, format!("give another {name}")));
            }
        }
        Ok(self)
    }
}
