//! Snapshots of attached volumes: their contents at one instant, as images.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pgdyno_host::{Fault, Result};
use serde_json::{Map, Value, json};

use crate::attached::Attached;
use crate::fault;
use crate::precautions;
use crate::store::{Kept, freeze};

/// Makes an image of each named volume in its folder, all of one instant. Either all are made or the answer is an error,
/// after which the volumes go on as before.
pub(crate) fn take(volumes: &BTreeMap<String, Attached>, targets: &BTreeMap<String, PathBuf>) -> Result<Value> {
    let mut freezing = Vec::new();
    for (name, target) in targets {
        let Some(attached) = volumes.get(name) else {
            return Err(Fault::new(format!("the volume {name:?} is gone"), "see `pgdyno volume list`"));
        };
        let remedy = "leave the volume out, or restore it from a snapshot that was taken before";
        fault::require_content(attached.pipeline(), remedy).map_err(|fault| {
            let message = format!("the volume {name:?}, or a member of it, is lost, so no snapshot of it can be taken");
            Fault { message, ..fault }.coded("snapshot.volume.lost", json!({"volume": name}))
        })?;
        freezing.push(attached.pipeline().prepare(target)?);
    }
    // Requests wait for this thread while it has the locks.
    precautions::data_path_priority();
    let taken = freeze(&mut freezing);
    precautions::ordinary_priority();
    // Each of them, whatever becomes of the others: only then can its volume be frozen again.
    let kept: Vec<Result<Kept>> = freezing.into_iter().map(|volume| volume.keep()).collect();
    let mut snapshots = Map::new();
    for ((name, target), kept) in targets.iter().zip(kept) {
        let Kept { parent, size_bytes, changed_bytes, held_bytes } = kept?;
        let of_volume = json!({"image": target, "parent": parent, "size_bytes": size_bytes,
            "changed_bytes": changed_bytes, "held_bytes": held_bytes});
        snapshots.insert(name.clone(), of_volume);
    }
    let waited_ns = u64::try_from(taken.waited.as_nanos()).unwrap_or(u64::MAX);
    Ok(json!({"taken_unix_ns": taken.unix_ns, "waited_ns": waited_ns, "snapshots": snapshots}))
}
