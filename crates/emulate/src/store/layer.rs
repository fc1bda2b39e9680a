//! One layer: a sparse file as large as the volume, and the map of the blocks in it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::fs::FallocateFlags;

use super::block_map::{BLOCK_BYTES, BlockMap, damaged};
use super::lock::open_shared;
use super::mapping::Mapping;

const DATA: &str = "data";
const MAP: &str = "map";

#[derive(Debug)]
pub(crate) struct Layer {
    data: File,
    memory: Option<Mapping>,
    /// There are blocks that are held and have no memory: zeros over a layer below.
    holes: AtomicBool,
    map: BlockMap,
    size_bytes: AtomicU64,
}

impl Layer {
    pub(crate) fn create(folder: &Path, size_bytes: u64, direct: bool) -> io::Result<Self> {
        let create = |path: &Path| open_options(direct).write(true).create_new(true).mode(0o600).open(path);
        let data = open_shared(&folder.join(DATA), create)?;
        data.set_len(size_bytes)?;
        let memory = Mapping::of_memory(&data, size_bytes, true);
        Ok(Self {
            data,
            memory,
            holes: AtomicBool::new(false),
            map: BlockMap::new(size_bytes)?,
            size_bytes: AtomicU64::new(size_bytes),
        })
    }

    /// An immutable layer, as [`open_data`] opened its data: for reading only, so that nothing can change it.
    pub(crate) fn open(folder: &Path, data: File, size_bytes: u64) -> io::Result<Self> {
        let facts = data.metadata()?;
        // A mapping that is longer than its file ends the process that reads it.
        if facts.len() < size_bytes {
            return Err(damaged("its data is shorter than the image"));
        }
        let map = BlockMap::load(size_bytes, &File::open(folder.join(MAP))?)?;
        let memory = Mapping::of_memory(&data, size_bytes, false);
        let holes = facts.blocks() * 512 < map.held_blocks() * BLOCK_BYTES;
        Ok(Self { data, memory, holes: AtomicBool::new(holes), map, size_bytes: AtomicU64::new(size_bytes) })
    }

    /// A layer that gives blocks to another one, or takes them over.
    pub(crate) fn reopen(folder: &Path, size_bytes: u64) -> io::Result<Self> {
        let data = open_options(false).write(true).open(folder.join(DATA))?;
        let map = BlockMap::load(size_bytes, &File::open(folder.join(MAP))?)?;
        let (holes, size_bytes) = (AtomicBool::new(true), AtomicU64::new(size_bytes));
        Ok(Self { data, memory: None, holes, map, size_bytes })
    }

    /// The file with its bytes.
    pub(crate) fn data(&self) -> &File {
        &self.data
    }

    /// Gives the space of blocks back, without a word in the map.
    pub(crate) fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        Ok(rustix::fs::fallocate(&self.data, mode, offset, len)?)
    }

    /// Bytes of the volume that it is a layer of.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.size_bytes.load(Ordering::Acquire)
    }

    pub(crate) fn holds(&self, offset: u64) -> bool {
        offset < self.size_bytes() && self.map.holds(offset)
    }

    /// Which blocks it holds.
    pub(crate) fn map(&self) -> &BlockMap {
        &self.map
    }

    /// Makes it larger. What is added is read and written in the file: the mapping stays as it is.
    pub(crate) fn grow(&self, size_bytes: u64) -> io::Result<()> {
        self.data.set_len(size_bytes)?;
        if !self.map.grow(size_bytes) {
            return Err(io::Error::other("it has grown too many times since it was attached"));
        }
        self.size_bytes.store(size_bytes, Ordering::Release);
        Ok(())
    }

    /// Whether its file is in memory, so that its bytes are there at once.
    pub(crate) fn is_in_memory(&self) -> bool {
        self.memory.is_some()
    }

    /// The mapping, if it has the range, and as long as no access to a held block can ask for memory.
    fn memory(&self, offset: u64, len: usize) -> Option<&Mapping> {
        self.memory.as_ref().filter(|memory| !self.holes.load(Ordering::Acquire) && memory.has(offset, len))
    }

    pub(crate) fn read(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        match self.memory(offset, buffer.len()) {
            Some(memory) => memory.read(buffer, offset),
            None => self.data.read_exact_at(buffer, offset),
        }
    }

    pub(crate) fn write(&self, buffer: &[u8], offset: u64) -> io::Result<()> {
        let len = buffer.len() as u64;
        let memory = self.memory(offset, buffer.len());
        if let Some(memory) = memory.filter(|_| self.map.holds_all(offset, len)) {
            return memory.overwrite(buffer, offset);
        }
        self.data.write_all_at(buffer, offset)?;
        if let Some(memory) = memory {
            memory.populate(offset, buffer.len());
        }
        self.map.set(offset, len, true);
        Ok(())
    }

    /// `covers`: there is a layer below, so the blocks must be held as zeros and not merely be absent.
    pub(crate) fn zero(&self, offset: u64, len: u64, covers: bool) -> io::Result<()> {
        if covers {
            self.holes.store(true, Ordering::Release);
        }
        self.punch(offset, len)?;
        self.map.set(offset, len, covers);
        Ok(())
    }

    pub(crate) fn save_map(&self, folder: &Path) -> io::Result<()> {
        self.data.sync_data()?;
        replace(folder, MAP, |file| self.map.save(file))
    }
}

/// The file of a layer's map, to write words of it.
pub(crate) fn open_map(folder: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(folder.join(MAP))
}

/// The data of a layer, which nobody moves or removes while it is open.
pub(crate) fn open_data(folder: &Path, direct: bool) -> io::Result<File> {
    open_shared(&folder.join(DATA), |path| open_options(direct).open(path))
}

/// The same for who wants it alone; `None` where there is none.
pub(crate) fn open_data_unheld(folder: &Path) -> io::Result<Option<File>> {
    match open_options(false).write(true).open(folder.join(DATA)) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes a file of an image so that it is there as a whole, or as it was, whatever happens.
pub(crate) fn replace(folder: &Path, name: &str, write: impl FnOnce(&File) -> io::Result<()>) -> io::Result<()> {
    let unfinished = folder.join(format!("{name}.new"));
    let file = File::create(&unfinished)?;
    write(&file)?;
    file.sync_all()?;
    std::fs::rename(unfinished, folder.join(name))?;
    sync_folder(folder)
}

/// Makes durable what is in a folder under which name.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

fn open_options(direct: bool) -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true);
    if direct {
        options.custom_flags(libc::O_DIRECT);
    }
    options
}
