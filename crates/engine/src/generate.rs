//! `generate`: which data set, and how its files are made.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use pgdyno_generate::tpch::Ending;
use pgdyno_generate::{GenerateSpec, Refusal, imdb, tpch};

#[derive(Subcommand)]
pub(crate) enum GenerateCommand {
    /// Seven files in the shape of IMDb's public data sets.
    Imdb {
        /// How much of the public data set; at 1 as many rows.
        #[arg(long)]
        scale: f64,
        /// From which everything derives.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        #[command(flatten)]
        made: Made,
    },
    /// The eight files of TPC-H, byte for byte as dbgen makes them.
    Tpch {
        /// dbgen's scale factor: 0.001 to 1000 in thousandths.
        #[arg(long)]
        scale: f64,
        /// Instead of the data, dbgen's answers to the 22 queries; they are of scale 1.
        #[arg(long)]
        answers: bool,
        /// Instead of the data, what the refresh functions of this number of sets insert and delete, as `dbgen -U` writes it.
        #[arg(long, conflicts_with = "answers")]
        updates: Option<u32>,
        /// Omit the separator behind the last value of a line, which COPY refuses.
        #[arg(long)]
        for_copy: bool,
        /// Replace files that are there; otherwise one of them ends it.
        #[arg(long)]
        overwrite: bool,
        #[command(flatten)]
        made: Made,
    },
}

#[derive(Args)]
pub(crate) struct Made {
    /// The folder; it is made if it is not there.
    #[arg(long)]
    out: PathBuf,
    /// One of the files, as `title.principals` or `lineitem`; all if omitted.
    #[arg(long = "file")]
    files: Vec<String>,
    /// Compress them.
    #[arg(long)]
    gzip: bool,
    /// How many threads make them; as many as there are processors if omitted.
    #[arg(long)]
    threads: Option<usize>,
}

impl GenerateCommand {
    pub(crate) fn spec(self) -> Result<GenerateSpec, Refusal> {
        let (set, scale, seed, overwrite, made) = match self {
            Self::Imdb { scale, seed, made } => (imdb::files(scale, seed)?, scale, Some(seed), true, made),
            Self::Tpch { scale, answers: true, overwrite, made, .. } => {
                (tpch::answers(scale)?, scale, None, overwrite, made)
            }
            Self::Tpch { scale, updates, for_copy, overwrite, made, .. } => {
                let ending = if for_copy { Ending::Value } else { Ending::Separator };
                let set = match updates {
                    Some(sets) => tpch::refresh_files(scale, sets, ending)?,
                    None => tpch::files(scale, ending)?,
                };
                (set, scale, None, overwrite, made)
            }
        };
        let Made { out, files, gzip, threads } = made;
        let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Ok(GenerateSpec { set, scale, seed, out, files, gzip, overwrite, threads: threads.unwrap_or_else(cores) })
    }
}
