//! Where a volume's bytes are: immutable layers and one writable layer on top.
//!
//! Cloning an image is putting a new, empty layer on it, so a snapshot and a clone are the same operation and take no
//! time. A layer is a sparse file and a map of which blocks it holds; a block that no layer holds reads as zeros.

mod block_map;
mod buffer;
mod collect;
mod content;
mod freeze;
mod image;
mod index;
mod layer;
mod lock;
mod mapping;
mod merge;
mod sizes;
mod stack;

pub(crate) use block_map::BLOCK_BYTES;
pub(crate) use buffer::AlignedBuffer;
pub use collect::{Collected, Collection, collect};
pub(crate) use content::Store;
pub(crate) use freeze::{Freezing, Kept, freeze};
pub(crate) use mapping::Mapping;
pub use sizes::{Stored, stored_bytes};

#[cfg(test)]
mod damaged_tests;
#[cfg(test)]
mod freeze_tests;
#[cfg(test)]
mod merge_tests;
#[cfg(test)]
mod tests;
