//! The daemon's life: it is started for one volume, others join it, and it ends with the last of them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use pgdyno_catalog::Storage;
use pgdyno_host::{Context, Fault, Result};
use pgdyno_volume::Instance;
use serde_json::{Value, json};

use crate::ask::error_document;
use crate::attached::Attached;
use crate::command::Command;
use crate::control;
use crate::core::Core;
use crate::descriptors;
use crate::file_system;
use crate::instance_dir::{Entered, InstanceDir};
use crate::last_words::{self, Thread};
use crate::log_buffer::LogBuffer;
use crate::precautions;
use crate::release;
use crate::snapshot;
use crate::spec::{InstanceFacts, ServeSpec, require_iops};
use crate::submit_log::{LogHeader, LogWriter};
use crate::write_log::Recorder;

/// Attaches a volume, calls `ready` with its facts, and serves until a signal or a command ends it. Where the volume joins an instance
/// that is served already this returns at once.
pub fn serve(spec: &ServeSpec, ready: impl FnOnce(&Value)) -> Result<()> {
    let storage = spec.storage()?;
    let spec = &spec.anywhere(&storage)?;
    spec.require_formattable(&storage)?;
    file_system::check_mount_point(spec.mount.as_deref())?;
    let instance = spec.instance_facts()?;
    let place = match &spec.instance {
        None => None,
        Some(name) => match InstanceDir::enter(&spec.state_dir, name, spec)? {
            Entered::Joined(facts) => {
                ready(&facts);
                return Ok(());
            }
            Entered::First(place) => Some(place),
        },
    };
    // It would keep the file system busy that the caller stands in; every path is absolute by now.
    std::env::set_current_dir("/")
        .context(|| "cannot leave the working directory".to_owned(), "run `pgdyno doctor`")?;
    last_words::abort_on_panic();
    let (commands, inbox) = channel();
    watch_signals(commands.clone())?;
    let refused = precautions::protect_process();
    descriptors::fill();
    let instance = InstanceFacts { refused, ..instance };
    let mut daemon = Daemon::begin(instance, place, commands)?;
    match daemon.attach(spec, &storage) {
        Ok(facts) => ready(&facts),
        Err(error) => {
            let _ = daemon.close();
            return Err(error);
        }
    }
    daemon.run(&inbox)
}

/// The process that serves the volumes of one instance.
struct Daemon {
    core: Arc<Core>,
    instance: InstanceFacts,
    volumes: BTreeMap<String, Attached>,
    commands: Sender<Command>,
    release: Option<JoinHandle<()>>,
    log: Option<LogWriter>,
    write_log_saved: bool,
    place: Option<InstanceDir>,
}

impl Daemon {
    fn begin(instance: InstanceFacts, place: Option<InstanceDir>, commands: Sender<Command>) -> Result<Self> {
        let seed = instance.seed;
        let model = instance.limits.map_or_else(|| Instance::new(seed), |limits| Instance::with_limits(seed, limits));
        let core = Core::new(model, instance.dilation)
            .context(|| "cannot create a timer".to_owned(), "raise the limit on open files")?;
        let core = Arc::new(core);
        let shared = core.clone();
        let release = std::thread::Builder::new().name("release".to_owned()).spawn(move || release::run(&shared));
        let release = release.context(|| "cannot start a thread".to_owned(), "raise the limit on processes")?;
        precautions::ordinary_priority();
        if let Some(place) = &place {
            control::serve_instance(&place.socket(), commands.clone())?;
        }
        Ok(Self {
            core,
            instance,
            volumes: BTreeMap::new(),
            commands,
            release: Some(release),
            log: None,
            write_log_saved: false,
            place,
        })
    }

    /// Attaches a volume: the first one, or one that joins.
    fn attach(&mut self, spec: &ServeSpec, storage: &Storage) -> Result<Value> {
        self.require_room(storage)?;
        require_iops(self.instance.instance_type.as_deref(), storage)?;
        let log = self.begin_log(spec, storage)?;
        self.begin_write_log(spec)?;
        // The threads of the data path inherit it; what follows them is not ahead of ordinary ones.
        precautions::data_path_priority();
        let started = Attached::start(&self.core, spec, storage, &self.commands);
        precautions::ordinary_priority();
        let mut attached = started?;
        match attached.bring_up(spec, storage, &self.instance, log, &self.commands) {
            Ok(facts) => {
                self.volumes.insert(spec.name.clone(), attached);
                Ok(facts)
            }
            Err(error) => {
                let _ = attached.take_down(None);
                Err(error)
            }
        }
    }

    /// An instance attaches a limited number of volumes; an array counts as its members.
    fn require_room(&self, storage: &Storage) -> Result<()> {
        let there: u32 = self.volumes.values().map(Attached::volumes).sum();
        let asked = there + storage.volumes();
        match self.instance.attachments.filter(|most| asked > *most) {
            Some(most) => Err(Fault::new(
                format!(
                    "{} attaches at most {most} volumes, and this makes {asked}",
                    self.instance.instance_type.as_deref().unwrap_or("the instance")
                ),
                "take fewer and larger volumes, or an instance type that attaches more (`pgdyno catalog instances`)",
            )),
            None => Ok(()),
        }
    }

    /// The log begins with the first volume and is of all of them.
    fn begin_log(&mut self, spec: &ServeSpec, storage: &Storage) -> Result<Option<LogBuffer>> {
        let Some(path) = &spec.submit_log else { return Ok(None) };
        if !self.volumes.is_empty() {
            return Err(Fault::new(
                "a submit log begins with the first volume of an instance, and this instance already has volumes",
                "give --submit-log to the first volume of the instance",
            ));
        }
        let header = LogHeader {
            model_hash: format!("{:016x}", storage.model_hash()),
            spec: json!(storage),
            seed: self.instance.seed,
            instance_limits: self.instance.limits,
        };
        self.log = Some(LogWriter::start(path, &header, self.core.clone())?);
        Ok(Some(LogBuffer::new()))
    }

    /// The write log begins with the first volume and is of all of them. Each is empty when it comes, so that the log alone says
    /// what it holds.
    fn begin_write_log(&mut self, spec: &ServeSpec) -> Result<()> {
        if let Some(path) = &spec.write_log {
            if !self.volumes.is_empty() {
                return Err(Fault::new(
                    "a write log begins with the first volume of an instance, and this instance already has volumes",
                    "give --write-log to the first volume of the instance",
                ));
            }
            let log = Recorder::begin(path, spec.write_log_limit_bytes)?;
            let _ = self.core.write_log.set(Arc::new(log));
        }
        if self.core.write_log.get().is_some() && spec.image.is_some() {
            return Err(Fault::new(
                "a write log is of volumes that were empty, and this one has an image",
                "omit --image",
            ));
        }
        Ok(())
    }

    fn join(&mut self, spec: &ServeSpec) -> Result<Value> {
        let storage = spec.storage()?;
        spec.require_formattable(&storage)?;
        file_system::check_mount_point(spec.mount.as_deref())?;
        let InstanceFacts { instance_type: asked, dilation, .. } = spec.instance_facts()?;
        if dilation != self.instance.dilation {
            let is = self.instance.dilation.times();
            return Err(Fault::new(
                format!("the instance has dilation {is}, and its volumes share its clock"),
                format!("use --dilation {is}"),
            ));
        }
        if asked.is_some() && asked != self.instance.instance_type {
            let is = self.instance.instance_type.as_deref();
            return Err(Fault::new(
                format!("the instance is {}", is.map_or("of no type".to_owned(), |name| format!("of type {name}"))),
                is.map_or("omit --type".to_owned(), |name| format!("use --type {name}, or omit it")),
            ));
        }
        if let Some(asked) = spec.seed.filter(|asked| *asked != self.instance.seed) {
            let is = self.instance.seed;
            return Err(Fault::new(
                format!("all volumes of the instance have seed {is}, and {asked} was asked for"),
                "omit --seed, or use another --instance",
            ));
        }
        self.attach(spec, &storage)
    }

    /// Serves until its last volume is gone. A volume that is in use stays attached and says so.
    fn run(mut self, inbox: &Receiver<Command>) -> Result<()> {
        let mut result = Ok(());
        while !self.volumes.is_empty() {
            let done = match inbox.recv() {
                Ok(Command::Join { spec, answer }) => {
                    let joined = self.join(&spec);
                    let text = joined.as_ref().map_or_else(error_document, |facts| json!({"ready": facts}));
                    let heard = answer.answer(&text).is_ok();
                    // The process that asked was killed meanwhile, and no other one would detach the volume.
                    let unwanted = if heard || joined.is_err() { None } else { self.volumes.remove(&spec.name) };
                    unwanted.map_or(Ok(()), |attached| attached.take_down(None))
                }
                // It was taken back: the process that asked was interrupted before it began.
                Ok(Command::Snapshot { answer, .. }) if !answer.is_awaited() => Ok(()),
                Ok(Command::Snapshot { targets, answer }) => {
                    let taken = snapshot::take(&self.volumes, &targets);
                    let _ = answer.answer(&taken.unwrap_or_else(|error| error_document(&error)));
                    Ok(())
                }
                Ok(Command::Detach { answer, .. }) if !answer.is_awaited() => Ok(()),
                Ok(Command::Detach { name, save_image, answer }) => {
                    let (text, done) = descriptors::spend(|| self.detach(&name, save_image.as_deref()));
                    let _ = answer.answer(&text);
                    done
                }
                Ok(Command::SessionEnded { name }) => {
                    let attached = self.volumes.remove(&name);
                    descriptors::spend(|| attached.map_or(Ok(()), |attached| attached.take_down(None)))
                }
                Ok(Command::Panic) => {
                    last_words::pass(Thread::Main);
                    Ok(())
                }
                Ok(Command::Terminate) | Err(_) => {
                    let all = std::mem::take(&mut self.volumes).into_values();
                    // Every one of them, whatever becomes of the others; the first error is returned.
                    let ended: Vec<Result<()>> =
                        descriptors::spend(|| all.map(|attached| attached.take_down(None)).collect());
                    ended.into_iter().collect()
                }
            };
            result = result.and(done);
        }
        result.and(self.close())
    }

    /// Detaches a volume, and ends everything if it was the last. The answer, and how the volume ended if it did.
    fn detach(&mut self, name: &str, save_image: Option<&Path>) -> (Value, Result<()>) {
        let Some(mut attached) = self.volumes.remove(name) else {
            let gone = Fault::new(format!("the volume {name:?} is gone"), "see `pgdyno volume list`");
            return (error_document(&gone), Ok(()));
        };
        let savable = save_image.map_or(Ok(()), |target| attached.require_savable(target));
        if let Err(error) = savable.and_then(|()| attached.let_go()) {
            self.volumes.insert(name.to_owned(), attached);
            return (error_document(&error), Ok(()));
        }
        let mut result = attached.take_down(save_image);
        if self.volumes.is_empty() {
            let closed = self.close();
            result = result.and(closed);
        }
        let full = self.volumes.is_empty().then(|| self.core.write_log.get()).flatten().filter(|log| log.is_full());
        let ok = json!({"ok": {"save_image": save_image, "write_log_full": full.map(|log| log.path())}});
        (result.as_ref().map_or_else(error_document, |()| ok), result)
    }

    /// Ends what all volumes share. Calling it again does nothing.
    fn close(&mut self) -> Result<()> {
        self.place = None;
        self.core.stop();
        if let Some(release) = self.release.take() {
            let _ = release.join();
        }
        let submitted = self.log.take().map_or(Ok(()), LogWriter::finish);
        // Both are written, whatever becomes of the other.
        let saved = self.save_write_log();
        submitted.and(saved)
    }

    /// Writes the write log when the last volume is gone.
    fn save_write_log(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.write_log_saved, true) {
            return Ok(());
        }
        self.core.write_log.get().map_or(Ok(()), |log| log.save())
    }
}

/// SIGTERM, SIGINT and SIGHUP become commands. They are blocked before any thread starts, so that no other one takes them.
fn watch_signals(commands: Sender<Command>) -> Result<()> {
    let signals = pgdyno_signals::block_each(&[libc::SIGTERM, libc::SIGINT, libc::SIGHUP])
        .context(|| "cannot watch for signals".to_owned(), "raise the limit on open files")?;
    let watch = move || {
        // As long as a signal needs; a read that fails ends the daemon too.
        let mut signal = [0_u8; 128];
        loop {
            let _ = rustix::io::retry_on_intr(|| rustix::io::read(&signals, &mut signal[..]));
            if commands.send(Command::Terminate).is_err() {
                return;
            }
        }
    };
    let started = std::thread::Builder::new().name("signals".to_owned()).spawn(watch);
    started.map(|_| ()).context(|| "cannot start the signal thread".to_owned(), "raise the limit on processes")
}
