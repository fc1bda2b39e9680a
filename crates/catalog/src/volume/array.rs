//! What one attaches: a volume, or an array of equal ones, each perhaps with a synchronous copy in another zone.
//!
//! `[raid10:][Nx]TYPE[:key=value,...][,chunk=SIZE][,multi_az=TIME]`: the figures are those of each member.

use pgdyno_volume::{ArrayParams, Instance, VolumeId};
use serde::Serialize;

use crate::error::SpecError;
use crate::hash::model_hash;
use crate::units::{KIB, MIB, SizeProblem, count_phrase, parse_count, parse_size, quoted, size_key, size_phrase};
use crate::volume::resolved::{Burst, Limits, Resolved};

/// What `mdadm --create` gives without being asked (mdadm(8), `--chunk`: 512 KiB since version 3.1).
const CHUNK_BYTES: u64 = 512 * KIB;
/// A block of a file system on the emulated device, and of PostgreSQL's checksums: 4 KiB at least.
const CHUNK_BYTES_MIN: u64 = 4 * KIB;
/// Above this an array of the usual sizes has no requests to spread.
const CHUNK_BYTES_MAX: u64 = 64 * MIB;
/// No instance type attaches more volumes.
const MEMBERS_MAX: u64 = 128;
/// Zones of one region are a few milliseconds apart at most; beyond 100 ms it is another continent.
const ROUND_TRIP_US_MAX: u64 = 100_000;
const NS_PER_US: u64 = 1_000;

/// A volume, or an array, with every figure settled.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Storage {
    /// As one volume: size, price and limits of the whole. `params` and the accounting are each member's.
    #[serde(flatten)]
    pub total: Resolved,
    /// How it is made up; `None` for a single volume.
    pub array: Option<ArrayFacts>,
}

/// How an array is made up.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ArrayFacts {
    /// Columns, of which each byte is on one.
    pub columns: u16,
    /// Volumes that have the same content: 1 is RAID-0, 2 is RAID-10.
    pub copies: u16,
    /// KiB of one column before the next one's turn.
    pub chunk_kib: u64,
    /// Round trip to the synchronous copies; an assumption, since no provider publishes it.
    pub multi_az_ms: Option<f64>,
    /// Each of the members.
    pub member: Resolved,
    /// What the volume model runs on.
    #[serde(skip)]
    pub params: ArrayParams,
}

/// What is written around the member's specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    raid10: bool,
    members: u64,
    chunk_bytes: Option<u64>,
    round_trip_us: Option<u64>,
}

impl Storage {
    /// Resolves a volume or an array.
    ///
    /// # Errors
    /// What [`Resolved::parse`] refuses of a member; a number of members, a chunk or a round trip that cannot be.
    ///
    /// ```
    /// use pgdyno_catalog::Storage;
    /// let array = Storage::parse("4xgp3:size=500GiB,iops=4000").unwrap();
    /// assert_eq!(array.total.spec, "4xgp3:size=500GiB,iops=4000,throughput=125,chunk=512KiB");
    /// assert_eq!(array.total.limits.iops, Some(16_000));
    /// assert_eq!(Storage::parse("raid10:3xgp3").unwrap_err().remedy, "raid10:4xgp3 or raid10:2xgp3");
    /// ```
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        refuse_unequal(text)?;
        let (layout, member) = read(text)?;
        layout.judge(&member)?;
        let member = Resolved::parse(&member).map_err(|error| SpecError {
            remedy: error.remedy.split(" or ").map(|spec| layout.around(spec)).collect::<Vec<_>>().join(" or "),
            ..error
        })?;
        if layout.is_plain() {
            return Ok(Self { total: member, array: None });
        }
        let layout = Layout { chunk_bytes: layout.chunk(), ..layout };
        let params = layout.params(&member);
        if let Some(rule) = params.broken_rule() {
            let remedy = Layout { chunk_bytes: Some(CHUNK_BYTES_MIN), ..layout }.around(&member.spec);
            return Err(SpecError { message: rule.to_owned(), remedy });
        }
        Ok(Self { total: layout.total(&member, &params), array: Some(layout.facts(member, params)) })
    }

    /// Attaches it to the model of an instance.
    pub fn add_to(&self, instance: &mut Instance) -> VolumeId {
        let params = self.total.params().clone();
        match (&self.array, self.total.volatile) {
            (Some(array), false) => instance.add_array(array.params.clone()),
            (Some(array), true) => instance.add_local_array(array.params.clone()),
            (None, false) => instance.add_volume(params),
            (None, true) => instance.add_local_volume(params),
        }
    }

    /// Each of its volumes: a member of the array, or the volume itself.
    pub fn member(&self) -> &Resolved {
        self.array.as_ref().map_or(&self.total, |array| &array.member)
    }

    /// How it is striped, which a file system on it can be told; `None` where all bytes are in one column.
    pub fn stripes(&self) -> Option<&ArrayFacts> {
        self.array.as_ref().filter(|array| array.columns > 1)
    }

    /// Volumes of the instance: what counts against those that it can attach. Its own disks do not.
    pub fn volumes(&self) -> u32 {
        if self.total.volatile {
            return 0;
        }
        self.array.as_ref().map_or(1, |array| array.params.members())
    }

    /// Fingerprint of the model with these parameters.
    pub fn model_hash(&self) -> u64 {
        self.array.as_ref().map_or_else(|| self.total.model_hash(), |array| model_hash(&array.params))
    }
}

impl Layout {
    pub fn is_plain(&self) -> bool {
        self.members == 1 && self.round_trip_us.is_none()
    }

    /// A single column has no chunks to speak of.
    fn chunk(&self) -> Option<u64> {
        (self.members > 1).then(|| self.chunk_bytes.unwrap_or(CHUNK_BYTES))
    }

    fn judge(&self, member: &str) -> Result<(), SpecError> {
        let refuse = |message: String, fixes: &[Self]| {
            let remedies: Vec<String> = fixes.iter().map(|layout| layout.around(member)).collect();
            Err(SpecError { message, remedy: remedies.join(" or ") })
        };
        let Self { raid10, members, chunk_bytes, round_trip_us } = *self;
        if members == 0 || members > MEMBERS_MAX {
            let message = format!("an array has 1 to {MEMBERS_MAX} volumes, {} asked", count_phrase(members));
            return refuse(message, &[Self { members: members.clamp(1, MEMBERS_MAX), ..*self }]);
        }
        if raid10 && members % 2 == 1 {
            let message = format!(
                "RAID-10 keeps two copies of equal stripes, so its volumes are even in number, {members} asked"
            );
            let fixes = [members + 1, members - 1].map(|members| Self { members, ..*self });
            return refuse(message, if members == 1 { &fixes[..1] } else { &fixes });
        }
        if members == 1 && chunk_bytes.is_some() {
            return refuse("a single volume has no chunks".to_owned(), &[Self { chunk_bytes: None, ..*self }]);
        }
        if let Some(bytes) = chunk_bytes.filter(|bytes| !legal_chunk(*bytes)) {
            let (low, high) = (size_phrase(CHUNK_BYTES_MIN), size_phrase(CHUNK_BYTES_MAX));
            let message = format!("a chunk is a power of two from {low} to {high}, {} asked", size_phrase(bytes));
            return refuse(message, &[Self { chunk_bytes: Some(nearest_chunk(bytes)), ..*self }]);
        }
        if let Some(us) = round_trip_us.filter(|us| *us == 0 || *us > ROUND_TRIP_US_MAX) {
            let message = format!(
                "multi_az is a round trip of 0.001 ms to {} ms, {} ms asked",
                ROUND_TRIP_US_MAX / 1000,
                in_ms(us)
            );
            return refuse(message, &[Self { round_trip_us: Some(us.clamp(1, ROUND_TRIP_US_MAX)), ..*self }]);
        }
        Ok(())
    }

    fn params(&self, member: &Resolved) -> ArrayParams {
        let copies = if self.raid10 { 2 } else { 1 };
        ArrayParams {
            columns: u16::try_from(self.members).unwrap_or(u16::MAX) / copies,
            copies,
            // One column of chunks: any size will do, and the smallest leaves nothing unused at the end.
            chunk_bytes: self.chunk_bytes.unwrap_or(CHUNK_BYTES_MIN),
            remote_round_trip_ns: self.round_trip_us.map(|us| us * NS_PER_US),
            member: member.params().clone(),
        }
    }

    /// The specification of such an array of `member`.
    pub fn around(&self, member: &str) -> String {
        let level = if self.raid10 { "raid10:" } else { "" };
        let count = if self.members == 1 { String::new() } else { format!("{}x", self.members) };
        let chunk = self.chunk_bytes.map(|bytes| format!("chunk={}", size_key(bytes)));
        let multi_az = self.round_trip_us.map(|us| format!("multi_az={}ms", in_ms(us)));
        let keys: Vec<String> = chunk.into_iter().chain(multi_az).collect();
        let separator = match (keys.is_empty(), member.contains(':')) {
            (true, _) => "",
            (false, true) => ",",
            (false, false) => ":",
        };
        format!("{level}{count}{member}{separator}{}", keys.join(","))
    }

    fn title(&self, member: &str) -> String {
        let level = if self.raid10 { "RAID-10" } else { "RAID-0" };
        let array = if self.members == 1 { String::new() } else { format!("{level} of {}, each ", self.members) };
        let away = self.round_trip_us.map(|us| format!(", multi-AZ {} ms away", in_ms(us)));
        format!("{array}{member}{}", away.unwrap_or_default())
    }

    /// The whole as one volume. Nothing is published on how long an array lasts.
    fn total(&self, member: &Resolved, params: &ArrayParams) -> Resolved {
        let columns = u64::from(params.columns);
        let bought = self.members * if self.round_trip_us.is_some() { 2 } else { 1 };
        let mut total = member.clone();
        total.spec = self.around(&member.spec);
        total.title = self.title(&member.title);
        total.size_bytes = params.size_bytes();
        let times = |each: Option<u64>| each.map(|each| each * columns);
        let times_f64 = |each: Option<f64>| each.map(|each| each * columns as f64);
        total.limits = Limits {
            iops: times(member.limits.iops),
            write_iops: times(member.limits.write_iops),
            throughput_mib_per_s: times_f64(member.limits.throughput_mib_per_s),
        };
        total.burst = member.burst.map(|each| Burst {
            iops: times(each.iops),
            io_credits: times(each.io_credits),
            io_credits_initial: times(each.io_credits_initial),
            throughput_mib_per_s: times_f64(each.throughput_mib_per_s),
            throughput_credits_bytes: times(each.throughput_credits_bytes),
            throughput_credits_initial_bytes: times(each.throughput_credits_initial_bytes),
        });
        total.usd_per_month = member.usd_per_month.map(|usd| (usd * bought as f64 * 100.0).round() / 100.0);
        total.prices = member.prices.as_ref().map(|each| each.of_array(bought, columns));
        total.durability = None;
        total.annual_failure_rate_percent = None;
        total.model_hash = format!("{:016x}", model_hash(params));
        total
    }

    fn facts(&self, member: Resolved, params: ArrayParams) -> ArrayFacts {
        ArrayFacts {
            columns: params.columns,
            copies: params.copies,
            chunk_kib: params.chunk_bytes / KIB,
            multi_az_ms: self.round_trip_us.map(|us| us as f64 / 1000.0),
            member,
            params,
        }
    }
}

/// Volumes that are written one by one, as `gp3+gp2`, need not be equal.
fn refuse_unequal(text: &str) -> Result<(), SpecError> {
    let Some((first, _)) = text.split_once('+') else { return Ok(()) };
    let message = "the volumes of an array are equal, as its stripes are: write how many, and one of them".to_owned();
    let each = text.split('+').filter_map(|one| read(one).ok()).map(|(layout, _)| layout.members);
    let members = each.fold(0, u64::saturating_add);
    // An even number, so that it is one of RAID-10 too.
    let members = members.clamp(2, MEMBERS_MAX).next_multiple_of(2);
    let meant = read(first).map(|(layout, member)| Layout { members, ..layout }.around(&member));
    let remedy = meant.ok().filter(|spec| Storage::parse(spec).is_ok()).unwrap_or_else(|| "2xgp3".to_owned());
    Err(SpecError { message, remedy })
}

/// Takes what is about the array out of a specification; what is left is a member's.
pub(crate) fn read(text: &str) -> Result<(Layout, String), SpecError> {
    let text = text.trim();
    let (raid10, text) = match text.split_once(':') {
        Some((level, rest)) if level.trim().eq_ignore_ascii_case("raid10") => (true, rest.trim()),
        Some((level, rest)) if level.trim().eq_ignore_ascii_case("raid0") => (false, rest.trim()),
        _ => (false, text),
    };
    let (members, text) = match text.split_once(['x', 'X']) {
        Some((count, rest)) if parse_count(count.trim()).is_some() => (parse_count(count.trim()), rest.trim()),
        _ => (None, text),
    };
    let mut layout = Layout { raid10, members: members.unwrap_or(1), chunk_bytes: None, round_trip_us: None };
    let (name, keys) = text.split_once(':').map_or((text, None), |(name, keys)| (name, Some(keys)));
    let mut kept: Vec<&str> = Vec::new();
    let (mut problem, mut given) = (None, Vec::new());
    for part in keys.into_iter().flat_map(|keys| keys.split(',')) {
        let (key, value) = part.split_once('=').map_or((part, ""), |(key, value)| (key, value));
        let (key, value) = (key.trim().to_ascii_lowercase(), value.trim());
        let read = match key.as_str() {
            "chunk" => layout.read_chunk(value),
            "multi_az" => layout.read_round_trip(value),
            _ => {
                kept.push(part);
                continue;
            }
        };
        let twice = given.contains(&key).then(|| format!("{key} is given twice"));
        problem = problem.or(read.err()).or(twice);
        given.push(key);
    }
    let separator = if kept.is_empty() { "" } else { ":" };
    let member = format!("{name}{separator}{}", kept.join(","));
    match problem {
        Some(message) => Err(SpecError { message, remedy: layout.around(&member) }),
        None => Ok((layout, member)),
    }
}

impl Layout {
    fn read_chunk(&mut self, value: &str) -> Result<(), String> {
        let read = parse_size(value);
        let meant = |bad: &SizeProblem| bad.meant_bytes.map(nearest_chunk);
        self.chunk_bytes = read.as_ref().map_or_else(meant, |bytes| Some(*bytes));
        read.map(drop).map_err(|bad| format!("chunk={}: {}", quoted(value), bad.problem))
    }

    /// `1ms`, `0.5ms` or `500us`, kept in whole microseconds.
    fn read_round_trip(&mut self, value: &str) -> Result<(), String> {
        let lower = value.to_ascii_lowercase();
        let us = match lower.strip_suffix("ms") {
            Some(ms) => thousandths(ms.trim()),
            None => lower.strip_suffix("us").and_then(|us| parse_count(us.trim())),
        };
        self.round_trip_us = us;
        us.map(drop).ok_or_else(|| format!("multi_az={}: write a round trip such as multi_az=1.0ms", quoted(value)))
    }
}

/// A decimal number with up to three places, in thousandths.
fn thousandths(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    if part.is_empty() || part.len() > 3 {
        return None;
    }
    let scale = 10u64.pow(3 - u32::try_from(part.len()).ok()?);
    Some(parse_count(whole)?.saturating_mul(1000).saturating_add(parse_count(part)? * scale))
}

fn in_ms(us: u64) -> String {
    let places = format!("{:03}", us % 1000);
    let places = places.trim_end_matches('0');
    format!("{}.{}", us / 1000, if places.is_empty() { "0" } else { places })
}

/// The largest chunk that can be, and is not above `bytes`; else the smallest.
fn nearest_chunk(bytes: u64) -> u64 {
    let near = bytes.clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX);
    if near.is_power_of_two() { near } else { near.next_power_of_two() / 2 }
}

fn legal_chunk(bytes: u64) -> bool {
    (CHUNK_BYTES_MIN..=CHUNK_BYTES_MAX).contains(&bytes) && bytes.is_power_of_two()
}
