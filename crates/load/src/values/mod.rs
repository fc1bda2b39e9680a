//! Values of a file, and the types of PostgreSQL that return them as they are.

pub(crate) mod column;
pub(crate) mod command;
pub(crate) mod fields;
pub(crate) mod held;
pub(crate) mod kinds;
