//! What can go wrong: a specification that is not sold, or a catalogue file with a mistake in it.

use serde::{Deserialize, Serialize};

/// A volume specification that was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct SpecError {
    /// The rule and the figure that breaks it, in one sentence.
    pub message: String,
    /// Specifications that are accepted and nearest to what was asked, joined by " or ".
    pub remedy: String,
}

/// A mistake in a catalogue file. The files are compiled in, so this is a bug of pgdyno and never of its user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("catalog/{file}: {problem}")]
pub struct CatalogError {
    /// The file, below `catalog/`.
    pub file: String,
    /// What is wrong in it.
    pub problem: String,
}

impl From<CatalogError> for SpecError {
    fn from(error: CatalogError) -> Self {
        SpecError {
            message: format!("the catalogue is broken: {error}"),
            remedy: "this is a bug of pgdyno, not of the specification: please report it".to_owned(),
        }
    }
}
