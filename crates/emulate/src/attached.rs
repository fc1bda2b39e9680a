//! One attached volume: what is put up for it, and taken down again.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fuser::{BackgroundSession, Config, MountOption, Session};
use pgdyno_catalog::Storage;
use pgdyno_host::{Context, Fault, Result};
use pgdyno_volume::VolumeFault;
use serde_json::{Value, json};

use crate::calibrate::calibrate;
use crate::claims::Claims;
use crate::command::Command;
use crate::control::{self, Listener, Served};
use crate::core::Core;
use crate::fault;
use crate::file_system::{self, FileSystem};
use crate::follow::PathFollower;
use crate::fs::{Exported, FILE_NAME, FUSE_MAGIC, VolumeFs};
use crate::lane::Mode;
use crate::last_words;
use crate::log_buffer::LogBuffer;
use crate::loop_device::{LoopDevice, LowPlace, Proofs};
use crate::overhead::BaseOverhead;
use crate::pipeline::Pipeline;
use crate::spec::{InstanceFacts, ServeSpec};
use crate::state_dir::{VolumeDir, start_ticks};
use crate::store::Store;

/// As many as measured best, by little; more only take turns on the model's lock (docs/decision/0005).
const EVENT_LOOPS: usize = 2;
/// Workers of a store on a disk: its queue depth.
const DISK_WORKERS: usize = 32;
/// A device or mount that is not gone by then is still in use.
const GONE_TIMEOUT: Duration = Duration::from_secs(10);
/// A device that is claimed is refused after that, if what claims it can be seen.
const CLAIM_TIMEOUT: Duration = Duration::from_secs(1);
/// Looking at all processes takes some milliseconds.
const CLAIM_INTERVAL: Duration = Duration::from_millis(100);
/// How long the kernel may take to let go of a device after its last mount has ended: more than a second on a busy machine.
const LET_GO_TIMEOUT: Duration = Duration::from_secs(20);

/// Everything that has to be taken down again, in the order in which it was put up.
pub(crate) struct Attached {
    /// Of how many volumes of the instance it is made.
    volumes: u32,
    folder: VolumeDir,
    pipeline: Arc<Pipeline>,
    session: Option<BackgroundSession>,
    threads: Vec<JoinHandle<()>>,
    /// Until the device takes it.
    place: Option<LowPlace>,
    device: Option<LoopDevice>,
    mount: Option<PathBuf>,
    file_system: Option<FileSystem>,
    mount_options: String,
    follower: Option<PathFollower>,
    listener: Option<Listener>,
}

impl Attached {
    /// Puts up the data path; the calling thread's priority is that of its threads. What is left of a volume that cannot be
    /// started is removed.
    pub(crate) fn start(
        core: &Arc<Core>,
        spec: &ServeSpec,
        storage: &Storage,
        commands: &Sender<Command>,
    ) -> Result<Self> {
        let place = LowPlace::reserve()?;
        let folder = VolumeDir::of(&spec.state_dir, &spec.name)?;
        folder.create()?;
        last_words::attached(folder.path());
        let begin = || {
            let layer = folder.layer(&spec.store);
            let (size_bytes, image) = (storage.total.size_bytes, spec.image.as_deref());
            let store = Store::create(&layer, size_bytes, image, spec.store != "memory")?;
            serve_content(core, store, spec, storage, &folder, commands).inspect_err(|_| {
                let _ = fs::remove_dir_all(&layer);
            })
        };
        match begin() {
            Ok(Serving { pipeline, threads, session }) => Ok(Self {
                volumes: storage.volumes(),
                folder,
                pipeline,
                session: Some(session),
                threads,
                place: Some(place),
                device: None,
                mount: None,
                file_system: None,
                mount_options: spec.mount_options.clone(),
                follower: None,
                listener: None,
            }),
            Err(error) => {
                last_words::detached(folder.path());
                let _ = fs::remove_dir_all(folder.path());
                Err(error)
            }
        }
    }

    /// Puts up the rest: device, file system, mount, control socket. Returns the volume's facts.
    pub(crate) fn bring_up(
        &mut self,
        spec: &ServeSpec,
        storage: &Storage,
        instance: &InstanceFacts,
        log: Option<LogBuffer>,
        commands: &Sender<Command>,
    ) -> Result<Value> {
        let file = self.folder.fuse().join(FILE_NAME);
        let (path, proofs) = self.put_up_device(&file, spec, storage)?;
        let (overhead, confirmed) =
            if spec.calibrate { calibrate(&self.pipeline, &path)? } else { (BaseOverhead::default(), true) };
        let kind = match spec.formatted_with() {
            None => file_system::found(&path, spec.file_system)?,
            Some(kind) => Some(file_system::format(&path, kind, storage.stripes())?),
        };
        self.file_system = kind;
        if let Some(target) = &spec.mount {
            file_system::mount(&path, target, kind, &spec.mount_options)?;
            self.mount = Some(target.clone());
        }
        let restored = self.pipeline.restored(storage);
        let started_ns = self.pipeline.arm(overhead, log, &restored);
        self.follower = Some(PathFollower::start(&path, overhead.beside_ns, self.pipeline.clone())?);
        let pid = std::process::id();
        let facts = json!({
            "name": spec.name, "pid": pid, "pid_start_ticks": start_ticks(pid), "spec": storage, "mount": spec.mount,
            "block_device": path, "fuse_dir": self.folder.fuse(), "backing_file": file, "seed": instance.seed,
            "file_system": kind, "mount_options": spec.mount_options, "store": spec.store, "image": spec.image, "image_bytes": self.pipeline.image_bytes(), "restored_bytes": restored.bytes(),
            "layer": self.pipeline.layer(), "submit_log": spec.submit_log, "write_log": self.pipeline.write_log_path(), "cache": spec.cache, "instance": spec.instance,
            "dilation": instance.dilation.times(), "instance_type": instance.instance_type, "instance_limits": instance.limits,
            "started_monotonic_ns": started_ns, "base_overhead": overhead, "base_overhead_confirmed": confirmed,
            "base_overhead_8k": {"read_ns": overhead.read.ns(8192), "write_ns": overhead.write.ns(8192)},
            "proofs": proofs, "refused_precautions": instance.refused,
        });
        let served = Served::new(&self.folder, facts.clone(), storage.clone(), self.pipeline.clone())?;
        self.listener = Some(control::serve(&self.folder, served, commands.clone())?);
        Ok(facts)
    }

    fn put_up_device(&mut self, file: &Path, spec: &ServeSpec, storage: &Storage) -> Result<(PathBuf, Proofs)> {
        let fuse_magic = file_system_magic(&self.folder.fuse())?;
        let place = self.place.take().expect("a volume has one device");
        let device = self.device.insert(LoopDevice::attach(file, place)?);
        let proofs = device.prove(file, fuse_magic, storage.total.params().request_bytes() / 1024, spec.cache)?;
        Ok((device.path.clone(), proofs))
    }

    /// Of how many volumes of the instance it is made.
    pub(crate) fn volumes(&self) -> u32 {
        self.volumes
    }

    /// Its content and its requests.
    pub(crate) fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }

    /// Refuses a place where its content cannot be kept as an image.
    pub(crate) fn require_savable(&self, target: &Path) -> Result<()> {
        fault::require_content(&self.pipeline, "detach it without --save-image")?;
        self.pipeline.require_savable(target)
    }

    /// Refuses to detach what a program uses, or what is mounted elsewhere, before anything is changed. What looks at the device for a
    /// moment, as `lsblk` does, is waited for.
    fn require_unused(&self) -> Result<()> {
        let Some(device) = &self.device else { return Ok(()) };
        let begun = Instant::now();
        loop {
            let claims = Claims::of(&device.path, self.mount.as_deref());
            if claims.is_empty() {
                return Ok(());
            }
            if begun.elapsed() > CLAIM_TIMEOUT {
                return Err(claims.refusal(&device.path));
            }
            std::thread::sleep(CLAIM_INTERVAL);
        }
    }

    /// Unmounts it and makes sure that nobody uses the device. Where that fails the volume is as it was: mounted, with its limits and its
    /// faults; what could not be put back the error says.
    pub(crate) fn let_go(&mut self) -> Result<()> {
        self.require_unused()?;
        let healed = self.hurry();
        let mount = self.mount.clone().filter(|target| file_system::is_mount_point(target));
        let freed = self.unmount().and_then(|()| self.require_unclaimed());
        let Err(mut refusal) = freed else { return Ok(()) };
        if let (Some(target), None, Some(device)) = (mount, &self.mount, &self.device) {
            match file_system::mount(&device.path, &target, self.file_system, &self.mount_options) {
                Ok(()) => self.mount = Some(target),
                Err(error) => {
                    let lost = format!("; it is not mounted on {} any more: {}", target.display(), error.message);
                    refusal.message.push_str(&lost);
                }
            }
        }
        self.stay(healed);
        Err(refusal)
    }

    /// From here on nothing is delayed and no fault is in force: detaching takes as long as it takes. The faults that were.
    fn hurry(&self) -> Vec<(usize, VolumeFault)> {
        let (_, faults) = self.pipeline.faults();
        self.pipeline.heal();
        self.pipeline.set_mode(Mode::Bypass);
        faults
    }

    /// It stays after all, with its faults.
    fn stay(&self, faults: Vec<(usize, VolumeFault)>) {
        self.pipeline.set_mode(Mode::Model);
        for (member, fault) in faults {
            self.pipeline.fail_again(member, fault);
        }
    }

    fn unmount(&mut self) -> Result<()> {
        let Some(target) = &self.mount else { return Ok(()) };
        // Another process may have unmounted it, or removed the folder with it.
        if file_system::is_mount_point(target) {
            file_system::unmount(target)?;
        }
        self.mount = None;
        Ok(())
    }

    /// Refuses to remove what another process has mounted, or built a device on: all that is on it would be lost.
    fn require_unclaimed(&self) -> Result<()> {
        self.device.as_ref().map_or(Ok(()), |device| device.require_unclaimed(CLAIM_TIMEOUT, LET_GO_TIMEOUT))
    }

    /// Takes everything down, as far as it is up. The first error is returned, but nothing is left out for it.
    pub(crate) fn take_down(mut self, save_image: Option<&Path>) -> Result<()> {
        drop(self.hurry());
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
                result.and(ended.context(|| "the FUSE session ended with an error".to_owned(), "run `pgdyno doctor`"));
        }
        if let Some(listener) = self.listener.take() {
            listener.finish(&self.folder);
        }
        self.pipeline.stop();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        let kept = match save_image {
            Some(target) => self.pipeline.save(target).inspect(|()| {
                // The content is safe whatever else went wrong.
                result = std::mem::replace(&mut result, Ok(())).map_err(|error| with_image(error, target));
            }),
            None => self
                .pipeline
                .remove()
                .context(|| "the volume's files cannot be removed".to_owned(), "run `pgdyno doctor --clean`"),
        };
        last_words::detached(self.folder.path());
        let _ = fs::remove_dir_all(self.folder.path());
        result.and(kept)
    }
}

/// The error of a detach whose content was kept all the same.
fn with_image(error: Fault, target: &Path) -> Fault {
    let Fault { message, remedy, of_host, .. } = error;
    let message = format!("{message}; the content is complete in {}", target.display());
    Fault { of_host, ..Fault::new(message, remedy) }
        .coded("volume.detach.incomplete", json!({"image": target, "image_complete": true}))
}

/// An event loop that was taking a request in (the release of the loop device's file, which nothing waits for) when the
/// connection went gets ECONNABORTED instead of ENODEV. No request for data can be under way: the device is gone.
fn aborted_is_ended(ended: std::io::Result<()>) -> std::io::Result<()> {
    match ended {
        Err(error) if error.raw_os_error() == Some(libc::ECONNABORTED) => Ok(()),
        other => other,
    }
}

/// What of a volume is up before the kernel knows of it.
struct Serving {
    pipeline: Arc<Pipeline>,
    threads: Vec<JoinHandle<()>>,
    session: BackgroundSession,
}

/// Puts up what serves the content by FUSE. The workers of one that cannot be served end.
fn serve_content(
    core: &Arc<Core>,
    store: Store,
    spec: &ServeSpec,
    storage: &Storage,
    folder: &VolumeDir,
    commands: &Sender<Command>,
) -> Result<Serving> {
    let pipeline = Pipeline::new(core, store, storage, (&spec.name, spec.cache))?;
    let begin = || -> Result<Serving> {
        let mut threads = Vec::new();
        for _ in 0..if pipeline.disk.is_some() { DISK_WORKERS } else { 0 } {
            threads.push(spawn("disk", pipeline.clone(), |pipeline| pipeline.work())?);
        }
        let request_bytes = u32::try_from(storage.total.params().request_bytes()).unwrap_or(u32::MAX);
        let exported = Arc::new(Exported { pipeline: pipeline.clone(), request_bytes });
        let session = start_session(folder, spec, exported, commands.clone())?;
        Ok(Serving { pipeline: pipeline.clone(), threads, session })
    };
    begin().inspect_err(|_| pipeline.stop())
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

/// Mounts the volume's file and serves it.
fn start_session(
    folder: &VolumeDir,
    spec: &ServeSpec,
    exported: Arc<Exported>,
    commands: Sender<Command>,
) -> Result<BackgroundSession> {
    let remedy = "check that /dev/fuse exists and that you are root (`pgdyno doctor`)";
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName("pgdyno".to_owned()),
        MountOption::Subtype("pgdyno".to_owned()),
        MountOption::NoExec,
        MountOption::NoSuid,
        MountOption::NoDev,
        MountOption::CUSTOM(format!("max_read={}", exported.request_bytes)),
    ];
    config.n_threads = Some(EVENT_LOOPS);
    config.clone_fd = true;
    let ended = Command::SessionEnded { name: spec.name.clone() };
    let fs = VolumeFs::new(exported, commands, ended);
    // Where the kernel refuses the mount, fuser tries fusermount and reports that it is missing; `pgdyno doctor` asks the
    // kernel itself, and an attach does so before it comes here.
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
    Err(Fault::new(
        format!("{} is not the volume's FUSE mount: its magic number is {magic:#x}", folder.display()),
        remedy,
    ))
}
