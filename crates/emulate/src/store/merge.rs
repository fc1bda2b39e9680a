//! Removing an image from the middle of a chain, and what each snapshot of many stores.
//!
//! The image above takes over the blocks that it lacks. Volumes that stand on either go on: their daemons have the files open, and
//! what comes to the upper image is where they never look.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pgdyno_host::{Context, Fault, Result};
use serde::Serialize;

use super::block_map::BLOCK_BYTES;
use super::buffer::AlignedBuffer;
use super::freeze::SNAPSHOT_BLOCK_BYTES;
use super::image::{self, read_meta};
use super::layer::Layer;
use super::stack::extents_of;

/// Bytes that are copied at most at once: the blocks of a word of the map.
const COPY_BYTES: usize = 64 * BLOCK_BYTES as usize;

/// Brings what `upper` lacks of `lower`, the image below it, into it, and removes `lower`. Interrupted anywhere it can be
/// called again.
///
/// # Errors
/// `lower` is not the image below `upper`, one of them is damaged, or there is no room.
pub fn merge_images(lower: &Path, upper: &Path) -> Result<()> {
    let (meta, below) = (read_meta(upper)?, read_meta(lower)?);
    if meta.parent.as_deref() != Some(lower) {
        let message = format!("{} does not stand on {}", upper.display(), lower.display());
        return Err(Fault::new(message, "merge an image into the one that stands on it"));
    }
    let merged = (|| {
        let from = Layer::open(lower, below.size_bytes, false)?;
        let to = Layer::reopen(upper, meta.size_bytes)?;
        copy_missing(&from, &to)?;
        image::write(upper, &to, below.parent.as_deref())?;
        fs::remove_dir_all(lower)
    })();
    merged.context(|| format!("cannot merge the image {}", lower.display()), "free some space, and try again")
}

/// Copies the blocks of `from` that `to` does not hold.
fn copy_missing(from: &Layer, to: &Layer) -> io::Result<()> {
    let mut buffer = AlignedBuffer::new(COPY_BYTES);
    for (index, held) in from.map().held_words() {
        let mut missing = held & !to.map().bits(index);
        while missing != 0 {
            let first = missing.trailing_zeros();
            let blocks = (missing >> first).trailing_ones();
            missing &= !(u64::MAX >> (64 - blocks) << first);
            let offset = (index as u64 * 64 + u64::from(first)) * BLOCK_BYTES;
            let part = &mut buffer[..(u64::from(blocks) * BLOCK_BYTES) as usize];
            from.read(part, offset)?;
            if part.iter().all(|byte| *byte == 0) {
                to.zero(offset, part.len() as u64, true)?;
            } else {
                to.write(part, offset)?;
            }
        }
    }
    Ok(())
}

/// What a snapshot has, in bytes of its blocks of 512 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Stored {
    /// What is stored for it, and for none of those before it.
    pub stored_bytes: u64,
    /// Everything: a full copy.
    pub held_bytes: u64,
}

/// What each of several images, in the order in which they were made, stores as a snapshot. A block that several of them need
/// counts for the first of these.
///
/// # Errors
/// An image, or one below it, cannot be read.
pub fn stored_bytes(images: &[PathBuf]) -> Result<Vec<Stored>> {
    let mut layers: BTreeMap<PathBuf, (Vec<u64>, Option<PathBuf>)> = BTreeMap::new();
    let mut counted: BTreeSet<(PathBuf, u64)> = BTreeSet::new();
    let mut stored = Vec::new();
    for image in images {
        let mut held = BTreeSet::new();
        let mut own = 0;
        let mut next = Some(image.clone());
        while let Some(folder) = next {
            if !layers.contains_key(&folder) {
                layers.insert(folder.clone(), blocks_of(&folder)?);
            }
            let (blocks, parent) = &layers[&folder];
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

/// The blocks of 512 KiB of which an image's own layer holds anything, and the image below.
fn blocks_of(folder: &Path) -> Result<(Vec<u64>, Option<PathBuf>)> {
    let meta = read_meta(folder)?;
    let layer = Layer::open(folder, meta.size_bytes, false)
        .context(|| format!("cannot open the image {}", folder.display()), "make the image again")?;
    let extents = extents_of(&[Arc::new(layer)], SNAPSHOT_BLOCK_BYTES);
    let block = |bytes: u64| bytes / SNAPSHOT_BLOCK_BYTES;
    Ok((extents.iter().flat_map(|(offset, len)| block(offset)..block(offset + len)).collect(), meta.parent))
}
