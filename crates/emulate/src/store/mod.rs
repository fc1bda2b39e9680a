//! Where a volume's bytes are: immutable layers and one writable layer on top.
//!
//! Cloning an image is putting a new, empty layer on it, so a snapshot and a clone are the same operation and take no
//! time. A layer is a sparse file and a map of which blocks it holds; a block that no layer holds reads as zeros.

mod block_map;
mod buffer;
mod layer;
mod mapping;

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use pgdyno_host::{Context, Fault, Result};
use pgdyno_volume::Extents;
use serde::{Deserialize, Serialize};

pub(crate) use block_map::BLOCK_BYTES;
pub(crate) use buffer::AlignedBuffer;
use layer::Layer;

const META: &str = "image.json";
const UNWRITABLE: &str = "check that the folder is writable and has space";

/// What an image's folder says about it.
#[derive(Debug, Serialize, Deserialize)]
struct Meta {
    version: u32,
    size_bytes: u64,
    parent: Option<PathBuf>,
}

/// A stack of layers, the writable one first.
#[derive(Debug)]
pub(crate) struct Store {
    folder: PathBuf,
    layers: Vec<Layer>,
    size_bytes: AtomicU64,
    parent: Option<PathBuf>,
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
        Self::stack(folder, size_bytes, parent, direct).inspect_err(|_| {
            let _ = fs::remove_dir_all(folder);
        })
    }

    /// The layers: a new one in `folder`, and those of the image.
    fn stack(folder: &Path, size_bytes: u64, parent: Option<&Path>, direct: bool) -> Result<Self> {
        let top = Layer::create(folder, size_bytes, direct)
            .context(|| format!("cannot create a volume of {size_bytes} bytes in {}", folder.display()), UNWRITABLE)?;
        let mut layers = vec![top];
        let mut next = parent.map(Path::to_path_buf);
        while let Some(folder) = next {
            let meta = read_meta(&folder)?;
            if meta.size_bytes > size_bytes {
                return Err(Fault::new(
                    format!("the image {} holds {} bytes, the volume {size_bytes}", folder.display(), meta.size_bytes),
                    "ask for a volume at least as large as the image",
                ));
            }
            layers.push(
                Layer::open(&folder, meta.size_bytes, direct)
                    .context(|| format!("cannot open the image {}", folder.display()), "make the image again")?,
            );
            next = meta.parent;
        }
        let size_bytes = AtomicU64::new(size_bytes);
        Ok(Self { folder: folder.to_owned(), layers, size_bytes, parent: parent.map(Path::to_path_buf) })
    }

    /// Bytes of the volume.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.size_bytes.load(Ordering::Acquire)
    }

    /// Bytes of the image below; `None` without one.
    pub(crate) fn image_bytes(&self) -> Option<u64> {
        self.layers.get(1).map(Layer::size_bytes)
    }

    /// What the image below holds, in whole blocks of `block_bytes`, a multiple of 256 KiB.
    pub(crate) fn image_extents(&self, block_bytes: u64) -> Extents {
        let image = self.layers.get(1..).unwrap_or_default();
        let mut held = Extents::default();
        for offset in (0..self.image_bytes().unwrap_or(0)).step_by(block_bytes as usize) {
            if image.iter().any(|layer| layer.holds_any(offset, block_bytes)) {
                held.push(offset, block_bytes);
            }
        }
        held
    }

    /// Makes the volume larger while it is used; what is added reads as zeros.
    pub(crate) fn grow(&self, size_bytes: u64) -> io::Result<()> {
        self.layers[0].grow(size_bytes)?;
        self.size_bytes.store(size_bytes, Ordering::Release);
        Ok(())
    }

    /// Fills `buffer` from `offset`, both in whole blocks.
    pub(crate) fn read(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let mut done = 0usize;
        while done < buffer.len() {
            let at = offset + done as u64;
            let owner = self.owner(at);
            let mut run = BLOCK_BYTES as usize;
            while done + run < buffer.len() && self.owner(at + run as u64) == owner {
                run += BLOCK_BYTES as usize;
            }
            let part = &mut buffer[done..done + run];
            match owner {
                Some(layer) => self.layers[layer].read(part, at)?,
                None => part.fill(0),
            }
            done += run;
        }
        Ok(())
    }

    /// Writes whole blocks at `offset` into the top layer.
    pub(crate) fn write(&self, buffer: &[u8], offset: u64) -> io::Result<()> {
        self.layers[0].write(buffer, offset)
    }

    /// Makes whole blocks read as zeros, giving their space back. A discard does the same.
    pub(crate) fn zero(&self, offset: u64, len: u64) -> io::Result<()> {
        self.layers[0].zero(offset, len, self.layers.len() > 1)
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
        let Self { folder, layers, parent, .. } = self;
        let saved = (|| {
            layers[0].save_map(folder)?;
            let meta = Meta { version: 1, size_bytes: self.size_bytes(), parent: parent.clone() };
            fs::write(folder.join(META), serde_json::to_vec_pretty(&meta)?)?;
            if let Some(above) = target.parent() {
                fs::create_dir_all(above)?;
            }
            fs::rename(folder, target)
        })();
        saved.context(
            || format!("cannot save the image to {}", target.display()),
            "name a folder that does not exist yet, on the same file system as the image folder",
        )
    }

    /// Removes the top layer's files.
    pub(crate) fn remove(&self) -> io::Result<()> {
        fs::remove_dir_all(&self.folder)
    }

    /// The layer that holds the block at `offset`.
    fn owner(&self, offset: u64) -> Option<usize> {
        self.layers.iter().position(|layer| layer.holds(offset))
    }
}

fn read_meta(folder: &Path) -> Result<Meta> {
    let remedy = "name an image that `pgdyno volume detach --save-image` made";
    let text = fs::read(folder.join(META)).context(|| format!("{} is not an image", folder.display()), remedy)?;
    let meta: Meta = serde_json::from_slice(&text)
        .map_err(io::Error::from)
        .context(|| format!("{} is damaged", folder.join(META).display()), "make the image again")?;
    if meta.version != 1 {
        return Err(Fault::new(format!("image version {} is not known", meta.version), "make the image again"));
    }
    Ok(meta)
}

#[cfg(test)]
mod tests;
