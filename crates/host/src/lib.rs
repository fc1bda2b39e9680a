//! What the parts of the engine that work on a machine share: their error, and small questions to the kernel.

mod fault;
mod kernel;

pub use fault::{Context, Fault, Result};
pub use kernel::{raise_open_files, stdin_ended, timespec};
