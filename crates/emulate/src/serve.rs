//! The daemon's life: it is started for one volume, others join it, and it ends with the last of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pgdyno_catalog::{InstanceType, Storage};
use pgdyno_volume::{Instance, InstanceLimits};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::attached::Attached;
use crate::clock::Dilation;
use crate::control::{self, Order, as_json};
use crate::core::Core;
use crate::error::{Context, EmulateError, Result};
use crate::file_system::{self, FileSystem};
use crate::instance_dir::{Entered, InstanceDir};
use crate::precautions;
use crate::release;
use crate::specification;
use crate::submit_log::{LogBuffer, LogHeader, LogWriter};

/// What to serve.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServeSpec {
    /// Name of the volume.
    pub name: String,
    /// The volume or the array, as a user writes it: `gp3:size=100GiB`, `4xgp3:chunk=64KiB`.
    pub spec: String,
    /// Where to mount the file system; without it there is only the block device.
    pub mount: Option<PathBuf>,
    /// Where the daemon keeps its socket and facts.
    pub state_dir: PathBuf,
    /// An image to clone; without it the volume is formatted.
    pub image: Option<PathBuf>,
    /// What to format it with (ext4 unless said); of an image, what must be on it.
    pub file_system: Option<FileSystem>,
    /// `memory`, or a folder on a disk.
    #[serde(default = "memory")]
    pub store: String,
    /// Where to write the submit log, which is of all the instance's volumes.
    pub submit_log: Option<PathBuf>,
    /// Seed of the instance; that of the first volume counts.
    #[serde(default)]
    pub seed: u64,
    /// Options of the mount.
    #[serde(default)]
    pub mount_options: String,
    /// The instance that the volume joins, or begins if it is the first. Without a name it has one of its own.
    pub instance: Option<String>,
    /// The type of the instance, whose limits its volumes share: `r6g.2xlarge`. Without it there are none.
    pub instance_type: Option<String>,
    /// How many real seconds a second of the instance's volumes takes; that of the first volume counts.
    #[serde(default = "undilated")]
    pub dilation: u32,
}

fn undilated() -> u32 {
    1
}

fn memory() -> String {
    "memory".to_owned()
}

impl ServeSpec {
    fn storage(&self) -> Result<Storage> {
        specification::resolve(&self.spec)
    }

    /// What is the same for all volumes of the instance.
    fn instance_facts(&self) -> Result<InstanceFacts> {
        let (seed, dilation) = (self.seed, Dilation::new(self.dilation)?);
        let Some(name) = &self.instance_type else {
            let (instance_type, limits, attachments, refused) = (None, None, None, Vec::new());
            return Ok(InstanceFacts { seed, dilation, instance_type, limits, attachments, refused });
        };
        let found = InstanceType::parse(name).map_err(|error| EmulateError::new(error.message, error.remedy))?;
        let Some(ebs) = found.ebs else {
            return Err(EmulateError::new(
                format!("{} has no bandwidth of its own to its volumes", found.instance),
                "name a type that has (`pgdyno instance types`), or none: then nothing is shared",
            ));
        };
        let (instance_type, limits) = (Some(found.instance), Some(ebs.model));
        let attachments = found.attachments;
        Ok(InstanceFacts { seed, dilation, instance_type, limits, attachments, refused: Vec::new() })
    }
}

/// Attaches a volume, calls `ready` with its facts, and serves until it is told to stop. Where the volume joins an instance
/// that is served already this returns at once.
pub fn serve(spec: &ServeSpec, ready: impl FnOnce(&Value)) -> Result<()> {
    let storage = spec.storage()?;
    // Whoever serves the instance may stand in another directory, where the path of a twin would be another one.
    let spec = &ServeSpec { spec: storage.total.spec.clone(), ..spec.clone() };
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
    let (orders, inbox) = channel();
    watch_signals(orders.clone())?;
    let refused = precautions::protect_process();
    let instance = InstanceFacts { refused, ..instance };
    let mut daemon = Daemon::begin(instance, place, orders)?;
    match daemon.attach(spec, &storage) {
        Ok(facts) => ready(&facts),
        Err(error) => {
            let _ = daemon.close();
            return Err(error);
        }
    }
    daemon.run(&inbox)
}

/// What is the same for all volumes of an instance.
#[derive(Debug)]
pub(crate) struct InstanceFacts {
    pub(crate) seed: u64,
    pub(crate) dilation: Dilation,
    /// Name of its type; without one it has no limits.
    pub(crate) instance_type: Option<String>,
    pub(crate) limits: Option<InstanceLimits>,
    /// Volumes that it attaches at most.
    attachments: Option<u32>,
    /// Precautions that the host refused.
    pub(crate) refused: Vec<String>,
}

/// The process that serves the volumes of one instance.
struct Daemon {
    core: Arc<Core>,
    instance: InstanceFacts,
    volumes: BTreeMap<String, Attached>,
    orders: Sender<Order>,
    release: Option<JoinHandle<()>>,
    log: Option<LogWriter>,
    place: Option<InstanceDir>,
}

impl Daemon {
    fn begin(instance: InstanceFacts, place: Option<InstanceDir>, orders: Sender<Order>) -> Result<Self> {
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
            control::serve_instance(&place.socket(), orders.clone())?;
        }
        Ok(Self { core, instance, volumes: BTreeMap::new(), orders, release: Some(release), log: None, place })
    }

    /// Attaches a volume: the first one, or one that joins.
    fn attach(&mut self, spec: &ServeSpec, storage: &Storage) -> Result<Value> {
        self.require_room(storage)?;
        let log = self.begin_log(spec, storage)?;
        // The threads of the data path inherit it; what follows them is not ahead of ordinary ones.
        precautions::data_path_priority();
        let started = Attached::start(&self.core, spec, storage, &self.orders);
        precautions::ordinary_priority();
        let mut attached = started?;
        match attached.bring_up(spec, storage, &self.instance, log, &self.orders) {
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

    /// An instance attaches so many volumes and no more; an array is as many as it has members.
    fn require_room(&self, storage: &Storage) -> Result<()> {
        let there: u32 = self.volumes.values().map(Attached::volumes).sum();
        let asked = there + storage.volumes();
        match self.instance.attachments.filter(|most| asked > *most) {
            Some(most) => Err(EmulateError::new(
                format!(
                    "{} attaches at most {most} volumes, and this makes {asked}",
                    self.instance.instance_type.as_deref().unwrap_or("the instance")
                ),
                "take fewer and larger volumes, or an instance type that attaches more (`pgdyno instance types`)",
            )),
            None => Ok(()),
        }
    }

    /// The log begins with the first volume and is of all of them.
    fn begin_log(&mut self, spec: &ServeSpec, storage: &Storage) -> Result<Option<LogBuffer>> {
        let Some(path) = &spec.submit_log else { return Ok(None) };
        if !self.volumes.is_empty() {
            return Err(EmulateError::new(
                "a submit log is of an instance from its first volume on, and this one has volumes already",
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

    fn join(&mut self, spec: &ServeSpec) -> Result<Value> {
        let storage = spec.storage()?;
        file_system::check_mount_point(spec.mount.as_deref())?;
        let InstanceFacts { instance_type: asked, dilation, .. } = spec.instance_facts()?;
        if dilation != self.instance.dilation {
            let is = self.instance.dilation.times();
            return Err(EmulateError::new(
                format!("the instance has dilation {is}, and its volumes share its clock"),
                format!("use --dilation {is}"),
            ));
        }
        if asked.is_some() && asked != self.instance.instance_type {
            let is = self.instance.instance_type.as_deref();
            return Err(EmulateError::new(
                format!("the instance is {}", is.map_or("of no type".to_owned(), |name| format!("of type {name}"))),
                is.map_or("leave --type out".to_owned(), |name| format!("use --type {name}, or leave it out")),
            ));
        }
        self.attach(spec, &storage)
    }

    /// Serves until its last volume is gone. A volume that is in use stays attached and says so.
    fn run(mut self, inbox: &Receiver<Order>) -> Result<()> {
        let mut result = Ok(());
        while !self.volumes.is_empty() {
            let done = match inbox.recv() {
                Ok(Order::Join { spec, answer }) => {
                    let joined = self.join(&spec);
                    let text = joined.as_ref().map_or_else(as_json, |facts| json!({"ready": facts}));
                    let heard = control::reply(&answer, &text).is_ok();
                    // Whoever asked was killed meanwhile, and nobody else knows that there is something to take away.
                    let unwanted = if heard || joined.is_err() { None } else { self.volumes.remove(&spec.name) };
                    unwanted.map_or(Ok(()), |attached| attached.take_down(None))
                }
                Ok(Order::Detach { name, save_image, answer }) => {
                    let (text, done) = self.detach(&name, save_image.as_deref());
                    let _ = control::reply(&answer, &text);
                    done
                }
                Ok(Order::SessionEnded { name }) => {
                    self.volumes.remove(&name).map_or(Ok(()), |attached| attached.take_down(None))
                }
                Ok(Order::Terminate) | Err(_) => {
                    let all = std::mem::take(&mut self.volumes).into_values();
                    // Every one of them, whatever becomes of the others; the first error is returned.
                    let ended: Vec<Result<()>> = all.map(|attached| attached.take_down(None)).collect();
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
            let gone = EmulateError::new(format!("the volume {name:?} is gone"), "see `pgdyno volume list`");
            return (as_json(&gone), Ok(()));
        };
        let savable = save_image.map_or(Ok(()), |target| attached.require_savable(target));
        let unmounted = savable.and_then(|()| {
            attached.hurry();
            attached.unmount()?;
            attached.require_unclaimed()
        });
        if let Err(error) = unmounted {
            attached.stay();
            self.volumes.insert(name.to_owned(), attached);
            return (as_json(&error), Ok(()));
        }
        let mut result = attached.take_down(save_image);
        if self.volumes.is_empty() {
            result = result.and(self.close());
        }
        (result.as_ref().map_or_else(as_json, |()| json!({"ok": {"save_image": save_image}})), result)
    }

    /// Ends what all volumes share. Calling it again does nothing.
    fn close(&mut self) -> Result<()> {
        self.place = None;
        self.core.stop();
        if let Some(release) = self.release.take() {
            let _ = release.join();
        }
        let Some(log) = self.log.take() else { return Ok(()) };
        log.finish().context(|| "the submit log is incomplete".to_owned(), "free some space")
    }
}

/// SIGTERM, SIGINT and SIGHUP become orders. Blocked before any thread starts, so that only the watcher takes them.
fn watch_signals(orders: Sender<Order>) -> Result<()> {
    // SAFETY: `set` is initialised by sigemptyset before use and outlives the calls.
    let set = unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
            libc::sigaddset(&raw mut set, signal);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
        set
    };
    let watch = move || {
        let mut signal = 0;
        // SAFETY: both pointers are valid for the call.
        while unsafe { libc::sigwait(&raw const set, &raw mut signal) } == 0 {
            if orders.send(Order::Terminate).is_err() {
                return;
            }
        }
    };
    let started = std::thread::Builder::new().name("signals".to_owned()).spawn(watch);
    started.map(|_| ()).context(|| "cannot start the signal thread".to_owned(), "raise the limit on processes")
}

/// Waits until `gone` says so.
pub(crate) fn wait_until(timeout: Duration, gone: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + timeout;
    while !gone() {
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    true
}
