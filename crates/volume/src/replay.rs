//! Replays a submit log in virtual time and holds every grant against the recorded one.

use std::collections::BTreeMap;

use crate::instance::Instance;
use crate::io::{Event, IoId, Nanos};
use crate::log::Record;

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
    /// Whether the log ends early because its writer could not keep up.
    pub overflowed: bool,
}

/// Feeds the log's submits and changes to `instance` and compares, up to the first difference.
///
/// A request is named by its id only while it is outstanding, so a grant is compared when it is read and then forgotten.
pub fn replay(instance: &mut Instance, records: impl Iterator<Item = Record>) -> Replay {
    let mut result = Replay::default();
    let mut granted: BTreeMap<IoId, Nanos> = BTreeMap::new();
    let mut events = Vec::new();
    for record in records {
        match record {
            Record::Submit { now, volume, io } => {
                result.submits += 1;
                instance.submit(now, volume, io);
            }
            Record::Change { now, change } => instance.change(now, change),
            Record::Grant { id, done_at } => {
                result.grants += 1;
                match next_grant_of(instance, &mut granted, &mut events, id, done_at) {
                    Some(replayed) if replayed == done_at => result.identical += 1,
                    replayed => {
                        result.first_difference = Some((id, done_at, replayed));
                        break;
                    }
                }
            }
            Record::Overflow => {
                result.overflowed = true;
                break;
            }
        }
    }
    result
}

/// Advances from event to event until `id` is granted. A grant is never later than its `done_at`, so the search ends.
fn next_grant_of(
    instance: &mut Instance,
    granted: &mut BTreeMap<IoId, Nanos>,
    events: &mut Vec<Event>,
    id: IoId,
    done_at: Nanos,
) -> Option<Nanos> {
    while !granted.contains_key(&id) {
        let next = instance.next_event().filter(|next| *next <= done_at)?;
        instance.advance(next.max(instance.now()), events);
        granted.extend(events.drain(..).filter_map(|event| match event {
            Event::Granted { id, done_at } => Some((id, done_at)),
            Event::Done { .. } => None,
        }));
    }
    granted.remove(&id)
}
