//! What to load: one JSON document on standard input.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pgdyno_connection::Server;
use serde::Deserialize;

use crate::error::LoadError;
use crate::format::Format;

/// From this version on a line of `\.` in CSV is data (release notes of PostgreSQL 18).
const MARKER_IS_DATA: u32 = 18;
/// Encodings whose characters may hold bytes of ASCII, as PostgreSQL names them and in all their other names, without what
/// it leaves out when it compares names (`src/common/encnames.c`). A quote in them may be half of a character.
const NOT_TO_BE_CUT: [&str; 18] = [
    "big5",
    "gb18030",
    "gbk",
    "johab",
    "mskanji",
    "shiftjis",
    "shiftjis2004",
    "sjis",
    "sjis2004",
    "uhc",
    "win932",
    "win936",
    "win949",
    "win950",
    "windows932",
    "windows936",
    "windows949",
    "windows950",
];
/// Most sessions of a load: more would only wait for one another.
const CONNECTIONS_MAX: u32 = 256;

/// An order to load files into a table. It may hold a password: it is read from standard input and never written.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadSpec {
    /// Where the server is.
    pub server: Server,
    /// The table, quoted where it must be.
    pub table: String,
    /// Its columns in the order of the files, quoted where they must be; none means all.
    #[serde(default)]
    pub columns: Vec<String>,
    /// The format of all sources.
    pub format: CopyFormat,
    /// The encoding of all sources, by PostgreSQL's name.
    #[serde(default = "utf8")]
    pub encoding: String,
    /// Whether the first row of each source is a header, which is left out.
    #[serde(default)]
    pub header: bool,
    /// What to load, in this order.
    pub sources: Vec<SourceSpec>,
    /// How long chunks of uncompressed input are at least, except the last of a source.
    #[serde(default)]
    pub chunk_bytes: ChunkBytes,
    /// Sessions to begin with.
    #[serde(default = "one")]
    pub connections: u32,
    /// Sessions at most; none means as many as to begin with.
    #[serde(default)]
    pub connections_max: Option<u32>,
    /// Where it is written which chunks are in the table; without it a load cannot be resumed.
    #[serde(default)]
    pub ledger: Option<LedgerSpec>,
    /// `SET LOCAL` in the transaction of each chunk.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// Refused when true: the table would have to be emptied in the transaction of each chunk.
    #[serde(default)]
    pub freeze: bool,
    /// Refused when true: the process that makes the ledger empties the table.
    #[serde(default)]
    pub truncate: bool,
    /// Where rows go that the table does not take; without it the first one ends the load.
    #[serde(default)]
    pub rejects: Option<RejectSpec>,
    /// Most bytes of uncompressed input a second, of all sessions together.
    #[serde(default)]
    pub rate_bytes_per_s: Option<u64>,
    /// The types of a table that was made for the beginning of a stream, in the order of the columns: a value that one of them
    /// would not return as it is ends the load. None where the types are not a guess.
    #[serde(default)]
    pub types: Option<Vec<ColumnType>>,
    /// How often to say how far it is.
    #[serde(default = "second_ms")]
    pub interval_ms: u64,
    /// How long to wait for a server that went away.
    #[serde(default = "reconnect_s")]
    pub reconnect_s: u64,
}

/// Least lengths of chunks. A single number stands for all three.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(from = "ChunkBytesGiven")]
pub struct ChunkBytes {
    /// For every source.
    pub usual: u64,
    /// At the beginning of a long file that is not compressed.
    pub most: u64,
    /// At the end of such a file.
    pub last: u64,
}

impl Default for ChunkBytes {
    fn default() -> Self {
        ChunkBytesGiven::One(8 << 20).into()
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ChunkBytesGiven {
    One(u64),
    Each { usual: u64, most: u64, last: u64 },
}

impl From<ChunkBytesGiven> for ChunkBytes {
    fn from(given: ChunkBytesGiven) -> Self {
        match given {
            ChunkBytesGiven::One(bytes) => Self { usual: bytes, most: bytes, last: bytes },
            ChunkBytesGiven::Each { usual, most, last } => Self { usual, most, last },
        }
    }
}

/// One file, a pipe, or an object elsewhere.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceSpec {
    /// Where it is.
    pub path: PathBuf,
    /// How it is compressed.
    #[serde(default)]
    pub compression: Compression,
    /// What it is called in messages.
    pub name: String,
    /// For a pipe: where a byte says that all of it was written. Without it the end of the pipe is the end of the data.
    #[serde(default)]
    pub end: Option<PathBuf>,
    /// The file that its content comes from, as it was when the load was planned: it is held to that. Without it a file that is read
    /// here is held to what it is like when the load begins.
    #[serde(default)]
    pub file: Option<FileSpec>,
    /// Given when it lies elsewhere: `path` is then the socket where its bytes are asked for.
    #[serde(default)]
    pub remote: Option<RemoteSpec>,
}

/// What the kernel keeps of a file and changes with its content.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileSpec {
    /// Where it is.
    pub path: PathBuf,
    /// Its length.
    pub bytes: u64,
    /// When its content was changed last: seconds and nanoseconds. A program can set it.
    pub mtime: (i64, i64),
    /// When its content or its attributes were changed last. No program can set it.
    pub ctime: (i64, i64),
    /// The file system.
    pub device: u64,
    /// Its number there: another file that takes its name has another.
    pub inode: u64,
}

/// An object that lies elsewhere.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemoteSpec {
    /// Its index among those that can be asked for, from 0.
    pub object: u64,
    /// Its length as it is stored.
    pub bytes: u64,
}

/// How a source is compressed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compression {
    /// As its first bytes say.
    #[default]
    Auto,
    /// Not at all.
    None,
    /// RFC 1952, of one member or several.
    Gzip,
    /// RFC 8878, of one frame or several.
    Zstd,
    /// The .xz format.
    Xz,
    /// bzip2, of one stream or several.
    Bzip2,
}

/// COPY's format, with the options that were given; those that were not have COPY's own values.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum CopyFormat {
    /// `FORMAT csv`.
    Csv {
        /// `DELIMITER`.
        #[serde(default)]
        delimiter: Option<char>,
        /// `QUOTE`.
        #[serde(default)]
        quote: Option<char>,
        /// `ESCAPE`; the quote unless given.
        #[serde(default)]
        escape: Option<char>,
        /// `NULL`.
        #[serde(default)]
        null: Option<String>,
    },
    /// `FORMAT text`.
    Text {
        /// `DELIMITER`.
        #[serde(default)]
        delimiter: Option<char>,
        /// `NULL`.
        #[serde(default)]
        null: Option<String>,
    },
}

/// The type of a column, and the values that it was chosen by.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnType {
    /// The column.
    pub column: String,
    /// Its type.
    #[serde(rename = "type")]
    pub name: String,
    /// How its values were written so far.
    pub kinds: u32,
}

/// The ledger.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LedgerSpec {
    /// The table of chunks, quoted where it must be.
    pub table: String,
    /// Whose chunks.
    pub job: i64,
    /// Object identifier of the table that the job loads. A chunk that went into another table of the same name is rolled
    /// back: the job would count it, and the other table would keep it. Not checked where it is missing.
    #[serde(default)]
    pub table_oid: Option<u32>,
}

/// Where bad rows go.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RejectSpec {
    /// The file of rows; reasons stand in a file of this name with `.jsonl` behind it.
    pub path: PathBuf,
    /// More of them end the load.
    pub max: u64,
}

fn utf8() -> String {
    "UTF8".to_owned()
}

fn one() -> u32 {
    1
}

fn second_ms() -> u64 {
    1000
}

fn reconnect_s() -> u64 {
    30
}

impl CopyFormat {
    /// The delimiter in force.
    pub(crate) fn delimiter(&self) -> char {
        match self {
            Self::Csv { delimiter, .. } => delimiter.unwrap_or(','),
            Self::Text { delimiter, .. } => delimiter.unwrap_or('\t'),
        }
    }

    /// What decides where rows end, for a server of this major version.
    pub(crate) fn rows(&self, major: u32) -> Format {
        match *self {
            Self::Csv { quote, escape, .. } => {
                let quote = quote.unwrap_or('"');
                Format::Csv { quote, escape: escape.unwrap_or(quote), marker: major < MARKER_IS_DATA }
            }
            Self::Text { .. } => Format::Text,
        }
    }
}

impl LoadSpec {
    /// Sessions at most.
    pub(crate) fn connections_max(&self) -> u32 {
        self.connections_max.unwrap_or(self.connections).max(self.connections)
    }

    /// The encoding as PostgreSQL compares names of encodings: letters and digits alone, in whatever case.
    pub(crate) fn encoding_name(&self) -> String {
        self.encoding.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase()
    }

    /// Refuses what cannot be done.
    pub(crate) fn check(&self) -> Result<(), LoadError> {
        let refuse = |what: String, remedy: &str| Err(LoadError::new(what, remedy));
        self.format.rows(MARKER_IS_DATA).check()?;
        if NOT_TO_BE_CUT.contains(&self.encoding_name().as_str()) {
            let message = format!(
                "{} cannot be split into rows: what looks like a quote may be half of a character",
                self.encoding
            );
            return refuse(message, "convert it first, for example with iconv -t UTF-8");
        }
        if let Some(name) = self.settings.keys().find(|name| !is_setting(name)) {
            return refuse(format!("`{name}` is not the name of a setting"), "give names as SHOW takes them");
        }
        match self {
            Self { sources, .. } if sources.is_empty() => refuse("no source is given".to_owned(), "name a file"),
            Self { chunk_bytes: ChunkBytes { usual: 0, .. }, .. } => {
                refuse("chunk_bytes is 0".to_owned(), "give a size, for example 8388608")
            }
            Self { interval_ms: 0, .. } => refuse("interval_ms is 0".to_owned(), "give an interval, for example 1000"),
            Self { rate_bytes_per_s: Some(0), .. } => {
                refuse("the rate must be above 0".to_owned(), "give bytes per second, or omit the rate")
            }
            _ if self.connections == 0 || self.connections_max() > CONNECTIONS_MAX => refuse(
                format!("connections are {} to {}", self.connections, self.connections_max()),
                "give from 1 to 256",
            ),
            Self { freeze: true, .. } => refuse(
                "COPY can freeze rows only in the transaction that created or emptied the table, and each chunk has its own transaction"
                    .to_owned(),
                "load without it, and run VACUUM (FREEZE) afterwards",
            ),
            Self { truncate: true, .. } => refuse(
                "the engine does not empty the table".to_owned(),
                "run TRUNCATE before the first run",
            ),
            _ => Ok(()),
        }
    }
}

fn is_setting(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.')
}

/// An order with these keys beside a server that no test connects to.
#[cfg(test)]
pub(crate) fn order(keys: &str) -> LoadSpec {
    let server = r#""server": {"host": "/h", "port": 1, "user": "u", "dbname": "d", "application_name": "a",
        "connect_timeout_s": 1, "keepalive": {"enabled": false, "idle_s": 0, "interval_s": 0, "count": 0,
        "user_timeout_ms": 0}}"#;
    serde_json::from_str(&format!("{{{server}, {keys}}}")).expect("the test's order is valid")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(more: &str) -> LoadSpec {
        order(&format!(r#""table": "t", "format": {{"csv": {{}}}}, "sources": [{{"path": "a", "name": "a"}}]{more}"#))
    }

    #[test]
    fn what_is_left_open_is_as_copy_has_it() {
        let open = spec("");
        assert!(open.check().is_ok());
        assert_eq!(open.format.delimiter(), ',');
        assert_eq!(open.format.rows(15), Format::Csv { quote: '"', escape: '"', marker: true });
        let ChunkBytes { usual, most, last } = spec(", \"chunk_bytes\": 7").chunk_bytes;
        assert_eq!((usual, most, last), (7, 7, 7), "one number says all");
        let each = spec(", \"chunk_bytes\": {\"usual\": 5, \"most\": 9, \"last\": 1}").chunk_bytes;
        assert_eq!(each, ChunkBytes { usual: 5, most: 9, last: 1 });
        let quoted: CopyFormat = serde_json::from_str("{\"csv\": {\"quote\": \"'\"}}").unwrap();
        assert_eq!(quoted.rows(18), Format::Csv { quote: '\'', escape: '\'', marker: false });
    }

    #[test]
    fn what_cannot_be_done_is_refused() {
        for more in [
            ", \"encoding\": \"Shift-JIS\"",
            ", \"encoding\": \"windows_936\"",
            ", \"chunk_bytes\": 0",
            ", \"connections\": 0",
            ", \"connections_max\": 257",
            ", \"rate_bytes_per_s\": 0",
            ", \"freeze\": true",
            ", \"truncate\": true",
            ", \"settings\": {\"a; DROP TABLE t\": \"1\"}",
        ] {
            assert!(spec(more).check().is_err(), "{more}");
        }
        assert!(spec(", \"encoding\": \"EUC_JP\"").check().is_ok());
    }
}
