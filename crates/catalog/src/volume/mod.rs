//! Volumes: what the files say, what a user asks for, and what it comes to.

pub(crate) mod array;
pub(crate) mod facts;
pub(crate) mod model_params;
pub(crate) mod offers;
pub(crate) mod request;
pub(crate) mod resolved;
pub(crate) mod twin;
pub(crate) mod types;
