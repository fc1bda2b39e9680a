//! `pgdyno-engine`: everything that stands on the I/O path, as one binary.
//!
//! A JSON document comes in on standard input where a command needs one, one JSON document goes out on standard output.
//! An error that the user can correct is `{"error": {"message", "remedy"}}` on standard error, with exit code 2;
//! 1 if the command had begun to do what it was asked, 3 if the machine is at fault (`"of_host": true`).

mod catalog;
mod child;
mod crash;
mod failure;
mod generate;
mod replay;
mod shifted;
mod snapshot;
mod state_dir;
mod stdin;

use std::ffi::OsString;
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use failure::Failure;
use pgdyno_catalog::InstanceType;
use serde_json::{Value, json};
use state_dir::StateDir;
use stdin::from_stdin;

#[derive(Parser)]
#[command(
    name = "pgdyno-engine",
    version,
    about = "The part of pgdyno that stands on the I/O path. JSON in, JSON out."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Version and build hash.
    Version,
    /// Emulated volumes.
    #[command(subcommand)]
    Volume(VolumeCommand),
    /// Instance types.
    #[command(subcommand)]
    Instance(InstanceCommand),
    /// Answers questions to the catalogue, one JSON document a line, until standard input ends.
    Catalog,
    /// Drives a PostgreSQL server; reads its specification from standard input, writes JSON lines.
    Drive {
        /// Connect to nothing: say what would be driven, or what is wrong with it.
        #[arg(long)]
        check: bool,
    },
    /// Connects and logs in once, as the other commands would; reads its specification from standard input.
    Connect,
    /// Cuts files into chunks of whole rows, as COPY sees them; reads its specification from standard input, writes JSON lines.
    Plan,
    /// Finds the types that return every value of files as it is; reads its specification from standard input, writes JSON lines.
    Types,
    /// Loads files into a table, each chunk once; reads its specification from standard input, writes JSON lines.
    Load,
    /// Fills a PostgreSQL server with a workload's tables; reads its specification from standard input, writes JSON
    /// lines.
    Fill,
    /// Makes data sets as files; writes JSON lines.
    #[command(subcommand)]
    Generate(generate::GenerateCommand),
    /// What an application asked a server, read from its logs or relayed; reads its specification from standard input.
    #[command(subcommand)]
    Capture(CaptureCommand),
    /// Samples the host; reads its specification from standard input.
    Probe,
    /// Relays TCP with a delay, so that clients are at a distance; reads its specification from standard input.
    Relay,
    /// Writes the library that shifts the clock of a program which loads it, and says by which variable.
    Shifted {
        /// The file.
        #[arg(long)]
        output: PathBuf,
    },
    /// Executes a program with no signal blocked or ignored (an ignored SIGHUP stays so), killed when its parent ends.
    #[command(hide = true)]
    Exec {
        /// Process id of the parent, with which it ends; without one it outlives it.
        #[arg(long)]
        parent: Option<u32>,
        /// The program and its arguments.
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<OsString>,
    },
    /// Makes contents of volumes after a power cut from a write log; reads what is asked from standard input, writes JSON lines.
    Crash,
    /// Replays a submit log in virtual time and compares every completion.
    Replay {
        /// The log that `volume attach --submit-log` wrote.
        log: PathBuf,
        /// Write to this file, as a log, what the requests come to on a host that takes no time.
        #[arg(long, requires = "depth")]
        ideal: Option<PathBuf>,
        /// Requests that such a host keeps outstanding.
        #[arg(long, requires = "ideal", value_parser = clap::value_parser!(u16).range(1..))]
        depth: Option<u16>,
    },
}

#[derive(Subcommand)]
enum CaptureCommand {
    /// Reads logs into a capture; writes JSON lines.
    Read,
    /// Relays clients to a server, and keeps what they send as a capture; writes JSON lines.
    Record,
    /// Says what is in a capture.
    Show,
    /// Sends the statements of a capture to a server; writes JSON lines.
    Replay {
        /// Connect to nothing: say what would be replayed.
        #[arg(long)]
        check: bool,
    },
    /// Sends transactions that are drawn from a capture, by any number of clients; writes the JSON lines of `drive`.
    Sample,
}

#[derive(Subcommand)]
enum InstanceCommand {
    /// Resolves a type or measures: memory, processors, limits to its volumes, price.
    Spec {
        /// For example `r6g.large` or `vcpus=4,memory=16GiB`.
        spec: String,
    },
    /// Every instance type.
    Types {
        /// Only those with this in their names.
        #[arg(long)]
        like: Option<String>,
    },
}

#[derive(Subcommand)]
enum VolumeCommand {
    /// Resolves a specification: limits, size, price.
    Spec {
        /// For example `gp3:size=100GiB,iops=6000`, or an array: `8xgp3:iops=6000,chunk=64KiB`.
        spec: String,
    },
    /// Every volume type with its limits and sources.
    Types,
    /// Attaches a volume and serves it until it is detached; reads its specification from standard input.
    Serve,
    /// The daemon's own helper: what requests to a device take.
    #[command(hide = true)]
    MeasurePath {
        /// The block device.
        device: PathBuf,
    },
    /// Whether the kernel lets this process mount FUSE; tried where no other process sees it.
    CheckHost,
    /// The attached volumes, and what their daemons do.
    List(StateDir),
    /// Whether a volume's daemon answers, and whether its store works.
    Health {
        /// Name of the volume.
        name: String,
        #[command(flatten)]
        at: StateDir,
    },
    /// Counters and distributions of a volume.
    Stats {
        /// Name of the volume.
        name: String,
        #[command(flatten)]
        at: StateDir,
    },
    /// Counters of a volume at each full minute of the last day.
    Minutes {
        /// Name of the volume.
        name: String,
        #[command(flatten)]
        at: StateDir,
    },
    /// Sets how full a volume's buckets are, or the reserves of its instance.
    Credit {
        /// Name of the volume.
        name: String,
        /// Per cent of the depth.
        #[arg(long, value_parser = clap::value_parser!(u32).range(0..=100))]
        percent: u32,
        /// The instance's reserves, from which it does more than its baseline.
        #[arg(long)]
        instance: bool,
        #[command(flatten)]
        at: StateDir,
    },
    /// Makes an attached volume another one: other figures, another type, a larger size.
    Modify {
        /// Name of the volume.
        name: String,
        /// What it becomes, as it is written when it is attached.
        spec: String,
        /// Year of the rule on how often this may be.
        #[arg(long, default_value = "2026", value_parser = ["2023", "2026"])]
        rule: String,
        /// Seconds until it is completed; by its size if omitted.
        #[arg(long)]
        optimizing: Option<u64>,
        #[command(flatten)]
        at: StateDir,
    },
    /// Notes a mark in the write log of a volume.
    Mark {
        /// Name of the volume.
        name: String,
        /// What is noted.
        text: String,
        #[command(flatten)]
        at: StateDir,
    },
    /// Injects faults into an attached volume.
    Fail {
        /// Name of the volume.
        name: String,
        /// What goes wrong, as one JSON document.
        fault: String,
        #[command(flatten)]
        at: StateDir,
    },
    /// Ends the faults of a volume; a lost one stays lost.
    Heal {
        /// Name of the volume.
        name: String,
        #[command(flatten)]
        at: StateDir,
    },
    /// Snapshots.
    #[command(flatten)]
    Snapshots(snapshot::SnapshotCommand),
    /// Unmounts and detaches a volume.
    Detach {
        /// Name of the volume.
        name: String,
        /// Keep the content as an image in this folder.
        #[arg(long)]
        save_image: Option<PathBuf>,
        #[command(flatten)]
        at: StateDir,
    },
}

fn main() -> ExitCode {
    let command = Cli::parse().command;
    match &command {
        // The daemon outlives the command that attached its volume; the catalogue ends with its input.
        Command::Volume(VolumeCommand::Serve) | Command::Catalog => child::begin(None, child::Signal::Stop),
        Command::Exec { parent, .. } => child::begin(*parent, child::Signal::Kill),
        _ => child::begin(Some(std::os::unix::process::parent_id()), child::Signal::Stop),
    }
    match run(command) {
        Ok(Some(answer)) => {
            print(&answer);
            ExitCode::SUCCESS
        }
        Ok(None) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{}", failure.document());
            ExitCode::from(failure.exit)
        }
    }
}

fn run(command: Command) -> Result<Option<Value>, Failure> {
    match command {
        Command::Version => {
            let version = env!("CARGO_PKG_VERSION");
            Ok(Some(json!({"version": version, "build_hash": env!("PGDYNO_BUILD_HASH")})))
        }
        Command::Volume(command) => volume(command),
        Command::Instance(InstanceCommand::Spec { spec }) => Ok(Some(json!(InstanceType::parse(&spec)?))),
        Command::Instance(InstanceCommand::Types { like }) => {
            let types = pgdyno_catalog::instance_types(like.as_deref())?;
            Ok(Some(json!({"types": types})))
        }
        Command::Catalog => {
            // An asker that is gone needs no answer.
            let _ = catalog::serve(std::io::stdin().lock(), std::io::stdout().lock());
            Ok(None)
        }
        Command::Drive { check: true } => Ok(Some(pgdyno_drive::check(&from_stdin("drive")?)?)),
        Command::Drive { check: false } => {
            let line = || {
                let mut line = String::new();
                std::io::stdin().lock().read_line(&mut line).map(|_| line)
            };
            let ending = pgdyno_drive::run(&from_stdin("drive")?, line, &mut std::io::stdout().lock())?;
            ending.map_or(Ok(None), |fault| Err(Failure::late(fault)))
        }
        Command::Connect => Ok(Some(pgdyno_connection::check(&from_stdin("connect")?)?)),
        Command::Plan => {
            pgdyno_load::plan(&from_stdin("plan")?, |said| print(&json!(said)))?;
            Ok(None)
        }
        Command::Types => {
            pgdyno_load::types(&from_stdin("types")?, print)?;
            Ok(None)
        }
        Command::Load => {
            pgdyno_load::load(&from_stdin("load")?, &mut std::io::stdout().lock())?;
            Ok(None)
        }
        Command::Fill => {
            pgdyno_fill::run(&from_stdin("fill")?, &mut std::io::stdout().lock())?;
            Ok(None)
        }
        Command::Generate(command) => {
            pgdyno_generate::run(&command.spec()?, &mut std::io::stdout().lock())?;
            Ok(None)
        }
        Command::Capture(command) => capture(command),
        Command::Probe => {
            pgdyno_probe::run(from_stdin("probe")?)?;
            Ok(None)
        }
        Command::Relay => {
            pgdyno_relay::run(&from_stdin("relay")?, &mut std::io::stdout().lock())?;
            Ok(None)
        }
        Command::Shifted { output } => shifted::write(&output).map(Some),
        Command::Crash => {
            crash::serve(std::io::stdin().lock(), std::io::stdout().lock());
            Ok(None)
        }
        Command::Exec { command, .. } => Err(child::execute(&command)),
        Command::Replay { log, ideal: Some(ideal), depth: Some(depth) } => {
            replay::ideal(&log, usize::from(depth), &ideal).map(Some)
        }
        Command::Replay { log, .. } => replay::replay(&log).map(Some),
    }
}

fn capture(command: CaptureCommand) -> Result<Option<Value>, Failure> {
    match command {
        CaptureCommand::Read => {
            pgdyno_capture::read(&from_stdin("capture read")?, &mut std::io::stdout().lock())?;
            Ok(None)
        }
        CaptureCommand::Record => {
            pgdyno_record::run(&from_stdin("capture record")?, &mut std::io::stdout().lock())?;
            Ok(None)
        }
        CaptureCommand::Replay { check: true } => Ok(Some(pgdyno_replay::plan(&from_stdin("capture replay")?)?)),
        CaptureCommand::Replay { check: false } => {
            pgdyno_replay::run(from_stdin("capture replay")?, &mut std::io::stdout().lock())?;
            Ok(None)
        }
        CaptureCommand::Sample => {
            pgdyno_replay::sample(from_stdin("capture sample")?, &mut std::io::stdout().lock())?;
            Ok(None)
        }
        CaptureCommand::Show => Ok(Some(pgdyno_capture::show(&from_stdin("capture show")?)?)),
    }
}

fn volume(command: VolumeCommand) -> Result<Option<Value>, Failure> {
    Ok(match command {
        VolumeCommand::Spec { spec } => Some(json!(pgdyno_emulate::resolve(&spec)?)),
        VolumeCommand::Types => {
            let types = pgdyno_catalog::types()?;
            Some(json!({"types": types}))
        }
        VolumeCommand::Serve => {
            pgdyno_emulate::serve(&from_stdin("volume serve")?, |facts| {
                print(&json!({"ready": facts}));
                close_stdout();
            })?;
            None
        }
        VolumeCommand::MeasurePath { device } => Some(pgdyno_emulate::measure_path(&device)?),
        VolumeCommand::CheckHost => {
            pgdyno_emulate::check_host()?;
            Some(json!({"ok": {}}))
        }
        VolumeCommand::List(at) => Some(json!({"volumes": pgdyno_emulate::list(&at.state_dir)})),
        VolumeCommand::Health { name, at } => {
            Some(pgdyno_emulate::request(&at.state_dir, &name, &json!({"command": "health"}))?)
        }
        VolumeCommand::Stats { name, at } => {
            Some(pgdyno_emulate::request(&at.state_dir, &name, &json!({"command": "stats"}))?)
        }
        VolumeCommand::Minutes { name, at } => {
            Some(pgdyno_emulate::request(&at.state_dir, &name, &json!({"command": "minutes"}))?)
        }
        VolumeCommand::Credit { name, percent, instance, at } => {
            let command = if instance { "instance_credit" } else { "credit" };
            let request = json!({"command": command, "level_ppm": percent * 10_000});
            Some(pgdyno_emulate::request(&at.state_dir, &name, &request)?)
        }
        VolumeCommand::Modify { name, spec, rule, optimizing, at } => {
            // The daemon stands in another directory: the path of a twin is that of the asking process.
            let spec = pgdyno_emulate::resolve(&spec)?.total.spec;
            let request = json!({"command": "modify", "spec": spec, "rule": rule, "optimizing_s": optimizing});
            Some(pgdyno_emulate::request(&at.state_dir, &name, &request)?)
        }
        VolumeCommand::Mark { name, text, at } => {
            Some(pgdyno_emulate::request(&at.state_dir, &name, &json!({"command": "mark", "text": text}))?)
        }
        VolumeCommand::Fail { name, fault, at } => {
            let fault: Value = serde_json::from_str(&fault).map_err(|error| {
                Failure::new(format!("the fault is not JSON: {error}"), "for example {\"kind\": \"pause\"}".to_owned())
            })?;
            Some(pgdyno_emulate::request(&at.state_dir, &name, &json!({"command": "fail", "fault": fault}))?)
        }
        VolumeCommand::Heal { name, at } => {
            Some(pgdyno_emulate::request(&at.state_dir, &name, &json!({"command": "heal"}))?)
        }
        VolumeCommand::Snapshots(command) => Some(command.run()?),
        VolumeCommand::Detach { name, save_image, at } => {
            Some(pgdyno_emulate::detach(&at.state_dir, &name, save_image.as_deref())?)
        }
    })
}

fn print(document: &Value) {
    let mut out = std::io::stdout().lock();
    // The reader may be gone; then the answer is lost.
    let _ = writeln!(out, "{document}").and_then(|()| out.flush());
}

/// A process that waits for the end of a daemon's output must not wait for the end of the daemon.
fn close_stdout() {
    if let Ok(null) = std::fs::OpenOptions::new().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(null);
    }
}
