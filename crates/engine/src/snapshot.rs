//! Commands for snapshots: taken of volumes that are used, merged, and measured.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Subcommand;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::state_dir::StateDir;
use crate::stdin::from_stdin;

#[derive(Subcommand)]
pub(crate) enum SnapshotCommand {
    /// Makes images of volumes of one instance, all of one instant, while they are used.
    Snapshot {
        /// For each volume `NAME=DIR`: the new folder of its image.
        #[arg(required = true)]
        targets: Vec<String>,
        #[command(flatten)]
        at: StateDir,
    },
    /// Tells a volume that a snapshot of it is pending: until it is completed a volume with credits does its baseline alone.
    Pending {
        /// Name of the volume.
        name: String,
        /// For how long, in nanoseconds of the volume's own time.
        for_ns: u64,
        #[command(flatten)]
        at: StateDir,
    },
    /// Removes the layers that nothing needs, and merges those that one image needs; reads what is to be collected from its input.
    Collect,
    /// What each of several images stores as a snapshot, and for none before it.
    Stored {
        /// In the order in which they were made.
        images: Vec<PathBuf>,
    },
}

impl SnapshotCommand {
    pub(crate) fn run(self) -> Result<Value, Failure> {
        Ok(match self {
            Self::Snapshot { targets, at } => {
                let named: Option<BTreeMap<&str, &str>> = targets.iter().map(|target| target.split_once('=')).collect();
                let named = named.filter(|named| named.len() == targets.len()).ok_or_else(|| {
                    let remedy = "name each volume once, as `data=/dev/shm/data.image`".to_owned();
                    Failure::new("a snapshot needs a folder for each volume".to_owned(), remedy)
                })?;
                let (first, _) = targets[0].split_once('=').unwrap_or_default();
                let request = json!({"command": "snapshot", "targets": named});
                pgdyno_emulate::request(&at.state_dir, first, &request)?
            }
            Self::Pending { name, for_ns, at } => {
                pgdyno_emulate::request(&at.state_dir, &name, &json!({"command": "pending", "for_ns": for_ns}))?
            }
            Self::Collect => json!(pgdyno_emulate::collect(&from_stdin("collect")?)),
            Self::Stored { images } => json!({"stored": pgdyno_emulate::stored_bytes(&images)?}),
        })
    }
}
