//! A server whose calendar is another day's: a library that is loaded before its own (`LD_PRELOAD`) shifts what it takes for the time.
//!
//! The library is part of the engine, which writes it where a server can read it: so it is there wherever the engine is.

#[cfg(test)]
mod preload;

/// The library, an ELF file.
pub const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/shifted.so"));
/// The variable of the environment with the shift in microseconds, negative for the past.
pub const VARIABLE: &str = "CLOCK_SHIFT_US";
