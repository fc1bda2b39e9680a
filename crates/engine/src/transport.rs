//! Commands that measure how requests of a volume arrive.

use std::path::PathBuf;

use clap::Subcommand;
use serde_json::Value;

use crate::failure::Failure;
use crate::state_dir::StateDir;

#[derive(Subcommand)]
pub(crate) enum TransportCommand {
    /// What the daemon spends on a request by /dev/fuse and over io_uring, on this machine.
    MeasureTransports(StateDir),
    /// Its helper: what requests to devices cost the process that asks.
    #[command(hide = true)]
    DriveDevices {
        /// The block devices.
        devices: Vec<PathBuf>,
    },
}

impl TransportCommand {
    pub(crate) fn run(self) -> Result<Value, Failure> {
        Ok(match self {
            Self::MeasureTransports(at) => pgdyno_emulate::measure_transports(&at.state_dir)?,
            Self::DriveDevices { devices } => pgdyno_emulate::drive_devices(&devices)?,
        })
    }
}
