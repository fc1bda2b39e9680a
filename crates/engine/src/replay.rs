//! `replay`: a submit log in virtual time.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use pgdyno_emulate::LogHeader;
use pgdyno_volume::Instance;
use pgdyno_volume::closed_loop::closed_loop;
use pgdyno_volume::log::Record;
use pgdyno_volume::replay::{self as model, Told};
use serde_json::{Value, json};

use crate::failure::Failure;

/// Replays `log` and reports how many completions came out identical. A log of another model is refused.
pub(crate) fn replay(log: &Path) -> Result<Value, Failure> {
    let Recorded { header, spec, mut instance, records } = open(log)?;
    let repeat = |instance: &mut Instance, told: Told, spec: &str| {
        let Ok(storage) = pgdyno_emulate::resolve(spec) else { return false };
        match told {
            Told::Attach => {
                storage.add_to(instance);
            }
            Told::Modify { now, volume } => instance.modify(now, volume, storage.member().params()),
        }
        true
    };
    let result = model::replay_with(&mut instance, records, repeat);
    let difference = result.first_difference.map(|(id, recorded, replayed)| {
        json!({"id": id.0, "recorded_done_at_ns": recorded, "replayed_done_at_ns": replayed})
    });
    Ok(json!({
        "spec": spec, "seed": header.seed, "model_hash": header.model_hash, "submits": result.submits,
        "grants": result.grants, "identical": result.identical, "first_difference": difference,
        "complete": result.closed && !result.overflowed && !result.unknown_volume,
    }))
}

/// Writes to `target`, as a log, what the requests of `log` come to when `depth` of them are kept outstanding by a host
/// that takes no time.
pub(crate) fn ideal(log: &Path, depth: usize, target: &Path) -> Result<Value, Failure> {
    let Recorded { header, spec, mut instance, records } = open(log)?;
    let failed = |error: io::Error| {
        Failure::new(
            format!("cannot write {}: {error}", target.display()),
            "name a file in a folder that exists and has space".to_owned(),
        )
    };
    let mut out = BufWriter::with_capacity(1 << 20, File::create(target).map_err(failed)?);
    pgdyno_emulate::write_header(&mut out, &header).map_err(failed)?;
    let (mut submits, mut written) = (0u64, Ok(()));
    closed_loop(&mut instance, records, depth, |record| {
        submits += u64::from(matches!(record, Record::Submit { .. }));
        if written.is_ok() {
            written = out.write_all(&record.encode());
        }
    });
    written.and_then(|()| out.write_all(&Record::End.encode())).and_then(|()| out.flush()).map_err(failed)?;
    Ok(json!({"spec": spec, "seed": header.seed, "model_hash": header.model_hash, "submits": submits, "depth": depth}))
}

/// A log and the model as it was when the recording began.
struct Recorded<R> {
    header: LogHeader,
    spec: String,
    instance: Instance,
    records: R,
}

fn open(log: &Path) -> Result<Recorded<impl Iterator<Item = Record> + use<>>, Failure> {
    let (header, records) = pgdyno_emulate::read_log(log)?;
    let spec = header.spec["spec"].as_str().unwrap_or_default().to_owned();
    let storage = pgdyno_emulate::resolve(&spec)?;
    let model_hash = format!("{:016x}", storage.model_hash());
    if model_hash != header.model_hash {
        return Err(Failure::new(
            format!("{} was recorded by model {}, this is {model_hash}", log.display(), header.model_hash),
            "replay it with the version of pgdyno that recorded it".to_owned(),
        ));
    }
    let mut instance = header.instance();
    storage.add_to(&mut instance);
    Ok(Recorded { header, spec, instance, records })
}
