//! `replay`: a submit log in virtual time.

use std::path::Path;

use pgdyno_catalog::Resolved;
use pgdyno_volume::{Instance, replay as model};
use serde_json::{Value, json};

use crate::Failure;

/// Replays `log` and reports how many completions came out identical. A log of another model is refused.
pub(crate) fn replay(log: &Path) -> Result<Value, Failure> {
    let (header, records) = pgdyno_emulate::read_log(log)?;
    let spec = header.spec["spec"].as_str().unwrap_or_default();
    let resolved = Resolved::parse(spec)?;
    let model_hash = format!("{:016x}", resolved.model_hash());
    if model_hash != header.model_hash {
        return Err(Failure {
            message: format!("{} was recorded by model {}, this is {model_hash}", log.display(), header.model_hash),
            remedy: "replay it with the version of pgdyno that recorded it".to_owned(),
        });
    }
    let mut instance = Instance::new(header.seed);
    instance.add_volume(resolved.params().clone());
    let result = model::replay(&mut instance, records);
    let difference = result.first_difference.map(|(id, recorded, replayed)| {
        json!({"id": id.0, "recorded_done_at_ns": recorded, "replayed_done_at_ns": replayed})
    });
    Ok(json!({
        "spec": spec, "seed": header.seed, "model_hash": model_hash, "submits": result.submits, "grants": result.grants,
        "identical": result.identical, "first_difference": difference, "complete": !result.overflowed,
    }))
}
