//! The content of one volume: its layers, and the folders that they are in.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use crossbeam_utils::sync::{ShardedLock, ShardedLockReadGuard, ShardedLockWriteGuard};
use pgdyno_host::{Context, Fault, Result};
use pgdyno_volume::Extents;

use super::image;
use super::layer::{Layer, sync_folder};
use super::lock::Base;
use super::stack::Stack;

pub(crate) const UNWRITABLE: &str = "check that the folder is writable and has space";

/// A volume's layers, and where they are.
#[derive(Debug)]
pub(crate) struct Store {
    /// Where the writable layer is, but for the moment in which another takes its place.
    pub(crate) folder: PathBuf,
    /// Held for reading while data is moved, and for writing while the layers change. In shards: event loops that read at the same
    /// time would pass one lock's cache line between their processors twice a request.
    stack: ShardedLock<Stack>,
    size_bytes: AtomicU64,
    /// Opened with O_DIRECT.
    pub(crate) direct: bool,
    below: Mutex<Below>,
}

/// What the writable layer stands on, as folders. Who freezes or grows the volume holds its lock.
#[derive(Debug)]
pub(crate) struct Below {
    /// Of the writable layer.
    pub(crate) folder: PathBuf,
    /// The image below it.
    pub(crate) parent: Option<Base>,
    /// Layers that are immutable and not images yet, the oldest first.
    pub(crate) unsaved: Vec<Unsaved>,
}

/// A layer that became immutable while the volume was used, and is not an image yet.
#[derive(Debug)]
pub(crate) struct Unsaved {
    pub(crate) layer: Arc<Layer>,
    pub(crate) folder: PathBuf,
    pub(crate) parent: Option<Base>,
}

impl Below {
    /// Makes images of the layers that were frozen, the oldest first.
    pub(crate) fn write_images(&mut self) -> io::Result<()> {
        while let Some(Unsaved { layer, folder, parent }) = self.unsaved.first() {
            if let Some(parent) = parent {
                image::note(&parent.folder, image::ABOVE, folder)?;
            }
            image::write(folder, layer, parent.as_ref().map(|parent| &*parent.folder))?;
            self.unsaved.remove(0);
        }
        Ok(())
    }
}

impl Store {
    /// A new writable layer in `folder`, on top of the image `parent` if given. `direct`: the folder is on a disk, so
    /// the layer is opened with O_DIRECT and never cached twice. `folder` must not exist; nothing of it stays when this
    /// fails.
    pub(crate) fn create(folder: &Path, size_bytes: u64, parent: Option<&Path>, direct: bool) -> Result<Self> {
        let above = folder.parent().unwrap_or(folder);
        // An existing one belongs to another volume, and is not removed.
        let made = fs::create_dir_all(above).and_then(|()| fs::create_dir(folder));
        made.context(|| format!("cannot create {}", folder.display()), UNWRITABLE)?;
        let top = Layer::create(folder, size_bytes, direct)
            .context(|| format!("cannot create a volume of {size_bytes} bytes in {}", folder.display()), UNWRITABLE);
        // The image is held before it is read, so that what is read is not moved away.
        let stacked = top.and_then(|top| {
            let parent = parent.map(image::hold).transpose()?;
            Ok((Stack::on_image(top, parent.as_ref().map(|parent| &*parent.folder), direct)?, parent))
        });
        let (stack, parent) = stacked.inspect_err(|_| {
            let _ = fs::remove_dir_all(folder);
        })?;
        let below = Mutex::new(Below { folder: folder.to_owned(), parent, unsaved: Vec::new() });
        let (folder, stack, size_bytes) = (folder.to_owned(), ShardedLock::new(stack), AtomicU64::new(size_bytes));
        Ok(Self { folder, stack, size_bytes, direct, below })
    }

    pub(crate) fn stack(&self) -> ShardedLockReadGuard<'_, Stack> {
        self.stack.read().expect("who changes the layers does not panic")
    }

    pub(crate) fn stack_mut(&self) -> ShardedLockWriteGuard<'_, Stack> {
        self.stack.write().expect("who changes the layers does not panic")
    }

    pub(crate) fn below(&self) -> MutexGuard<'_, Below> {
        self.below.lock().expect("who freezes or grows a volume does not panic")
    }

    /// Brings the layers below the top into the index, if there are so many that it helps.
    pub(crate) fn index(&self) {
        let indexed = self.stack().with_index();
        if let Some(mut stack) = indexed {
            std::mem::swap(&mut *self.stack_mut(), &mut stack);
        }
    }

    /// Whether the volume is on a disk, or an image below it: moving data may have to wait.
    pub(crate) fn is_on_disk(&self) -> bool {
        self.direct || self.stack().immutable().iter().any(|layer| !layer.is_in_memory())
    }

    /// Bytes of the volume.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.size_bytes.load(Ordering::Acquire)
    }

    /// Bytes of the image below; `None` without one.
    pub(crate) fn image_bytes(&self) -> Option<u64> {
        self.stack().immutable().last().map(|layer| layer.size_bytes())
    }

    /// What the image below holds, in whole blocks of `block_bytes`, a multiple of 256 KiB.
    pub(crate) fn image_extents(&self, block_bytes: u64) -> Extents {
        self.stack().immutable_extents(block_bytes)
    }

    /// Makes the volume larger while it is used; what is added reads as zeros.
    pub(crate) fn grow(&self, size_bytes: u64) -> io::Result<()> {
        let _alone = self.below();
        self.stack().top().grow(size_bytes)?;
        self.size_bytes.store(size_bytes, Ordering::Release);
        Ok(())
    }

    /// Fills `buffer` from `offset`, both in whole blocks.
    pub(crate) fn read(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.stack().read(buffer, offset)
    }

    /// Writes whole blocks at `offset` into the top layer.
    pub(crate) fn write(&self, buffer: &[u8], offset: u64) -> io::Result<()> {
        self.stack().top().write(buffer, offset)
    }

    /// Makes whole blocks read as zeros, giving their space back. A discard does the same.
    pub(crate) fn zero(&self, offset: u64, len: u64) -> io::Result<()> {
        self.stack().zero(offset, len)
    }

    /// The folder of the top layer.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Refuses a place where [`Self::save`] cannot make an image. To be asked while the volume is up:
    /// once it is down, its content cannot be saved elsewhere.
    pub(crate) fn require_savable(&self, target: &Path) -> Result<()> {
        let is_empty = || fs::read_dir(target).is_ok_and(|mut entries| entries.next().is_none());
        if target.symlink_metadata().is_ok_and(|facts| !facts.is_dir() || !is_empty()) {
            return Err(Fault::new(
                format!("{} already exists", target.display()),
                "name a folder that does not exist yet",
            ));
        }
        let below = self.below();
        // What is not an image yet becomes one when the volume is saved.
        let image = below.unsaved.first().map_or(&below.parent, |oldest| &oldest.parent);
        image.as_ref().map_or(Ok(()), |image| image::require_base(&image.folder))?;
        drop(below);
        let file_system = |folder: &Path| fs::metadata(folder).map(|facts| facts.dev()).ok();
        let whole = std::path::absolute(target).unwrap_or_else(|_| target.to_owned());
        if whole.ancestors().skip(1).find_map(file_system) == file_system(&self.folder) {
            return Ok(());
        }
        let here = self.folder.parent().unwrap_or(&self.folder).display();
        Err(Fault::new(
            format!("{} is on another file system than the volume's content", target.display()),
            format!("name a new folder on the file system of {here}"),
        ))
    }

    /// Turns the top layer into an image at `target`. Nothing may be written after this.
    pub(crate) fn save(&self, target: &Path) -> Result<()> {
        let mut below = self.below();
        let saved = (|| {
            below.write_images()?;
            let parent = below.parent.as_ref().map(|parent| &*parent.folder);
            image::write(&below.folder, self.stack().top(), parent)?;
            if let Some(parent) = parent {
                image::note(parent, image::SAVED, &std::path::absolute(target)?)?;
            }
            let above = target.parent().unwrap_or(target);
            fs::create_dir_all(above)?;
            fs::rename(&below.folder, target)?;
            sync_folder(above)
        })();
        let remedy = "name a folder that does not exist yet, on the same file system as the image folder";
        saved.map_err(|error| image::unwritable(target, &error, remedy))
    }

    /// Removes the top layer's files.
    pub(crate) fn remove(&self) -> io::Result<()> {
        fs::remove_dir_all(&self.below().folder)
    }
}
