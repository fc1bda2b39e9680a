//! Faults on purpose: a volume that pauses, answers late, answers with errors, or is lost.
//!
//! A fault is in force from one instant to another and touches requests that are granted meanwhile; what was granted before
//! ends as it was said. The kinds are those of AWS's Fault Injection Service for EBS (pause, latency on a share of the
//! requests) and those that no service offers and a block device can show (errors, loss).

use crate::io::{ALL_PPM, Effect, Io, Nanos, VolumeFault};
use crate::seed::Stream;

/// What the faults of one instant do to one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hit {
    /// Added to its response time.
    pub added_ns: Nanos,
    /// It ends with an I/O error.
    pub failed: bool,
}

/// The faults of one volume.
#[derive(Clone, Debug)]
pub struct Faults {
    known: Vec<VolumeFault>,
    draws: Stream,
    ordinal: u64,
}

impl Faults {
    /// None; `draws` are for them alone.
    pub(crate) fn new(draws: Stream) -> Self {
        Self { known: Vec::new(), draws, ordinal: 0 }
    }

    /// Adds a fault at `now`, and forgets those that are over.
    pub fn add(&mut self, now: Nanos, fault: VolumeFault) {
        self.known.retain(|known| known.until > now);
        self.known.push(fault);
    }

    /// Ends all of them but a loss.
    pub fn heal(&mut self) {
        self.known.retain(|fault| fault.effect == Effect::Lose);
    }

    /// Those that are in force at `now` or will be.
    pub fn pending(&self, now: Nanos) -> impl Iterator<Item = VolumeFault> + '_ {
        self.known.iter().copied().filter(move |fault| fault.until > now)
    }

    /// Whether the volume is lost.
    pub fn lost(&self) -> bool {
        self.known.iter().any(|fault| fault.effect == Effect::Lose)
    }

    /// The first instant at or after `at` at which no pause is in force; `None` when a pause has no end.
    pub fn granted_at(&self, mut at: Nanos) -> Option<Nanos> {
        let pause = |at| self.known.iter().find(|fault| fault.effect == Effect::Pause && fault.in_force(at));
        while let Some(pause) = pause(at) {
            at = Some(pause.until).filter(|until| *until < Nanos::MAX)?;
        }
        Some(at)
    }

    /// What happens to a request that is granted at `at`. Latencies add up.
    pub fn hit(&mut self, at: Nanos, io: &Io) -> Hit {
        let mut hit = Hit::default();
        if self.known.is_empty() {
            return hit;
        }
        let (draws, ordinal) = (self.draws, &mut self.ordinal);
        self.known.retain(|fault| {
            if !(fault.in_force(at) && fault.concerns(io) && drawn(draws, ordinal, fault.share_ppm)) {
                return true;
            }
            match fault.effect {
                Effect::Pause => true,
                Effect::Latency { added_ns } => {
                    hit.added_ns = hit.added_ns.saturating_add(added_ns);
                    true
                }
                Effect::Error { once, .. } => {
                    hit.failed = true;
                    !once
                }
                Effect::Lose => {
                    hit.failed = true;
                    true
                }
            }
        });
        hit
    }
}

/// Whether a share has this request: one more draw, unless the share has all.
fn drawn(draws: Stream, ordinal: &mut u64, share_ppm: u32) -> bool {
    if share_ppm >= ALL_PPM {
        return true;
    }
    let value = draws.draw(*ordinal);
    *ordinal += 1;
    // The high 64 bits of value x 10^6: uniform over [0, 10^6).
    ((u128::from(value) * u128::from(ALL_PPM)) >> 64) < u128::from(share_ppm)
}
