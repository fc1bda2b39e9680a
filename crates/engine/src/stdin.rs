//! What a command reads from its standard input.

use std::io::BufRead;

use serde::de::DeserializeOwned;

use crate::failure::Failure;

/// The specification of a command is one line, so that the pipe may stay open as a sign of life.
pub(crate) fn from_stdin<T: DeserializeOwned>(command: &str) -> Result<T, Failure> {
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    read.map_err(|error| error.to_string())
        .and_then(|_| serde_json::from_str(&line).map_err(|e| e.to_string()))
        .map_err(|error| {
            Failure::new(
                format!("{command} cannot read its specification: {error}"),
                "give one JSON document on one line of standard input".to_owned(),
            )
        })
}
