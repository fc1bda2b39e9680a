//! Keys that a type does not have, with the key that has the same effect, and values too large to be of use.

use crate::degradation::{Degraded, left_open_ppm, percent_phrase, shares_ppm};
use crate::restore::{Init, PROVIDER, fast_bytes_max, rates_mib_per_s};
use crate::units::{GIB, count_phrase, size_phrase};
use crate::volume::facts::limits::least;
use crate::volume::request::Request;
use crate::volume::request::violation::Violation;

/// A request that takes longer than this is taken for lost by the programs that wait for it.
const SERVICE_US_MAX: u64 = 10_000_000;

/// No provider saves up more than a day by its limit, and most less than an hour.
const BUCKET_MS_MAX: u64 = 86_400_000;

/// What is proposed where no provider's promise is known: what EBS leaves open of its general purpose volumes.
const SHARE_PPM: u32 = 10_000;

/// Above any volume.
const SIZE_GIB_MOST: u64 = 1 << 20;

pub(crate) fn refuse_keys_that_do_nothing(request: &Request) -> Result<(), Violation> {
    let (file, name) = (request.file, &request.file.name);
    refuse_iops(request)?;
    let limited = file.iops.is_some() || file.throughput.is_some() || file.instance_store.is_some();
    if !limited && request.bucket_ms.is_some() {
        let message = format!("{name} has no limit, so it has no bucket and bucket_ms cannot be set");
        return Err(Violation { message, fixes: vec![Request { bucket_ms: None, ..*request }] });
    }
    if request.credits.is_some() && file.credit_kind().is_none() {
        let message = format!("{name} has no credits of one kind, so credits cannot be set");
        return Err(Violation { message, fixes: vec![Request { credits: None, ..*request }] });
    }
    refuse_throughput(request)?;
    if request.init.is_some() && file.provider != PROVIDER {
        let message =
            format!("init says how a volume of {PROVIDER} gets the blocks of its snapshot, and {name} is none");
        return Err(Violation { message, fixes: vec![Request { init: None, ..*request }] });
    }
    refuse_degraded(request, limited)
}

/// Refuses it of a volume without limits, the promise of a provider that makes none, and a share that cannot be.
fn refuse_degraded(request: &Request, limited: bool) -> Result<(), Violation> {
    let name = &request.file.name;
    let (low, high) = shares_ppm();
    let with = |ppm| Request { degraded: Some(Degraded::Share(ppm)), ..*request };
    match request.degraded {
        Some(_) if !limited => {
            let message = format!("{name} has no limit of which a part could be left, so degraded cannot be set");
            Err(Violation { message, fixes: vec![Request { degraded: None, ..*request }] })
        }
        Some(Degraded::Promise) if left_open_ppm(name).is_none() => {
            let message =
                format!("how much of the time {name} has its limits for is not known, so there is no promise");
            Err(Violation { message, fixes: vec![with(SHARE_PPM), Request { degraded: None, ..*request }] })
        }
        Some(Degraded::Share(ppm)) if !(low..=high).contains(&ppm) => {
            let range = format!("{} to {}", percent_phrase(low), percent_phrase(high));
            let message = format!("a volume is degraded {range} of the time, {} asked", percent_phrase(ppm));
            Err(Violation { message, fixes: vec![with(ppm.clamp(low, high))] })
        }
        _ => Ok(()),
    }
}

/// Refuses a rate that is not sold, and a fast restore of a snapshot that is too large; its size is taken for the volume's.
pub(crate) fn refuse_init(request: &Request, size_bytes: u64) -> Result<(), Violation> {
    let (low, high) = rates_mib_per_s();
    let with = |init| Request { init: Some(init), ..*request };
    match request.init {
        Some(Init::Rate(asked)) if !(low..=high).contains(&asked) => {
            let message = format!("a volume is initialized at {low} to {high} MiB/s, {} asked", count_phrase(asked));
            Err(Violation { message, fixes: vec![with(Init::Rate(asked.clamp(low, high)))] })
        }
        Some(Init::Fast) if size_bytes > fast_bytes_max() => {
            let (most, asked) = (size_phrase(fast_bytes_max()), size_phrase(size_bytes));
            let message =
                format!("fast snapshot restore is for snapshots of up to {most}, and this volume has {asked}");
            let smaller = Request { size_bytes: Some(fast_bytes_max()), ..*request };
            Err(Violation { message, fixes: vec![with(Init::Rate(high)), smaller] })
        }
        _ => Ok(()),
    }
}

fn refuse_iops(request: &Request) -> Result<(), Violation> {
    let (file, name) = (request.file, &request.file.name);
    let Some(asked) = request.iops else { return Ok(()) };
    let without = Request { iops: None, ..*request };
    if let Some(store) = request.instance_store() {
        let message = format!("{name} has what is in {}, so iops cannot be set", store.name);
        return Err(Violation { message, fixes: vec![without] });
    }
    match &file.iops {
        None if file.throughput.is_some() => {
            let message = format!("{name} limits throughput and not IOPS, so iops cannot be set");
            Err(Violation { message, fixes: vec![without] })
        }
        None => {
            let message = format!("{name} has no limit, so iops cannot be set");
            Err(Violation { message, fixes: vec![without] })
        }
        Some(facts) if facts.provisioned.is_empty() => {
            let message = format!("{name} derives its IOPS from its size, so iops cannot be set");
            let gib = least(SIZE_GIB_MOST, |gib| facts.by_gib.at(gib, 1, 1).is_some_and(|iops| iops >= asked));
            Err(Violation { message, fixes: vec![Request { size_bytes: Some(gib * GIB), ..without }, without] })
        }
        Some(_) => Ok(()),
    }
}

fn refuse_throughput(request: &Request) -> Result<(), Violation> {
    let (file, name) = (request.file, &request.file.name);
    let Some(asked) = request.throughput_mib_per_s else {
        return Ok(());
    };
    let without = Request { throughput_mib_per_s: None, ..*request };
    let Some(facts) = &file.throughput else {
        let message = match file.iops.is_some() || file.instance_store.is_some() {
            true => format!("{name} limits IOPS and not throughput, so throughput cannot be set"),
            false => format!("{name} has no limit, so throughput cannot be set"),
        };
        return Err(Violation { message, fixes: vec![without] });
    };
    if !facts.provisioned.is_empty() {
        return Ok(());
    }
    if !facts.by_gib.is_empty() {
        let message = format!("{name} derives its throughput from its size, so throughput cannot be set");
        let gib = least(SIZE_GIB_MOST, |gib| facts.by_gib.at(gib, 1, 1).is_some_and(|mib_per_s| mib_per_s >= asked));
        return Err(Violation { message, fixes: vec![Request { size_bytes: Some(gib * GIB), ..without }, without] });
    }
    let maximum = facts.by_iops.0.last().and_then(|piece| piece.maximum.as_ref()).map_or(u64::MAX, |fact| fact.value);
    let each = if facts.by_iops.0.len() > 1 { String::new() } else { format!(", {} MiB/s each", facts.ratio_phrase()) };
    let message = format!(
        "{name} derives its throughput from its IOPS{each} up to {} MiB/s, so throughput cannot be set",
        count_phrase(maximum)
    );
    let enough = facts.iops_for(asked.min(maximum));
    let with_iops = Request { iops: Some(request.iops.map_or(enough, |iops| iops.max(enough))), ..without };
    Err(Violation { message, fixes: vec![with_iops, without] })
}

pub(crate) fn refuse_endless_waits(request: &Request) -> Result<(), Violation> {
    let too_much = |what: &str, maximum: u64, asked: u64, fix: Request| {
        let (maximum, asked) = (count_phrase(maximum), count_phrase(asked));
        Err(Violation { message: format!("{what} is at most {maximum}, {asked} asked"), fixes: vec![fix] })
    };
    if let Some(us) = request.service_us.filter(|us| *us > SERVICE_US_MAX) {
        return too_much("service_us", SERVICE_US_MAX, us, Request { service_us: Some(SERVICE_US_MAX), ..*request });
    }
    if let Some(ms) = request.bucket_ms.filter(|ms| *ms > BUCKET_MS_MAX) {
        return too_much("bucket_ms", BUCKET_MS_MAX, ms, Request { bucket_ms: Some(BUCKET_MS_MAX), ..*request });
    }
    Ok(())
}
