//! Where rows end, and chunks of whole rows.

pub(crate) mod chunk_data;
pub(crate) mod command;
pub(crate) mod plan;
pub(crate) mod rows;
pub(crate) mod splitter;
