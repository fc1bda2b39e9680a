//! The published rules: which sizes, IOPS and throughputs can be had together.

use crate::file::{IopsFacts, ThroughputFacts};
use crate::request::Request;
use crate::units::{GIB, MIB, count_phrase, size_phrase};

/// A legal volume, every figure settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Figures {
    pub size_bytes: u64,
    pub iops: Option<u64>,
    pub throughput_bytes_per_s: Option<u64>,
}

/// A rule that a request breaks, and requests that keep it, the one nearest to what was wanted first.
/// A fix may break another rule; `remedy` follows the chain to its end.
#[derive(Debug)]
pub(crate) struct Violation {
    pub message: String,
    pub fixes: Vec<Request>,
}

/// Judges a request and fills in the defaults.
pub(crate) fn judge(request: &Request) -> Result<Figures, Violation> {
    let file = request.file;
    refuse_keys_that_do_nothing(request)?;
    refuse_endless_waits(request)?;
    let size_bytes = legal_size(request)?;
    let iops = file.iops.as_ref().map(|facts| legal_iops(request, facts, size_bytes)).transpose()?;
    let throughput_bytes_per_s = match (&file.throughput, iops) {
        (Some(facts), Some(iops)) => Some(legal_throughput(request, facts, iops)?),
        _ => None,
    };
    Ok(Figures { size_bytes, iops, throughput_bytes_per_s })
}

/// A request that takes longer than this is taken for lost by the programs that wait for it.
const SERVICE_US_MAX: u64 = 10_000_000;

/// No provider saves up more than a day, and most less than an hour.
const BUCKET_MS_MAX: u64 = 86_400_000;

/// The most IOPS that a size allows.
pub(crate) fn iops_allowed(facts: &IopsFacts, size_bytes: u64) -> u64 {
    let by_size = u128::from(facts.maximum_per_gib.value) * u128::from(size_bytes) / u128::from(GIB);
    let by_size = u64::try_from(by_size).unwrap_or(u64::MAX);
    by_size.clamp(facts.minimum.value, facts.maximum.value)
}

fn refuse_keys_that_do_nothing(request: &Request) -> Result<(), Violation> {
    let name = &request.file.name;
    if request.file.iops.is_none() && request.iops.is_some() {
        let message = format!("{name} has no limit, so iops cannot be set");
        return Err(Violation { message, fixes: vec![Request { iops: None, ..*request }] });
    }
    if request.file.iops.is_none() && request.bucket_ms.is_some() {
        let message = format!("{name} has no limit, so it has no bucket and bucket_ms cannot be set");
        return Err(Violation { message, fixes: vec![Request { bucket_ms: None, ..*request }] });
    }
    let Some(asked) = request.throughput_mib_per_s else {
        return Ok(());
    };
    let without = Request { throughput_mib_per_s: None, ..*request };
    let Some(facts) = &request.file.throughput else {
        let message = format!("{name} has no limit, so throughput cannot be set");
        return Err(Violation { message, fixes: vec![without] });
    };
    if facts.provisioned.is_some() {
        return Ok(());
    }
    let maximum = facts.maximum_mib_per_s.value;
    let message = format!(
        "{name} derives its throughput from its IOPS, {} MiB/s each up to {} MiB/s, so throughput cannot be set",
        ratio_phrase(facts),
        count_phrase(maximum)
    );
    let enough = iops_for(facts, asked.min(maximum));
    let with_iops = Request { iops: Some(request.iops.map_or(enough, |iops| iops.max(enough))), ..without };
    Err(Violation { message, fixes: vec![with_iops, without] })
}

fn refuse_endless_waits(request: &Request) -> Result<(), Violation> {
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

fn legal_size(request: &Request) -> Result<u64, Violation> {
    let facts = &request.file.size;
    let (minimum, maximum) = (facts.minimum_mib.value * MIB, facts.maximum_mib.value * MIB);
    let Some(asked) = request.size_bytes else {
        return Ok(facts.default_mib.value * MIB);
    };
    let with = |bytes| Request { size_bytes: Some(bytes), ..*request };
    let name = &request.file.name;
    if asked < minimum || asked > maximum {
        let (low, high) = (size_phrase(minimum), size_phrase(maximum));
        let message = format!("{name} has sizes from {low} to {high}, {} asked", size_phrase(asked));
        return Err(Violation { message, fixes: vec![with(asked.clamp(minimum, maximum))] });
    }
    if !asked.is_multiple_of(MIB) {
        let message = format!("{name}: a size is a multiple of 1 MiB, {} asked", size_phrase(asked));
        let down = asked - asked % MIB;
        return Err(Violation { message, fixes: vec![with(down + MIB), with(down)] });
    }
    Ok(asked)
}

fn legal_iops(request: &Request, facts: &IopsFacts, size_bytes: u64) -> Result<u64, Violation> {
    let name = &request.file.name;
    let allowed = iops_allowed(facts, size_bytes);
    let Some(asked) = request.iops else {
        return Ok(facts.default.value.min(allowed));
    };
    let with = |iops| Request { iops: Some(iops), ..*request };
    let (minimum, maximum) = (facts.minimum.value, facts.maximum.value);
    if asked < minimum || asked > maximum {
        let (low, high, asked_phrase) = (count_phrase(minimum), count_phrase(maximum), count_phrase(asked));
        let message = format!("{name} has {low} to {high} IOPS, {asked_phrase} asked");
        return Err(Violation { message, fixes: vec![with(asked.clamp(minimum, maximum))] });
    }
    if asked > allowed {
        let per_gib = facts.maximum_per_gib.value;
        let always =
            if allowed == minimum { format!(" and {} at any size", count_phrase(minimum)) } else { String::new() };
        let default = if request.size_bytes.is_none() { " (the default size)" } else { "" };
        let message = format!(
            "{name} allows {} IOPS per GiB{always}: {}{default} allows at most {} IOPS, {} asked",
            count_phrase(per_gib),
            size_phrase(size_bytes),
            count_phrase(allowed),
            count_phrase(asked)
        );
        let larger = Request { size_bytes: Some(asked.div_ceil(per_gib) * GIB), ..*request };
        return Err(Violation { message, fixes: vec![larger, with(allowed)] });
    }
    Ok(asked)
}

fn legal_throughput(request: &Request, facts: &ThroughputFacts, iops: u64) -> Result<u64, Violation> {
    let ratio = facts.mib_per_s_per_1000_iops.value;
    let maximum = facts.maximum_mib_per_s.value;
    let Some(own) = &facts.provisioned else {
        // Fractions of a MiB/s are kept: 100 IOPS give 25.6 MiB/s.
        return Ok((iops * ratio * MIB / 1000).min(maximum * MIB));
    };
    let name = &request.file.name;
    let asked = request.throughput_mib_per_s.unwrap_or(own.default_mib_per_s.value);
    let with = |mib_per_s| Request { throughput_mib_per_s: Some(mib_per_s), ..*request };
    let minimum = own.minimum_mib_per_s.value;
    if asked < minimum || asked > maximum {
        let (low, high, asked_phrase) = (count_phrase(minimum), count_phrase(maximum), count_phrase(asked));
        let message = format!("{name} has {low} to {high} MiB/s, {asked_phrase} asked");
        return Err(Violation { message, fixes: vec![with(asked.clamp(minimum, maximum))] });
    }
    let allowed = iops * ratio / 1000;
    if asked > allowed {
        let default = if request.iops.is_none() { " (the default)" } else { "" };
        let message = format!(
            "{name} allows {} MiB/s per IOPS: {} IOPS{default} allow at most {} MiB/s, {} asked",
            ratio_phrase(facts),
            count_phrase(iops),
            count_phrase(allowed),
            count_phrase(asked)
        );
        let faster = Request { iops: Some(iops_for(facts, asked)), ..*request };
        return Err(Violation { message, fixes: vec![faster, with(allowed)] });
    }
    Ok(asked * MIB)
}

/// The least IOPS that carry a throughput.
fn iops_for(facts: &ThroughputFacts, mib_per_s: u64) -> u64 {
    (mib_per_s * 1000).div_ceil(facts.mib_per_s_per_1000_iops.value)
}

fn ratio_phrase(facts: &ThroughputFacts) -> String {
    let thousandths = facts.mib_per_s_per_1000_iops.value;
    format!("{}.{:03}", thousandths / 1000, thousandths % 1000).trim_end_matches('0').to_owned()
}
