//! The library that shifts a server's clock, as a file.

use std::path::Path;

use serde_json::{Value, json};

use crate::failure::Failure;

/// Writes it, and says which variable of a program's environment has the shift in microseconds.
pub(crate) fn write(output: &Path) -> Result<Value, Failure> {
    std::fs::write(output, pgdyno_shifted::LIBRARY).map_err(|error| {
        Failure::new(
            format!("{} cannot be written: {error}", output.display()),
            "name a file in a directory that can be written".to_owned(),
        )
    })?;
    Ok(json!({"variable": pgdyno_shifted::VARIABLE}))
}
