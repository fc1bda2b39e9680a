//! Instance types: memory, processors, and the limits of their volumes.

pub(crate) mod file;
pub(crate) mod history;
pub(crate) mod instance_type;
