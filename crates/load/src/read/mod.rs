//! Bytes of files, pipes and objects elsewhere, uncompressed and in blocks.

pub(crate) mod inflate;
pub(crate) mod pool;
pub(crate) mod proof;
pub(crate) mod remote;
pub(crate) mod source;
