//! What an ideal host would have made of recorded requests.
//!
//! A recorded arrival carries the host's own delays: whoever was answered late asks again late. Here the same requests
//! are submitted as one program with a fixed number of requests outstanding would submit them if it, the path and the
//! machine took no time at all. What comes out is the model's own prediction of rate and latency, to hold a measurement
//! against.

use crate::instance::Instance;
use crate::io::{Event, Io, IoId, Nanos};
use crate::log::{Record, TextReader};

/// Submits the log's requests in their order, each at the instant at which one of `depth` outstanding ones completes;
/// `emit` gets what a log of that run would hold. Requests are named by their ordinal.
///
/// The first request and every change before it keep their instants; a later change applies when it is reached. Pauses
/// in the recording are closed. Panics when `depth` is zero.
pub fn closed_loop(
    instance: &mut Instance,
    records: impl Iterator<Item = Record>,
    depth: usize,
    mut emit: impl FnMut(Record),
) {
    assert!(depth > 0, "a closed loop has at least one request outstanding");
    let mut host = Host { now: 0, outstanding: 0, events: Vec::with_capacity(2 * depth) };
    let (mut ordinal, mut text) = (0, TextReader::default());
    for record in records {
        match record {
            Record::Submit { now, volume, io } => {
                if ordinal == 0 {
                    host.now = host.now.max(now);
                }
                while host.outstanding >= depth && host.step(instance, &mut emit) {}
                let io = Io { id: IoId(ordinal), ..io };
                ordinal += 1;
                host.outstanding += 1;
                instance.submit(host.now, volume, io);
                emit(Record::Submit { now: host.now, volume, io });
            }
            Record::Change { now, change } => {
                if ordinal == 0 {
                    host.now = host.now.max(now);
                }
                instance.change(host.now, change);
                emit(Record::Change { now: host.now, change });
            }
            Record::Text { len, bytes } => text.push(len, &bytes),
            Record::Restore { now, volume } => {
                let text = text.take();
                let Ok(held) = text.parse() else { break };
                if ordinal == 0 {
                    host.now = host.now.max(now);
                }
                instance.restore(host.now, volume, &held);
                Record::text(&text).for_each(&mut emit);
                emit(Record::Restore { now: host.now, volume });
            }
            Record::Grant { .. } => {}
            // A volume that came later, or became another, is not there: what follows is of other volumes.
            Record::Attach { .. } | Record::Modify { .. } | Record::Overflow | Record::End => break,
        }
    }
    while host.outstanding > 0 && host.step(instance, &mut emit) {}
}

/// The host that takes no time.
struct Host {
    now: Nanos,
    outstanding: usize,
    events: Vec<Event>,
}

impl Host {
    /// Goes to the next event; `false` when there is none.
    fn step(&mut self, instance: &mut Instance, emit: &mut impl FnMut(Record)) -> bool {
        let Some(next) = instance.next_event() else { return false };
        self.now = self.now.max(next);
        instance.advance(self.now, &mut self.events);
        for event in self.events.drain(..) {
            if let Some(grant) = Record::of_event(&event) {
                emit(grant);
            }
            if matches!(event, Event::Done { .. }) {
                self.outstanding -= 1;
            }
        }
        true
    }
}
