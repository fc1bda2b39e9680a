//! The published rules: which sizes, IOPS and throughputs are sold together.

use crate::units::{GIB, MIB, count_phrase, size_phrase};
use crate::volume::facts::file::VolumeFile;
use crate::volume::facts::limits::{IopsFacts, ProvisionedIops, ProvisionedThroughput, ThroughputFacts};
use crate::volume::request::Request;
use crate::volume::request::keys::{refuse_endless_waits, refuse_init, refuse_keys_that_do_nothing};
use crate::volume::request::violation::Violation;

/// A legal volume, every figure settled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Figures {
    pub size_bytes: u64,
    /// The sustained rate; of reads alone where writes have a limit of their own.
    pub iops: Option<u64>,
    /// Writes, where they have a limit of their own.
    pub write_iops: Option<u64>,
    pub throughput_bytes_per_s: Option<u64>,
    /// I/O units per second, for as long as credits last.
    pub iops_burst: Option<BurstFigures>,
    /// Bytes per second, for as long as credits last.
    pub throughput_burst: Option<BurstFigures>,
}

/// A rate above the baseline and what pays for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BurstFigures {
    pub rate_per_s: u64,
    /// The most credits that are kept.
    pub capacity: u64,
    /// The first balance.
    pub initial: u64,
}

/// Judges a request and fills in the defaults.
pub(crate) fn judge(request: &Request) -> Result<Figures, Violation> {
    let file = request.file;
    refuse_keys_that_do_nothing(request)?;
    refuse_endless_waits(request)?;
    let size_bytes = legal_size(request)?;
    refuse_init(request, size_bytes)?;
    if let Some(store) = request.instance_store() {
        let [reads, writes] = store.read_write_iops.value;
        return Ok(Figures { size_bytes, iops: Some(reads), write_iops: Some(writes), ..Figures::default() });
    }
    let iops = file.iops.as_ref().map(|facts| legal_iops(request, facts, size_bytes)).transpose()?;
    let write_iops = file.iops.as_ref().and_then(|facts| facts.write_by_gib.at(size_bytes, GIB, 1));
    let throughput_bytes_per_s = match &file.throughput {
        Some(facts) => Some(legal_throughput(request, facts, iops.unwrap_or(0), size_bytes)?),
        None => None,
    };
    let settled = Figures { size_bytes, iops, write_iops, throughput_bytes_per_s, ..Figures::default() };
    let (iops_burst, throughput_burst) = (iops_burst(file, &settled), throughput_burst(file, &settled));
    let Some(credits) = request.credits else {
        return Ok(Figures { iops_burst, throughput_burst, ..settled });
    };
    let with = |burst: BurstFigures| legal_credits(request, credits, burst, size_bytes);
    match (iops_burst, throughput_burst) {
        (Some(burst), None) => Ok(Figures { iops_burst: Some(with(burst)?), ..settled }),
        (None, Some(burst)) => Ok(Figures { throughput_burst: Some(with(burst)?), ..settled }),
        _ => Err(no_burst_at(request, size_bytes)),
    }
}

fn iops_burst(file: &VolumeFile, settled: &Figures) -> Option<BurstFigures> {
    let burst = file.iops.as_ref()?.burst.as_ref()?;
    let rate_per_s = burst.by_gib.at(settled.size_bytes, GIB, 1)?;
    let capacity = burst.credits_by_gib.at(settled.size_bytes, GIB, 1)?;
    above_baseline(BurstFigures { rate_per_s, capacity, initial: capacity }, settled.iops)
}

fn throughput_burst(file: &VolumeFile, settled: &Figures) -> Option<BurstFigures> {
    let burst = file.throughput.as_ref()?.burst.as_ref()?;
    let rate_per_s = burst.by_gib.at(settled.size_bytes, GIB, MIB)?;
    let capacity = burst.credits_mib_by_gib.at(settled.size_bytes, GIB, MIB)?;
    above_baseline(BurstFigures { rate_per_s, capacity, initial: capacity }, settled.throughput_bytes_per_s)
}

/// A burst that is no more than the baseline is none.
fn above_baseline(burst: BurstFigures, baseline: Option<u64>) -> Option<BurstFigures> {
    Some(burst).filter(|burst| burst.capacity > 0 && baseline.is_some_and(|baseline| burst.rate_per_s > baseline))
}

fn legal_credits(
    request: &Request,
    credits: u64,
    burst: BurstFigures,
    size_bytes: u64,
) -> Result<BurstFigures, Violation> {
    if credits <= burst.capacity {
        return Ok(BurstFigures { initial: credits, ..burst });
    }
    let most = Request { credits: Some(burst.capacity), ..*request };
    let phrase = |request: &Request| request.credits_key().unwrap_or_default();
    let message = format!(
        "{} of {} keeps at most {}, {} asked",
        request.file.name,
        size_phrase(size_bytes),
        phrase(&most),
        phrase(request)
    );
    Err(Violation { message, fixes: vec![most] })
}

fn no_burst_at(request: &Request, size_bytes: u64) -> Violation {
    let (name, size) = (&request.file.name, size_phrase(size_bytes));
    let message = format!("{name} of {size} has no burst above its baseline, so credits cannot be set");
    Violation { message, fixes: vec![Request { credits: None, ..*request }] }
}

/// The most IOPS that a size allows.
pub(crate) fn iops_allowed(choice: &ProvisionedIops, size_bytes: u64) -> u64 {
    let by_size = u128::from(choice.maximum_per_gib.value) * u128::from(size_bytes) / u128::from(GIB);
    let by_size = u64::try_from(by_size).unwrap_or(u64::MAX);
    by_size.clamp(choice.minimum.value, choice.maximum.value)
}

fn legal_size(request: &Request) -> Result<u64, Violation> {
    let facts = &request.file.size;
    let store_bytes = request.instance_store().map(|store| store.size_bytes());
    let (minimum, maximum) = (facts.minimum_mib.value * MIB, store_bytes.unwrap_or(facts.maximum_mib.value * MIB));
    let Some(asked) = request.size_bytes else {
        return Ok(store_bytes.unwrap_or(facts.default_mib.value * MIB));
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
    let Some(choice) = facts.choice(size_bytes) else {
        return Ok(facts.by_gib.at(size_bytes, GIB, 1).unwrap_or(0).max(1));
    };
    let name = &request.file.name;
    let allowed = iops_allowed(choice, size_bytes);
    let Some(asked) = request.iops else {
        return Ok(choice.default.value.min(allowed));
    };
    let with = |iops| Request { iops: Some(iops), ..*request };
    let (minimum, maximum) = (choice.minimum.value, choice.maximum.value);
    if asked < minimum || asked > maximum {
        let (low, high, asked_phrase) = (count_phrase(minimum), count_phrase(maximum), count_phrase(asked));
        let at = at_size(facts.provisioned.len(), size_bytes);
        let message = format!("{name} has {low} to {high} IOPS{at}, {asked_phrase} asked");
        let next = facts.provisioned.iter().find(|piece| piece.above >= choice.above && asked <= piece.maximum.value);
        let larger = next.filter(|_| asked > maximum).map(|piece| larger(request, piece.above));
        return Err(Violation {
            message,
            fixes: larger.into_iter().chain([with(asked.clamp(minimum, maximum))]).collect(),
        });
    }
    if asked > allowed {
        let per_gib = choice.maximum_per_gib.value;
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

/// Named where what can be chosen depends on the size.
fn at_size(pieces: usize, size_bytes: u64) -> String {
    if pieces > 1 { format!(" at {}", size_phrase(size_bytes)) } else { String::new() }
}

/// The least whole GiB above a threshold.
fn larger(request: &Request, above_gib: u64) -> Request {
    Request { size_bytes: Some((above_gib + 1) * GIB), ..*request }
}

fn legal_throughput(request: &Request, facts: &ThroughputFacts, iops: u64, size_bytes: u64) -> Result<u64, Violation> {
    let Some(choice) = facts.choice(size_bytes) else {
        // Fractions of a MiB/s are kept: io2's 100 IOPS give 25.6 MiB/s.
        let by_size = facts.by_gib.at(size_bytes, GIB, MIB);
        return Ok(by_size.or_else(|| facts.by_iops.at(iops, 1, MIB)).unwrap_or(0).max(1));
    };
    let name = &request.file.name;
    let asked = request.throughput_mib_per_s.unwrap_or(choice.default_mib_per_s.value);
    let with = |mib_per_s| Request { throughput_mib_per_s: Some(mib_per_s), ..*request };
    let (minimum, maximum) = (choice.minimum_mib_per_s.value, choice.maximum_mib_per_s.value);
    if asked < minimum || asked > maximum {
        let (low, high, asked_phrase) = (count_phrase(minimum), count_phrase(maximum), count_phrase(asked));
        let at = at_size(facts.provisioned.len(), size_bytes);
        let message = format!("{name} has {low} to {high} MiB/s{at}, {asked_phrase} asked");
        let fits =
            |piece: &&ProvisionedThroughput| piece.above >= choice.above && asked <= piece.maximum_mib_per_s.value;
        let larger =
            facts.provisioned.iter().find(fits).filter(|_| asked > maximum).map(|piece| larger(request, piece.above));
        return Err(Violation {
            message,
            fixes: larger.into_iter().chain([with(asked.clamp(minimum, maximum))]).collect(),
        });
    }
    let allowed = facts.by_iops.at(iops, 1, 1).unwrap_or(0);
    if asked > allowed {
        let default = if request.iops.is_none() { " (the default)" } else { "" };
        let message = format!(
            "{name} allows {} MiB/s per IOPS: {} IOPS{default} allow at most {} MiB/s, {} asked",
            facts.ratio_phrase(),
            count_phrase(iops),
            count_phrase(allowed),
            count_phrase(asked)
        );
        let faster = Request { iops: Some(facts.iops_for(asked)), ..*request };
        return Err(Violation { message, fixes: vec![faster, with(allowed)] });
    }
    Ok(asked * MIB)
}
