//! What to serve, and what a user's words for a volume come to: the catalogue's rules, or the file of a twin, which only a
//! host can open.

use std::fs;
use std::path::{Path, PathBuf};

use pgdyno_catalog::{InstanceType, Resolved, Storage, twin_path};
use pgdyno_crash::Cache;
use pgdyno_host::{Context, Fault, Result};
use pgdyno_volume::InstanceLimits;
use serde::{Deserialize, Serialize};

use crate::clock::Dilation;
use crate::file_system::FileSystem;

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
    /// What to format it with (ext4 if omitted); for an image, what must be on it.
    pub file_system: Option<FileSystem>,
    /// `memory`, or a folder on a disk.
    #[serde(default = "memory")]
    pub store: String,
    /// Where to write the submit log, which is of all the instance's volumes.
    pub submit_log: Option<PathBuf>,
    /// Where to write the write log, which is of all the instance's volumes, when the last of them is gone.
    pub write_log: Option<PathBuf>,
    /// Bytes of data that the write log holds at most.
    #[serde(default = "write_log_bytes")]
    pub write_log_limit_bytes: u64,
    /// What a write that was answered is worth.
    #[serde(default)]
    pub cache: Cache,
    /// Seed of the instance, 0 unless its first volume says another; a volume that joins has it, and may not ask for another.
    pub seed: Option<u64>,
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
    /// Whether the path is measured first, so that answers are in time: not where nobody looks at the time.
    #[serde(default = "calibrated")]
    pub calibrate: bool,
}

fn undilated() -> u32 {
    1
}

fn calibrated() -> bool {
    true
}

/// Twenty seconds of gp3 at its largest throughput of 2026, and half as much beside.
fn write_log_bytes() -> u64 {
    1 << 30
}

fn memory() -> String {
    "memory".to_owned()
}

impl ServeSpec {
    pub(crate) fn storage(&self) -> Result<Storage> {
        resolve(&self.spec)
    }

    /// The same with paths that mean the same everywhere: the daemon that serves it works in another directory.
    pub(crate) fn anywhere(&self, storage: &Storage) -> Result<Self> {
        let absolute = |path: &Path| {
            let remedy = "name it by an absolute path";
            std::path::absolute(path).context(|| format!("cannot resolve {}", path.display()), remedy)
        };
        let each = |path: &Option<PathBuf>| path.as_deref().map(absolute).transpose();
        let store = match self.store.as_str() {
            "memory" => memory(),
            folder => absolute(Path::new(folder))?.to_string_lossy().into_owned(),
        };
        Ok(Self {
            spec: storage.total.spec.clone(),
            mount: each(&self.mount)?,
            state_dir: absolute(&self.state_dir)?,
            image: each(&self.image)?,
            submit_log: each(&self.submit_log)?,
            write_log: each(&self.write_log)?,
            store,
            ..self.clone()
        })
    }

    /// The file system that it is formatted with; `None`: an image brings its own.
    pub(crate) fn formatted_with(&self) -> Option<FileSystem> {
        if self.image.is_some() { None } else { Some(self.file_system.unwrap_or(FileSystem::Ext4)) }
    }

    pub(crate) fn require_formattable(&self, storage: &Storage) -> Result<()> {
        self.formatted_with().map_or(Ok(()), |kind| kind.require_formattable(storage))
    }

    /// What is the same for all volumes of the instance.
    pub(crate) fn instance_facts(&self) -> Result<InstanceFacts> {
        let (seed, dilation) = (self.seed.unwrap_or(0), Dilation::new(self.dilation)?);
        let Some(name) = &self.instance_type else {
            let (instance_type, limits, attachments, refused) = (None, None, None, Vec::new());
            return Ok(InstanceFacts { seed, dilation, instance_type, limits, attachments, refused });
        };
        let found = InstanceType::parse(name).map_err(|error| Fault::new(error.message, error.remedy))?;
        let Some(ebs) = found.ebs else {
            return Err(Fault::new(
                format!("{} has no dedicated bandwidth to its volumes", found.instance),
                "name a type that has (`pgdyno catalog instances`), or omit the type: then volumes share no limit",
            ));
        };
        let (instance_type, limits) = (Some(found.instance), Some(ebs.model));
        let attachments = found.attachments;
        Ok(InstanceFacts { seed, dilation, instance_type, limits, attachments, refused: Vec::new() })
    }
}

/// Refuses a volume that would not do its provisioned IOPS on this type of instance; of an array, each member by itself.
pub(crate) fn require_iops(instance_type: Option<&str>, storage: &Storage) -> Result<()> {
    let Some(name) = instance_type else { return Ok(()) };
    let instance = InstanceType::parse(name).map_err(|error| Fault::new(error.message, error.remedy))?;
    let member = storage.member();
    let most = instance.volume_iops.get(&member.volume_type).copied();
    match (member.limits.iops, most) {
        (Some(each), Some(most)) if each > most => Err(Fault::new(
            format!(
                "{} with {each} IOPS does at most {most} on {name}, which is not a Nitro instance",
                member.volume_type
            ),
            format!("write iops={most}, which is what it does there, or name a Nitro instance, such as r6i.16xlarge"),
        )),
        _ => Ok(()),
    }
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
    pub(crate) attachments: Option<u32>,
    /// Precautions that the host refused.
    pub(crate) refused: Vec<String>,
}

/// Resolves a volume or an array: `[raid10:][Nx]TYPE[:key=value,...]` by the catalogue, `twin:PATH` or `PATH.toml` by the file at that path.
///
/// # Errors
/// What the catalogue refuses, a file that cannot be read, or one that is not a twin.
pub fn resolve(spec: &str) -> Result<Storage> {
    let refused = |error: pgdyno_catalog::SpecError| Fault::new(error.message, error.remedy);
    let Some(file) = twin_path(spec) else {
        return Storage::parse(spec).map_err(refused);
    };
    let remedy = "name the file that `pgdyno volume fit` wrote";
    let cannot = || format!("cannot read the twin {file:?}");
    // Absolute, so that the recorded specification means the same from anywhere on this machine.
    let path = std::path::absolute(file).context(cannot, remedy)?;
    let text = fs::read_to_string(&path).context(cannot, remedy)?;
    let total = Resolved::of_twin(&path.to_string_lossy(), &text).map_err(refused)?;
    Ok(Storage { total, array: None })
}
