//! The emulated volume: the model of `pgdyno-volume` under the real clock, behind a block device.
//!
//! ```text
//! ext4 or xfs -> /dev/loopN -> FUSE file -> pipeline (model, store) -> release thread -> reply
//! ```
//!
//! A FUSE file system exports one file; a loop device with direct I/O stands on it. A request is submitted to the model
//! under one lock (`core`), its data is moved at once (`pipeline`), and the answer goes out at the later of the modelled
//! instant and the end of the data's way: by the thread that moved the data, or by the release thread (`release`,
//! `slots`). The process is in the write-back path of the file system above it, so it never waits for memory:
//! see [`precautions`].

mod alarm;
mod ask;
mod attached;
mod calibrate;
mod claims;
mod client;
mod clock;
mod command;
mod control;
mod conversations;
mod core;
mod descriptors;
mod failure;
mod fault;
mod file_system;
mod follow;
mod fs;
mod host;
mod instance_dir;
mod lane;
mod last_words;
mod log_buffer;
mod log_state;
mod loop_device;
mod minutes;
mod modify;
mod overhead;
mod pipeline;
mod precautions;
mod release;
mod restored;
mod serve;
mod slots;
mod snapshot;
mod spec;
mod state_dir;
mod stats;
mod store;
mod submit_log;
mod wait;
mod work_queue;
mod write_log;

pub use calibrate::measure_path;
pub use client::{detach, list, request};
pub use file_system::FileSystem;
pub use host::check_host;
pub use serve::serve;
pub use spec::{ServeSpec, resolve};
pub use store::{Collected, Collection, Stored, collect, stored_bytes};
pub use submit_log::{LogHeader, read_log, write_header};
pub use write_log::read_write_log;
