//! The emulated volume: the model of `pgdyno-volume` under the real clock, behind a block device.
//!
//! ```text
//! ext4 or xfs -> /dev/loopN -> FUSE file -> pipeline (model, store) -> release thread -> reply
//! ```
//!
//! A FUSE file system exports one file; a loop device with direct I/O stands on it. A request is submitted to the model
//! under one lock, its data is moved at once, and the answer goes out at the later of the modelled instant and the end
//! of the data's way. The process is in the write-back path of the file system above it, so it never waits for memory:
//! see [`precautions`].

mod alarm;
mod attached;
mod calibrate;
mod clock;
mod control;
mod core;
mod error;
mod file_system;
mod follow;
mod fs;
mod instance_dir;
mod loop_device;
mod minutes;
mod modify;
mod overhead;
mod pipeline;
mod precautions;
mod release;
mod serve;
mod specification;
mod state_dir;
mod stats;
mod store;
mod submit_log;
mod work_queue;

pub use calibrate::measure_path;
pub use control::{detach, list, request};
pub use error::EmulateError;
pub use file_system::FileSystem;
pub use serve::{ServeSpec, serve};
pub use specification::resolve;
pub use submit_log::{LogHeader, read_log, write_header};
