//! Replays a submit log in virtual time and holds every grant against the recorded one.

use std::collections::BTreeMap;

use crate::instance::Instance;
use crate::io::{Event, IoId, Nanos, VolumeId};
use crate::log::{Record, TextReader};

/// What a replay found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replay {
    /// Requests submitted.
    pub submits: u64,
    /// Grants in the log.
    pub grants: u64,
    /// Grants that came out identical, to the nanosecond.
    pub identical: u64,
    /// The grant that differs, where the replay stopped: request, recorded `done_at`, replayed one (`None`: not granted).
    pub first_difference: Option<(IoId, Nanos, Option<Nanos>)>,
    /// Whether a volume was attached, modified or restored that cannot be made here; the replay stopped there.
    pub unknown_volume: bool,
    /// Whether the log ends early because its writer could not keep up.
    pub overflowed: bool,
    /// Whether the log was closed: one that is cut off was not.
    pub closed: bool,
}

/// Feeds the log's submits and changes to `instance` and compares, up to the first difference. Of a log during which
/// volumes were attached or modified see [`replay_with`]; here it ends where one is.
pub fn replay(instance: &mut Instance, records: impl Iterator<Item = Record>) -> Replay {
    replay_with(instance, records, |_, _, _| false)
}

/// What happened to an instance that only its host can repeat: the log has a specification, and the host reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// A volume was attached.
    Attach,
    /// A volume became another.
    Modify {
        /// When.
        now: Nanos,
        /// Which.
        volume: VolumeId,
    },
}

/// The same where volumes were attached and modified while the log was written: `repeat` does that with the specification,
/// and says whether it could.
///
/// A request is named by its id only while it is outstanding, so a grant is compared when it is read and then forgotten.
pub fn replay_with(
    instance: &mut Instance,
    records: impl Iterator<Item = Record>,
    mut repeat: impl FnMut(&mut Instance, Told, &str) -> bool,
) -> Replay {
    let mut result = Replay::default();
    let mut text = TextReader::default();
    let mut granted = Granted::new();
    let mut events = Vec::new();
    let mut records = records;
    while let Some(record) = records.next() {
        match record {
            Record::Submit { now, volume, io } => {
                result.submits += 1;
                instance.submit(now, volume, io);
            }
            Record::Change { now, change } => instance.change(now, change),
            Record::Text { len, bytes } => text.push(len, &bytes),
            Record::Attach { now } | Record::Modify { now, .. } => {
                instance.advance(now, &mut events);
                keep(&mut granted, &mut events);
                let told = match record {
                    Record::Modify { now, volume } => Told::Modify { now, volume },
                    _ => Told::Attach,
                };
                if !repeat(instance, told, &text.take()) {
                    result.unknown_volume = true;
                    break;
                }
            }
            Record::Restore { now, volume } => {
                let Ok(held) = text.take().parse() else {
                    result.unknown_volume = true;
                    break;
                };
                instance.restore(now, volume, &held);
            }
            Record::Grant { id, done_at, failing } => {
                result.grants += 1;
                match next_grant_of(instance, &mut granted, &mut events, id, done_at) {
                    Some(replayed) if replayed == (done_at, failing) => result.identical += 1,
                    replayed => {
                        result.first_difference = Some((id, done_at, replayed.map(|(done_at, _)| done_at)));
                        result.closed = records.any(|record| record == Record::End);
                        break;
                    }
                }
            }
            Record::Overflow => {
                result.overflowed = true;
                break;
            }
            Record::End => {
                result.closed = true;
                break;
            }
        }
    }
    result
}

/// When each granted request ends, and whether with an I/O error.
type Granted = BTreeMap<IoId, (Nanos, bool)>;

/// Advances from event to event until `id` is granted. A grant is never later than its `done_at`, so the search ends.
fn next_grant_of(
    instance: &mut Instance,
    granted: &mut Granted,
    events: &mut Vec<Event>,
    id: IoId,
    done_at: Nanos,
) -> Option<(Nanos, bool)> {
    while !granted.contains_key(&id) {
        let next = instance.next_event().filter(|next| *next <= done_at)?;
        instance.advance(next.max(instance.now()), events);
        keep(granted, events);
    }
    granted.remove(&id)
}

fn keep(granted: &mut Granted, events: &mut Vec<Event>) {
    granted.extend(events.drain(..).filter_map(|event| match event {
        Event::Granted { id, done_at } => Some((id, (done_at, false))),
        Event::Failing { id, done_at } => Some((id, (done_at, true))),
        Event::Done { .. } => None,
    }));
}
