//! The daemon's life: attach, calibrate, format, mount, serve, detach.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fuser::{BackgroundSession, Config, MountOption, Session};
use pgdyno_catalog::Resolved;
use pgdyno_volume::Instance;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::calibrate::calibrate;
use crate::control::{self, Order};
use crate::error::{Context, EmulateError, Result};
use crate::file_system::{self, FileSystem};
use crate::follow::PathFollower;
use crate::fs::{FILE_NAME, FUSE_MAGIC, VolumeFs};
use crate::loop_device::LoopDevice;
use crate::overhead::BaseOverhead;
use crate::pipeline::{Mode, Pipeline};
use crate::precautions;
use crate::release;
use crate::specification;
use crate::state_dir::{VolumeDir, start_ticks};
use crate::store::Store;
use crate::submit_log::{LogBuffer, LogHeader, LogWriter};

/// As many as measured best, by little; more only take turns on the model's lock (docs/decision/0005).
const EVENT_LOOPS: usize = 2;
/// Workers of a store on a disk: its queue depth.
const DISK_WORKERS: usize = 32;
/// A device or mount that is not gone by then is held by somebody.
const GONE_TIMEOUT: Duration = Duration::from_secs(10);

/// What to serve.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServeSpec {
    /// Name of the volume.
    pub name: String,
    /// The volume, as a user writes it: `gp3:size=100GiB`.
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
    /// Where to write the submit log.
    pub submit_log: Option<PathBuf>,
    /// Seed of the instance.
    #[serde(default)]
    pub seed: u64,
    /// Options of the mount.
    #[serde(default)]
    pub mount_options: String,
}

fn memory() -> String {
    "memory".to_owned()
}

/// Everything that has to be taken down again, in the order in which it was put up.
struct Attached {
    folder: VolumeDir,
    pipeline: Arc<Pipeline>,
    session: Option<BackgroundSession>,
    threads: Vec<JoinHandle<()>>,
    device: Option<LoopDevice>,
    mount: Option<PathBuf>,
    log: Option<LogWriter>,
    follower: Option<PathFollower>,
}

/// Attaches a volume, calls `ready` with its facts, and serves until it is told to stop.
pub fn serve(spec: &ServeSpec, ready: impl FnOnce(&Value)) -> Result<()> {
    let resolved = specification::resolve(&spec.spec)?;
    file_system::check_mount_point(spec.mount.as_deref())?;
    let (orders, inbox) = channel();
    watch_signals(orders.clone())?;
    let refused = precautions::protect_process();
    let folder = VolumeDir::of(&spec.state_dir, &spec.name)?;
    folder.create()?;
    let mut attached = match Attached::start(folder, spec, &resolved, orders.clone()) {
        Ok(attached) => attached,
        Err((folder, error)) => {
            let _ = fs::remove_dir_all(folder.path());
            return Err(error);
        }
    };
    precautions::ordinary_priority();
    match attached.bring_up(spec, &resolved, &refused, orders) {
        Ok(facts) => ready(&facts),
        Err(error) => {
            let _ = attached.take_down(None);
            return Err(error);
        }
    }
    attached.wait(&inbox)
}

impl Attached {
    /// The threads of the data path: what follows them is not ahead of ordinary ones.
    fn start(
        folder: VolumeDir,
        spec: &ServeSpec,
        resolved: &Resolved,
        orders: Sender<Order>,
    ) -> std::result::Result<Self, (VolumeDir, EmulateError)> {
        let begin = || {
            let params = resolved.params();
            let request_bytes = params.request_bytes();
            let on_disk = spec.store != "memory";
            let layer = folder.layer(&spec.store);
            let store = Store::create(&layer, params.size_bytes, spec.image.as_deref(), on_disk)?;
            let mut model = Instance::new(spec.seed);
            let volume = model.add_volume(params.clone());
            let pipeline = Pipeline::new(store, on_disk, model, volume, request_bytes as usize)
                .context(|| "cannot create a timer".to_owned(), "raise the limit on open files")?;
            let pipeline = Arc::new(pipeline);
            let mut threads = vec![spawn("release", pipeline.clone(), |pipeline| release::run(&pipeline))?];
            for _ in 0..if on_disk { DISK_WORKERS } else { 0 } {
                threads.push(spawn("disk", pipeline.clone(), |pipeline| pipeline.work())?);
            }
            let session = start_session(&folder, pipeline.clone(), request_bytes, orders)?;
            Ok((pipeline, threads, session))
        };
        match begin() {
            Ok((pipeline, threads, session)) => Ok(Self {
                folder,
                pipeline,
                session: Some(session),
                threads,
                device: None,
                mount: None,
                log: None,
                follower: None,
            }),
            Err(error) => Err((folder, error)),
        }
    }

    fn bring_up(
        &mut self,
        spec: &ServeSpec,
        resolved: &Resolved,
        refused: &[String],
        orders: Sender<Order>,
    ) -> Result<Value> {
        let fuse_magic = file_system_magic(&self.folder.fuse())?;
        let file = self.folder.fuse().join(FILE_NAME);
        let device = self.device.insert(LoopDevice::attach(&file)?);
        let proofs = device.prove(&file, fuse_magic, resolved.params().request_bytes() / 1024)?;
        let path = device.path.clone();
        let overhead = calibrate(&self.pipeline, &path)?;
        let kind = match spec.image {
            Some(_) => file_system::found(&path, spec.file_system)?,
            None => Some(file_system::format(&path, spec.file_system.unwrap_or(FileSystem::Ext4))?),
        };
        if let Some(target) = &spec.mount {
            file_system::mount(&path, target, kind, &spec.mount_options)?;
            self.mount = Some(target.clone());
        }
        let started_ns = self.arm(spec, resolved, overhead)?;
        self.follower = Some(PathFollower::start(&path, overhead.beside_ns, self.pipeline.clone())?);
        let pid = std::process::id();
        let facts = json!({
            "name": spec.name, "pid": pid, "pid_start_ticks": start_ticks(pid), "spec": resolved, "mount": spec.mount,
            "block_device": path, "fuse_dir": self.folder.fuse(), "backing_file": file, "seed": spec.seed,
            "file_system": kind, "mount_options": spec.mount_options, "store": spec.store, "image": spec.image, "layer": self.pipeline.layer(),
            "submit_log": spec.submit_log, "started_monotonic_ns": started_ns, "base_overhead": overhead,
            "base_overhead_8k": {"read_ns": overhead.read.ns(8192), "write_ns": overhead.write.ns(8192)},
            "proofs": proofs, "refused_precautions": refused,
        });
        let text = serde_json::to_vec_pretty(&facts).expect("facts are plain JSON");
        fs::write(self.folder.facts(), text)
            .context(|| "cannot write the volume's facts".to_owned(), "free some space")?;
        control::serve(&self.folder, facts.clone(), self.pipeline.clone(), orders)?;
        Ok(facts)
    }

    fn arm(&mut self, spec: &ServeSpec, resolved: &Resolved, overhead: BaseOverhead) -> Result<u64> {
        let Some(path) = &spec.submit_log else {
            return Ok(self.pipeline.arm(overhead, None));
        };
        let header =
            LogHeader { model_hash: format!("{:016x}", resolved.model_hash()), spec: json!(resolved), seed: spec.seed };
        let writer = LogWriter::start(path, &header, self.pipeline.clone())?;
        self.log = Some(writer);
        Ok(self.pipeline.arm(overhead, Some(LogBuffer::new())))
    }

    /// Serves until an order ends it. A volume that is in use stays attached and says so.
    fn wait(mut self, inbox: &Receiver<Order>) -> Result<()> {
        loop {
            let (save_image, answer) = match inbox.recv() {
                Ok(Order::Detach { save_image, answer }) => (save_image, Some(answer)),
                Ok(Order::Terminate | Order::SessionEnded) | Err(_) => (None, None),
            };
            self.pipeline.set_mode(Mode::Bypass);
            if let (Err(error), Some(answer)) = (self.unmount(), &answer) {
                self.pipeline.set_mode(Mode::Model);
                let _ = control::reply(answer, &as_json(&error));
                continue;
            }
            let result = self.take_down(save_image.as_deref());
            if let Some(answer) = answer {
                let text = result.as_ref().map_or_else(as_json, |()| json!({"ok": {"save_image": save_image}}));
                let _ = control::reply(&answer, &text);
            }
            return result;
        }
    }

    fn unmount(&mut self) -> Result<()> {
        let Some(target) = &self.mount else { return Ok(()) };
        // Somebody may have unmounted it already, or removed the folder with it.
        if file_system::is_mount_point(target) {
            file_system::unmount(target)?;
        }
        self.mount = None;
        Ok(())
    }

    /// Takes everything down, as far as it is up. The first error is returned, but nothing is left out for it.
    fn take_down(&mut self, save_image: Option<&Path>) -> Result<()> {
        let mut result = self.unmount();
        if let Some(target) = self.mount.take() {
            file_system::unmount_lazily(&target);
        }
        if let Some(follower) = self.follower.take() {
            follower.finish();
        }
        if let Some(device) = self.device.take() {
            result = result.and(device.detach(GONE_TIMEOUT));
        }
        if let Some(session) = self.session.take() {
            let ended = aborted_is_ended(session.umount_and_join());
            result =
                result.and(ended.context(|| "the FUSE session did not end well".to_owned(), "run `pgdyno doctor`"));
        }
        self.pipeline.stop();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        if let Some(log) = self.log.take() {
            result = result.and(log.finish().context(|| "the submit log is incomplete".to_owned(), "free some space"));
        }
        let kept = match save_image {
            Some(target) => self.pipeline.save(target),
            None => {
                self.pipeline.remove().context(|| "the volume's files stay".to_owned(), "run `pgdyno doctor --clean`")
            }
        };
        let _ = fs::remove_dir_all(self.folder.path());
        result.and(kept)
    }
}

/// An event loop that was taking a request in (the release of the loop device's file, which nobody waits for) when the
/// connection went is told ECONNABORTED instead of ENODEV. No request for data can be under way: the device is gone.
fn aborted_is_ended(ended: std::io::Result<()>) -> std::io::Result<()> {
    match ended {
        Err(error) if error.raw_os_error() == Some(libc::ECONNABORTED) => Ok(()),
        other => other,
    }
}

fn as_json(error: &EmulateError) -> Value {
    json!({"error": {"message": error.message, "remedy": error.remedy}})
}

fn spawn(
    name: &str,
    pipeline: Arc<Pipeline>,
    run: impl FnOnce(Arc<Pipeline>) + Send + 'static,
) -> Result<JoinHandle<()>> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || run(pipeline))
        .context(|| format!("cannot start the thread {name:?}"), "raise the limit on processes")
}

fn start_session(
    folder: &VolumeDir,
    pipeline: Arc<Pipeline>,
    request_bytes: u64,
    orders: Sender<Order>,
) -> Result<BackgroundSession> {
    let remedy = "check that /dev/fuse exists and that you are root (`pgdyno doctor`)";
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName("pgdyno".to_owned()),
        MountOption::Subtype("pgdyno".to_owned()),
        MountOption::NoExec,
        MountOption::NoSuid,
        MountOption::NoDev,
        MountOption::CUSTOM(format!("max_read={request_bytes}")),
    ];
    config.n_threads = Some(EVENT_LOOPS);
    config.clone_fd = true;
    let fs = VolumeFs::new(pipeline, u32::try_from(request_bytes).unwrap_or(u32::MAX), orders);
    let mounted = Session::new(fs, folder.fuse(), &config);
    let session = mounted.context(|| format!("cannot mount FUSE on {}", folder.fuse().display()), remedy)?;
    session.spawn().context(|| "cannot start the FUSE session".to_owned(), remedy)
}

/// A mount that failed silently would leave a plain folder, and every figure would be the host disk's.
fn file_system_magic(folder: &Path) -> Result<u64> {
    let remedy = "run `pgdyno doctor --clean` and attach again";
    let found = rustix::fs::statfs(folder).context(|| format!("cannot stat {}", folder.display()), remedy)?;
    let magic = u64::try_from(found.f_type).unwrap_or(0);
    if magic == FUSE_MAGIC {
        return Ok(magic);
    }
    Err(EmulateError::new(format!("{} is not our FUSE mount: magic {magic:#x}", folder.display()), remedy))
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
