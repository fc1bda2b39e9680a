//! The volume model. (skeleton)
pub mod params;
pub use params::*;
