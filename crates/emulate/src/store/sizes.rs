//! What each snapshot of many stores.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pgdyno_host::Result;
use serde::Serialize;

use super::freeze::SNAPSHOT_BLOCK_BYTES;
use super::image;
use super::layer::Layer;
use super::stack::extents_of;

/// What a snapshot has, in bytes of its blocks of 512 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Stored {
    /// What is stored for it, and for none of those before it.
    pub stored_bytes: u64,
    /// Everything: a full copy.
    pub held_bytes: u64,
}

/// Of one image what is counted.
struct Blocks {
    /// Those of 512 KiB of which its own layer holds anything.
    own: Vec<u64>,
    /// The image below.
    parent: Option<PathBuf>,
    /// Open to the end: nothing is moved from one image to the other while they are counted.
    _layer: Arc<Layer>,
}

/// What each of several images, in the order in which they were made, stores as a snapshot. A block that several of them need
/// counts for the first of these.
///
/// # Errors
/// An image, or one below it, cannot be read.
pub fn stored_bytes(images: &[PathBuf]) -> Result<Vec<Stored>> {
    let mut layers: BTreeMap<PathBuf, Blocks> = BTreeMap::new();
    let mut counted: BTreeSet<(PathBuf, u64)> = BTreeSet::new();
    let mut stored = Vec::new();
    for image in images {
        let mut held = BTreeSet::new();
        let mut own = 0;
        let mut next = Some(image.clone());
        let mut seen = BTreeSet::new();
        while let Some(folder) = next.filter(|folder| seen.insert(folder.clone())) {
            if !layers.contains_key(&folder) {
                layers.insert(folder.clone(), blocks_of(&folder)?);
            }
            let Blocks { own: blocks, parent, .. } = &layers[&folder];
            for block in blocks {
                if held.insert(*block) && counted.insert((folder.clone(), *block)) {
                    own += 1;
                }
            }
            next = parent.clone();
        }
        stored.push(Stored {
            stored_bytes: own * SNAPSHOT_BLOCK_BYTES,
            held_bytes: held.len() as u64 * SNAPSHOT_BLOCK_BYTES,
        });
    }
    Ok(stored)
}

fn blocks_of(folder: &Path) -> Result<Blocks> {
    let (layer, meta) = image::open(folder, false)?;
    let layer = Arc::new(layer);
    let extents = extents_of(std::slice::from_ref(&layer), SNAPSHOT_BLOCK_BYTES);
    let block = |bytes: u64| bytes / SNAPSHOT_BLOCK_BYTES;
    let own = extents.iter().flat_map(|(offset, len)| block(offset)..block(offset + len)).collect();
    Ok(Blocks { own, parent: meta.parent, _layer: layer })
}
