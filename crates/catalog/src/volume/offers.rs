//! What could be bought instead of a volume: a ladder of specifications rather than all of them.
//!
//! For the same type more IOPS, more throughput, both, or more GiB where the limits follow from the size; of every other type
//! of the provider a single volume of the same capacity with as many IOPS and as much throughput, and more.

use crate::error::SpecError;
use crate::units::{GIB, MIB};
use crate::volume::array::{Layout, Storage, read};
use crate::volume::facts::file::{VolumeFile, catalog};
use crate::volume::request::Request;
use crate::volume::request::rules::judge;
use crate::volume::twin::twin_path;

/// The volumes of the ladder beside `spec`; `steps` are multiples of what it has.
///
/// Empty for a volume that is not sold, such as a twin, that has no limit on IOPS, or whose blocks still come from a snapshot: another one
/// would wait for them as well. What the provider's rules refuse is left out.
///
/// # Errors
/// What [`Storage::parse`] refuses.
pub fn beside(spec: &str, steps: &[f64]) -> Result<Vec<Storage>, SpecError> {
    if twin_path(spec).is_some() {
        return Ok(Vec::new());
    }
    let here = Storage::parse(spec)?;
    if here.member().params().first_touch.is_some() {
        return Ok(Vec::new());
    }
    if here.total.usd_per_month.is_none() || here.total.limits.iops.is_none() {
        return Ok(Vec::new());
    }
    let files = catalog()?;
    let (layout, member) = read(&here.total.spec)?;
    let request = Request { credits: None, init: None, degraded: None, ..Request::parse(&member, files)? };
    let mut specs: Vec<String> =
        same_type(&request, steps).iter().map(|more| layout.around(&more.to_string())).collect();
    for file in files.iter().filter(|file| replaces(file, request.file, &layout)) {
        specs.extend(other_type(file, &here, steps).iter().map(Request::to_string));
    }
    let mut found: Vec<Storage> = Vec::new();
    for storage in specs.iter().filter_map(|spec| Storage::parse(spec).ok()) {
        if !found.iter().any(|known| known.total.spec == storage.total.spec) {
            found.push(storage);
        }
    }
    Ok(found)
}

/// Whether a type is for sale by the same provider, keeps its content, and can take the place of such a volume or array.
fn replaces(file: &VolumeFile, here: &VolumeFile, layout: &Layout) -> bool {
    let sold = file.until.is_none() && file.price.is_some() && !file.volatile.as_ref().is_some_and(|fact| fact.value);
    let limited = file.iops.is_some() || file.throughput.is_some();
    // RDS makes its stripes itself: its volumes do not replace an array, and no array is made of them by hand.
    let by_hand = layout.is_plain() || !file.name.starts_with("rds-");
    sold && limited && by_hand && file.provider == here.provider && file.name != here.name
}

fn same_type(request: &Request, steps: &[f64]) -> Vec<Request> {
    let (iops, throughput) = (request.iops, request.throughput_mib_per_s);
    let mut all = Vec::new();
    for &step in steps {
        let (more_iops, more_throughput) = (iops.map(|iops| times(iops, step)), throughput.map(|mib| times(mib, step)));
        if iops.is_none() && throughput.is_none() {
            all.push(Request { size_bytes: request.size_bytes.map(|bytes| larger(bytes, step)), ..*request });
        }
        if iops.is_some() {
            all.push(Request { iops: more_iops, ..*request });
        }
        if throughput.is_some() {
            all.push(Request { throughput_mib_per_s: more_throughput, ..*request });
        }
        if iops.is_some() && throughput.is_some() {
            all.push(Request { iops: more_iops, throughput_mib_per_s: more_throughput, ..*request });
        }
    }
    all
}

fn other_type(file: &'static VolumeFile, here: &Storage, steps: &[f64]) -> Vec<Request> {
    let limits = here.total.limits;
    let base = Request { size_bytes: Some(here.total.size_bytes), ..Request::new(file) };
    let mut all = vec![base];
    let Some(choice) = file.iops.as_ref().and_then(|facts| facts.provisioned.first()) else { return all };
    let throughput = file.throughput.as_ref().and_then(|facts| facts.provisioned.first());
    for step in [1.0].iter().chain(steps) {
        let wanted = limits.iops.map(|iops| times(iops, *step).max(choice.minimum.value));
        let faster = Request { iops: wanted, ..base };
        all.push(faster);
        if let Some((choice, mib_per_s)) = throughput.zip(limits.throughput_mib_per_s) {
            let wanted = ((mib_per_s * step).ceil() as u64).max(choice.minimum_mib_per_s.value);
            all.push(Request { throughput_mib_per_s: Some(wanted), ..faster });
        }
    }
    all.into_iter().filter(|request| judge(request).is_ok()).collect()
}

fn times(count: u64, step: f64) -> u64 {
    (count as f64 * step).ceil() as u64
}

/// In whole GiB if it is in whole GiB now, else in whole MiB.
fn larger(bytes: u64, step: f64) -> u64 {
    let unit = if bytes.is_multiple_of(GIB) { GIB } else { MIB };
    times(bytes / unit, step) * unit
}
