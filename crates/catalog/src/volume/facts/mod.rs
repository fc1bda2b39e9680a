//! What the catalogue files say about volumes.

pub(crate) mod file;
pub(crate) mod limits;
pub(crate) mod piecewise;
pub(crate) mod price;
pub(crate) mod service_time;
pub(crate) mod store;
