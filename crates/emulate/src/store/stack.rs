//! The layers of a volume at one time: immutable ones, and the writable one on top.

use std::io;
use std::path::Path;
use std::sync::Arc;

use pgdyno_host::{Fault, Result};
use pgdyno_volume::Extents;

use super::block_map::BLOCK_BYTES;
use super::image::open_images;
use super::index::Index;
use super::layer::Layer;

/// An index has numbers for so many layers.
const LAYERS_MAX: usize = u16::MAX as usize - 1;
/// Layers below the top that are asked one after the other; an index of them is not worth its memory.
const ASKED_MAX: usize = 1;

/// Layers, the oldest first.
#[derive(Debug)]
pub(crate) struct Stack {
    layers: Vec<Arc<Layer>>,
    /// Of the first `indexed` layers; those above are asked one after the other.
    index: Arc<Index>,
    indexed: usize,
}

impl Stack {
    /// `top` on an image and what that stands on.
    pub(crate) fn on_image(top: Layer, image: Option<&Path>, direct: bool) -> Result<Self> {
        let mut layers = open_images(image, top.size_bytes(), direct)?;
        layers.push(top);
        let layers = layers.into_iter().map(Arc::new).collect();
        let stack = Self { layers, index: Arc::default(), indexed: 0 };
        Ok(stack.with_index().unwrap_or(stack))
    }

    /// The same layers below a new writable one.
    pub(crate) fn below(&self, top: Layer) -> Result<Self> {
        if self.layers.len() >= LAYERS_MAX {
            return Err(Fault::new(
                "the volume was frozen as often as one that is attached can be",
                "detach it with --save-image, and attach the image",
            ));
        }
        let mut layers = Vec::with_capacity(self.layers.len() + 1);
        layers.extend_from_slice(&self.layers);
        layers.push(Arc::new(top));
        Ok(Self { layers, index: self.index.clone(), indexed: self.indexed })
    }

    /// The same layers with an index of all below the top; `None` if that would be no other stack.
    pub(crate) fn with_index(&self) -> Option<Self> {
        let below = self.layers.len() - 1;
        if below <= ASKED_MAX || self.indexed == below {
            return None;
        }
        let size_bytes = self.top().size_bytes();
        let room = self.index.covers(size_bytes);
        let (index, known) =
            if room { (self.index.clone(), self.indexed) } else { (Arc::new(Index::new(size_bytes)), 0) };
        for number in known..below {
            index.add(number, self.layers[number].map());
        }
        Some(Self { layers: self.layers.clone(), index, indexed: below })
    }

    /// The writable layer.
    pub(crate) fn top(&self) -> &Arc<Layer> {
        self.layers.last().expect("a stack has a layer")
    }

    /// The immutable layers, the oldest first.
    pub(crate) fn immutable(&self) -> &[Arc<Layer>] {
        &self.layers[..self.layers.len() - 1]
    }

    /// What the immutable layers hold, in whole blocks of `block_bytes`, a multiple of 256 KiB.
    pub(crate) fn immutable_extents(&self, block_bytes: u64) -> Extents {
        extents_of(self.immutable(), block_bytes)
    }

    /// Fills `buffer` from `offset`, both in whole blocks.
    pub(crate) fn read(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let mut done = 0usize;
        let mut owner = self.owner(offset);
        while done < buffer.len() {
            let at = offset + done as u64;
            let of_run = owner;
            let mut run = BLOCK_BYTES as usize;
            while done + run < buffer.len() {
                owner = self.owner(at + run as u64);
                if owner != of_run {
                    break;
                }
                run += BLOCK_BYTES as usize;
            }
            let part = &mut buffer[done..done + run];
            match of_run {
                Some(layer) => self.layers[layer].read(part, at)?,
                None => part.fill(0),
            }
            done += run;
        }
        Ok(())
    }

    /// Makes whole blocks read as zeros.
    pub(crate) fn zero(&self, offset: u64, len: u64) -> io::Result<()> {
        self.top().zero(offset, len, self.layers.len() > 1)
    }

    /// How many layers are asked at most before it is known who holds a block.
    #[cfg(test)]
    pub(crate) fn asked_max(&self) -> usize {
        self.layers.len() - self.indexed
    }

    /// The layer that holds the block at `offset`.
    fn owner(&self, offset: u64) -> Option<usize> {
        let asked = self.layers[self.indexed..].iter().rposition(|layer| layer.holds(offset));
        asked.map(|place| self.indexed + place).or_else(|| self.index.owner(offset))
    }
}

/// What layers hold, in whole blocks of `block_bytes`, a multiple of 256 KiB.
pub(crate) fn extents_of(layers: &[Arc<Layer>], block_bytes: u64) -> Extents {
    let mut blocks: Vec<u64> = Vec::new();
    for layer in layers {
        let words_of_block = block_bytes / (64 * BLOCK_BYTES);
        let mut last = None;
        let of_layer = layer.map().held_words().map(|(word, _)| word as u64 / words_of_block);
        blocks.extend(of_layer.filter(|block| last.replace(*block) != Some(*block)));
    }
    blocks.sort_unstable();
    blocks.dedup();
    let mut held = Extents::default();
    for block in blocks {
        held.push(block * block_bytes, block_bytes);
    }
    held
}
