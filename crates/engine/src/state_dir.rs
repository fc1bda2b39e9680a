//! The option of all commands that ask a daemon.

use std::path::PathBuf;

#[derive(clap::Args)]
pub(crate) struct StateDir {
    /// Where the daemons keep their sockets.
    #[arg(long, env = "PGDYNO_STATE_DIR", default_value = "/run/pgdyno")]
    pub(crate) state_dir: PathBuf,
}
