//! Commands to the daemon's main thread.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::conversations::Conversation;
use crate::spec::ServeSpec;

/// A command to the daemon.
#[derive(Debug)]
pub(crate) enum Command {
    /// Another volume of the same instance joins; a process waits for the answer.
    Join { spec: Box<ServeSpec>, answer: Arc<Conversation> },
    /// A volume is to end; a process waits for the answer.
    Detach { name: String, save_image: Option<PathBuf>, answer: Arc<Conversation> },
    /// Volumes are to be frozen at one instant, each into a folder; a process waits for the answer.
    Snapshot { targets: BTreeMap<String, PathBuf>, answer: Arc<Conversation> },
    /// A test has asked a thread to panic, which may be the main one.
    Panic,
    /// A signal asks for the end.
    Terminate,
    /// A FUSE session ended: another process unmounted it, or this one did.
    SessionEnded { name: String },
}
