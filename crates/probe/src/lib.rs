//! Samples a Linux host while something is measured: block devices, CPU time by role, memory, and the counters of
//! emulated volumes.
//!
//! The probe disturbs what it watches as little as it can: every file stays open and is read again from its start,
//! buffers are reused, a sample is one line of JSON written in one go, and nothing is compressed or interpreted.
//! Counters are cumulative, so a sample that is lost costs resolution and no truth.
//!
//! ```text
//! spec -> sampler (absolute deadlines) -> disk | role (cgroup, process, family) | host | volume -> sample -> JSON line
//! ```

mod cgroup;
mod disk;
mod family;
mod host;
mod kept;
mod process;
mod role;
mod sample;
mod sampler;
mod spec;
mod stop;
mod volume;

pub use sample::{Cpu, Disk, Gap, Memory, Sample, Volume};
pub use spec::{DeviceSpec, ProbeSpec, RoleSpec, VolumeSpec};

/// Samples until SIGTERM, SIGINT or the end of standard input, then takes a last sample and returns.
///
/// Prints `{"ready":{}}` on standard output when the first sample has been written. Something that cannot be read
/// (a process that ended, a cgroup that was removed) is a gap in the samples and not an error; only an output that
/// cannot be written, or a specification that makes no sense, is.
pub fn run(spec: ProbeSpec) -> pgdyno_host::Result<()> {
    sampler::run(&spec)
}
