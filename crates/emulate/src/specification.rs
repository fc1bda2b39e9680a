//! From what a user writes to a volume: the catalogue's rules, or the file of a twin, which only a host can open.

use std::fs;
use std::path;

use pgdyno_catalog::{Resolved, Storage, twin_path};

use crate::error::{Context, EmulateError, Result};

/// Resolves a volume or an array: `[raid10:][Nx]TYPE[:key=value,...]` by the catalogue, `twin:PATH` or `PATH.toml` by the file at that path.
///
/// # Errors
/// What the catalogue refuses, a file that cannot be read, or one that is no twin.
pub fn resolve(spec: &str) -> Result<Storage> {
    let refused = |error: pgdyno_catalog::SpecError| EmulateError::new(error.message, error.remedy);
    let Some(file) = twin_path(spec) else {
        return Storage::parse(spec).map_err(refused);
    };
    let remedy = "name the file that `pgdyno volume fit` wrote";
    let cannot = || format!("cannot read the twin {file:?}");
    // Absolute, so that the recorded specification means the same from anywhere on this machine.
    let path = path::absolute(file).context(cannot, remedy)?;
    let text = fs::read_to_string(&path).context(cannot, remedy)?;
    let total = Resolved::of_twin(&path.to_string_lossy(), &text).map_err(refused)?;
    Ok(Storage { total, array: None })
}
