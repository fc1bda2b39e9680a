//! What the parts of the engine that work on a machine share: their error, threads that work together, and small questions to
//! the kernel.

mod crew;
mod fault;
mod kernel;

pub use crew::{Crew, crew};
pub use fault::{Context, Fault, Result};
pub use kernel::{raise_open_files, stdin_ended, timespec};
