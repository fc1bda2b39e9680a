//! Proof that a file is still the one that a load began with.
//!
//! It is given for each chunk after the server has taken its rows and before they are committed: what is committed is of the file
//! as it was. It is given once more when all is committed, before the load is called done. A program that writes through a
//! mapping is found out when the kernel next notes its write, which may be later.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::error::LoadError;
use crate::spec::FileSpec;

impl FileSpec {
    /// A file as it is now.
    pub(crate) fn of(path: PathBuf, now: &Metadata) -> Self {
        Self {
            path,
            bytes: now.len(),
            mtime: (now.mtime(), now.mtime_nsec()),
            ctime: (now.ctime(), now.ctime_nsec()),
            device: now.dev(),
            inode: now.ino(),
        }
    }

    /// Refuses the file, called `name`, if it is not as it was.
    pub(crate) fn prove(&self, name: &str) -> Result<(), LoadError> {
        match std::fs::metadata(&self.path) {
            Ok(now) => self.compare(name, &now),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(self.changed(name, None)),
            Err(error) => Err(LoadError::unreadable(name, &error)),
        }
    }

    /// The same of a file that was opened.
    pub(crate) fn compare(&self, name: &str, now: &Metadata) -> Result<(), LoadError> {
        let now = Self::of(self.path.clone(), now);
        if now == *self { Ok(()) } else { Err(self.changed(name, Some(&now))) }
    }

    fn changed(&self, name: &str, now: Option<&Self>) -> LoadError {
        let (before, after) = (self.facts(), now.map(Self::facts));
        let changed = match &after {
            Some(after) => before.iter().zip(after).filter(|(old, new)| old != new).map(|(old, _)| old.0).collect(),
            None => vec!["removed"],
        };
        let is = |what| changed.contains(&what);
        let how = match now {
            None => "it was removed".to_owned(),
            Some(_) if is("inode") || is("device") => "another file has its name now".to_owned(),
            Some(now) if is("bytes") => format!("it had {} bytes, and has {}", self.bytes, now.bytes),
            Some(_) if is("mtime") => "it was written to".to_owned(),
            Some(_) => {
                "it was written to and its time of modification put back, or its owner, permissions or links changed \
                        (ctime)"
                    .to_owned()
            }
        };
        let data = json!({
            "source": name,
            "changed": changed,
            "before": object(&before),
            "now": after.as_ref().map(object),
        });
        LoadError::new(
            format!("{name} was changed while it was loaded: {how}"),
            "rows that are in the table are those of the file as it was; load it again when no process writes to it",
        )
        .coded("load.source.changed", data)
    }

    /// By name, in the order in which they are said.
    fn facts(&self) -> [(&'static str, Value); 5] {
        // A number of nanoseconds may be longer than JSON's readers take.
        let time = |(s, ns): (i64, i64)| json!(format!("{s}.{ns:09}"));
        [
            ("bytes", json!(self.bytes)),
            ("mtime", time(self.mtime)),
            ("ctime", time(self.ctime)),
            ("device", json!(self.device)),
            ("inode", json!(self.inode)),
        ]
    }
}

fn object(facts: &[(&'static str, Value); 5]) -> Value {
    Value::Object(facts.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect())
}
