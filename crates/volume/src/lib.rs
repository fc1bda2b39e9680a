//! The volume model: what a cloud volume does to a request, as a function of time.
//!
//! Time is an argument. Nothing in this crate reads a clock, starts a thread, opens a file, draws from an unseeded
//! generator or iterates in hash order, so the emulator (real clock) and a simulator (virtual clock) run the same code
//! and a log of submits gives the same completions to the nanosecond.
//!
//! ```
//! use pgdyno_volume::*;
//! let mut instance = Instance::new(7);
//! let volume = instance.add_volume(VolumeParams::unlimited(1 << 30));
//! instance.submit(0, volume, Io { id: IoId(1), op: Op::Read, offset: 0, len: 8192 });
//! let mut events = Vec::new();
//! instance.advance(0, &mut events);
//! assert_eq!(events[0], Event::Granted { id: IoId(1), done_at: 0 });
//! ```
//!
//! A request passes the stages of [`stage`] in this order: what the instance can do for all its volumes
//! ([`stage::instance_limit`]), its cost in I/O units ([`stage::split_merge`]), the two limits
//! ([`stage::iops_limit`], [`stage::throughput_limit`]) and what they have in credits ([`stage::burst_credit`]) in the order of
//! the volume ([`stage::queueing`]), of which a degraded one has a part ([`stage::degradation`]), the block of the snapshot that it is the first to touch ([`stage::first_touch`]), the device's
//! own work ([`stage::service_time`]), and what goes wrong on purpose ([`stage::fault`]).

mod array;
mod bucket;
pub mod closed_loop;
mod counters;
mod extents;
mod instance;
mod io;
pub mod log;
mod modification;
mod params;
pub mod replay;
mod restore_credits;
mod seed;
pub mod stage;
mod volume;

pub use array::ArrayParams;
pub use bucket::{CATCH_UP_NS, TokenBucket};
pub use counters::Counters;
pub use extents::{Extents, NoExtents};
pub use instance::Instance;
pub use io::{ALL_PPM, Change, Effect, Event, Io, IoId, IoResult, Nanos, Op, VolumeFault, VolumeId};
pub use modification::{Course, FrequencyRule, ModificationState, Modifications, TooSoon};
pub use params::*;
pub use restore_credits::{RestoreCreditParams, RestoreCredits};
pub use stage::first_touch::Progress;
pub use stage::instance_limit::{BURST_S, InstanceCounters, InstanceLimits, InstanceRate};
