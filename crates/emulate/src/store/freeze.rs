//! Freezing volumes while they are used: at one instant each gets a new writable layer, and the old one is immutable.
//!
//! The instant is one at which no data is moved into any of the volumes: their locks are held together. A request that was
//! answered before has moved its data by then, so it is in the old layer; one that is submitted later moves it into the
//! new one; one in between does either. So what depends on an answer is never there without what was answered, also in
//! another of the volumes.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::MutexGuard;
use std::time::{Duration, Instant};

use pgdyno_clock::realtime_ns;
use pgdyno_host::{Context, Result};

use super::content::{Below, Store, UNWRITABLE, Unsaved};
use super::image;
use super::layer::Layer;
use super::lock::Base;
use super::stack::{Stack, extents_of};

/// What a snapshot counts in (EBS direct APIs, PutSnapshotBlock: a block is 512 KiB).
pub(crate) const SNAPSHOT_BLOCK_BYTES: u64 = 512 << 10;

/// A volume that is about to be frozen: its new layer is there, and not used yet. Dropped before that, it leaves nothing.
#[derive(Debug)]
pub(crate) struct Freezing<'a> {
    store: &'a Store,
    below: MutexGuard<'a, Below>,
    /// The stack with the new layer; after the instant the one before.
    other: Stack,
    /// The new layer's folder.
    folder: PathBuf,
    target: PathBuf,
    frozen: bool,
}

/// The image that a frozen layer became.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    /// The image below.
    pub(crate) parent: Option<PathBuf>,
    pub(crate) size_bytes: u64,
    /// Bytes in blocks of 512 KiB that were written since the image below was made.
    pub(crate) changed_bytes: u64,
    /// The same of everything that the volume holds.
    pub(crate) held_bytes: u64,
}

impl Store {
    /// Makes the layer that the volume will be written to. The old one becomes the image `target`.
    pub(crate) fn prepare(&self, target: &Path) -> Result<Freezing<'_>> {
        self.require_savable(target)?;
        let below = self.below();
        let folder = beside(&self.folder);
        let make = || {
            fs::create_dir_all(target.parent().unwrap_or(target))?;
            fs::create_dir(&folder)?;
            Layer::create(&folder, self.size_bytes(), self.direct).inspect_err(|_| {
                let _ = fs::remove_dir_all(&folder);
            })
        };
        let layer = make().context(|| format!("cannot create a layer in {}", folder.display()), UNWRITABLE)?;
        let other = self.stack().below(layer);
        let other = other.inspect_err(|_| {
            let _ = fs::remove_dir_all(&folder);
        })?;
        Ok(Freezing { store: self, below, other, folder, target: target.to_owned(), frozen: false })
    }
}

/// When volumes were frozen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Instants {
    /// An instant at which no data was moved, on CLOCK_REALTIME.
    pub(crate) unix_ns: u64,
    /// How long requests may have waited.
    pub(crate) waited: Duration,
}

/// Freezes all of them at one instant.
pub(crate) fn freeze(volumes: &mut [Freezing<'_>]) -> Instants {
    let begun = Instant::now();
    // All locks before the first stack changes: this is what makes it one instant.
    let mut stacks: Vec<_> = volumes.iter().map(|volume| volume.store.stack_mut()).collect();
    for (stack, volume) in stacks.iter_mut().zip(volumes) {
        std::mem::swap(&mut **stack, &mut volume.other);
        volume.frozen = true;
    }
    let unix_ns = realtime_ns();
    drop(stacks);
    Instants { unix_ns, waited: begun.elapsed() }
}

impl Freezing<'_> {
    /// Makes an image of the layer that was frozen. If that fails the volume goes on with it, and the next image that is made
    /// of the volume makes this one first.
    pub(crate) fn keep(mut self) -> Result<Kept> {
        assert!(self.frozen, "it is frozen first");
        let layer = self.other.top().clone();
        let moved = fs::rename(&self.below.folder, &self.target);
        let folder = if moved.is_ok() { &self.target } else { &self.below.folder }.clone();
        let home = if moved.is_ok() { fs::rename(&self.folder, &self.store.folder) } else { Ok(()) };
        self.below.folder = if moved.is_ok() && home.is_ok() { &self.store.folder } else { &self.folder }.clone();
        // The image before is held until this one says that it stands on it.
        let (base, held) = match Base::hold(&folder) {
            Ok(base) => (base, Ok(())),
            Err(error) => (Base::not_held(&folder), Err(error)),
        };
        let before = self.below.parent.replace(base);
        let parent = before.as_ref().map(|before| before.folder.clone());
        self.below.unsaved.push(Unsaved { layer: layer.clone(), folder, parent: before });
        self.store.index();
        moved
            .and(home)
            .and(held)
            .and_then(|()| self.below.write_images())
            .map_err(|error| image::unwritable(&self.target, &error, "free some space; the volume itself goes on"))?;
        let changed_bytes = extents_of(std::slice::from_ref(&layer), SNAPSHOT_BLOCK_BYTES).bytes();
        let held_bytes = self.store.stack().immutable_extents(SNAPSHOT_BLOCK_BYTES).bytes();
        Ok(Kept { parent, size_bytes: layer.size_bytes(), changed_bytes, held_bytes })
    }
}

impl Drop for Freezing<'_> {
    fn drop(&mut self) {
        if !self.frozen {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

/// The folder of the next layer: `NAME-next-PID` of `NAME-PID`, so that a clean-up knows whose it is.
fn beside(folder: &Path) -> PathBuf {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let (name, process) = name.rsplit_once('-').unwrap_or((&name, "0"));
    folder.with_file_name(format!("{name}-next-{process}"))
}
