//! Elastic volumes: a volume becomes another one while it is used.
//!
//! The new figures hold from the instant at which they are asked for: a provider promises a performance between the old
//! and the new until the modification is completed, and the model takes the new one. No request fails or is held back.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use pgdyno_catalog::{Storage, size_key};
use pgdyno_host::{Context, Fault, Result};
use pgdyno_volume::{Course, FrequencyRule, ModificationState, Modifications};
use serde::Serialize;

use crate::file_system::{FileSystem, grow_file_system, require_growable};
use crate::pipeline::Pipeline;
use crate::precautions::{run, tool};
use crate::spec::{require_iops, resolve};

/// A modification is seen as modifying for some seconds (Amazon EBS user guide, "Monitor volume modifications": size
/// changes "usually take a few seconds").
const MODIFYING: Duration = Duration::from_secs(5);
/// A full volume of 1 TiB is optimized in about six hours (ibid.), and seldom longer than a day.
const OPTIMIZING_PER_TIB: Duration = Duration::from_secs(6 * 3600);
const OPTIMIZING_MAX: Duration = Duration::from_secs(24 * 3600);
const TIB: u64 = 1 << 40;
const MINUTE_NS: u64 = 60_000_000_000;

/// A volume that can be modified: what it is now, and when it became so.
#[derive(Debug)]
pub(crate) struct Elastic {
    pub(crate) storage: Storage,
    history: History,
}

/// When a volume was modified. It can be asked for while a modification waits for its file system to grow.
#[derive(Clone, Debug, Default)]
pub(crate) struct History(Arc<Mutex<Modifications>>);

/// What is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) spec: &'a str,
    pub(crate) rule: FrequencyRule,
    /// How long it is optimized; `None`: by its size.
    pub(crate) optimizing: Option<Duration>,
}

/// What a volume says of its last modification.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Progress {
    state: ModificationState,
    /// Seconds until it is completed.
    completed_in_s: u64,
}

/// Where the volume is to be seen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen<'a> {
    pub(crate) file: &'a Path,
    pub(crate) device: &'a Path,
    /// Where its file system is mounted, and which it is.
    pub(crate) mount: Option<(&'a Path, FileSystem)>,
    /// The type of its instance, if that has one.
    pub(crate) instance_type: Option<&'a str>,
}

impl Elastic {
    pub(crate) fn new(storage: Storage) -> Self {
        Self { storage, history: History::default() }
    }

    /// When it was modified, for threads that must not wait for a modification.
    pub(crate) fn history(&self) -> History {
        self.history.clone()
    }

    /// Modifies the volume, or says which rule forbids it.
    pub(crate) fn modify(&mut self, wanted: &Wanted<'_>, pipeline: &Pipeline, seen: Seen<'_>) -> Result<()> {
        let storage = resolve(wanted.spec)?;
        require_possible(&self.storage, &storage)?;
        require_iops(seen.instance_type, &storage)?;
        let larger = storage.total.size_bytes > self.storage.total.size_bytes;
        if let Some((_, kind)) = seen.mount.filter(|_| larger) {
            require_growable(kind)?;
        }
        let optimizing = wanted.optimizing.unwrap_or_else(|| optimizing(&storage));
        let course = Course { modifying_ns: nanos(MODIFYING.min(optimizing)), optimizing_ns: nanos(optimizing) };
        let now = pipeline.core.clock.now();
        self.history.lock().allows(now, wanted.rule).map_err(|refused| {
            // The reader waits by a real clock.
            let wait_ns = pipeline.core.clock.real_ns(refused.allowed_at - now);
            Fault::new(
                refused.rule,
                format!("ask again in {} min, or attach another volume", wait_ns.div_ceil(MINUTE_NS)),
            )
        })?;
        if larger {
            let remedy = "detach the volume with --save-image, and attach the image as a larger one";
            pipeline.grow(storage.total.size_bytes).context(|| "cannot make the volume larger".to_owned(), remedy)?;
        }
        pipeline.modify(&storage);
        self.history.lock().count(now, course);
        self.storage = storage;
        if larger { seen.grow() } else { Ok(()) }
    }
}

impl History {
    fn lock(&self) -> MutexGuard<'_, Modifications> {
        self.0.lock().expect("who counts modifications does not panic")
    }

    /// State of the last modification; `None` when there was none.
    pub(crate) fn progress(&self, now: u64) -> Option<Progress> {
        let modifications = self.lock();
        let state = modifications.state(now)?;
        let left_ns = modifications.completed_at()?.saturating_sub(now);
        Some(Progress { state, completed_in_s: left_ns.div_ceil(1_000_000_000) })
    }
}

impl Seen<'_> {
    /// Tells the kernel how large the volume has become, through processes of their own: a process that asks for the file's size
    /// waits for this daemon (see `calibrate`).
    fn grow(self) -> Result<()> {
        let growth = |(target, kind): (&Path, FileSystem)| format!(", then {}", kind.growth(self.device, target));
        let then = self.mount.map(growth).unwrap_or_default();
        let (file, device) = (self.file.display(), self.device.display());
        let remedy = format!(
            "the volume is larger, and its device is not: mend that, then run `stat {file}` and \
             `losetup --set-capacity {device}`{then}"
        );
        run(tool("stat").arg(self.file), &remedy)?;
        run(tool("losetup").arg("--set-capacity").arg(self.device), &remedy)?;
        match self.mount {
            Some((target, kind)) => grow_file_system(kind, self.device, target),
            None => Ok(()),
        }
    }
}

fn require_possible(is: &Storage, wanted: &Storage) -> Result<()> {
    let refuse = |message: String, remedy: String| Err(Fault::new(message, remedy));
    if is.total.spec == wanted.total.spec {
        return refuse(format!("the volume is {} already", is.total.spec), "give other figures".to_owned());
    }
    if is.total.volatile || wanted.total.volatile {
        return refuse("the disks of an instance cannot be modified".to_owned(), "modify a volume".to_owned());
    }
    let layout = |storage: &Storage| {
        let params = storage.array.as_ref().map(|array| &array.params)?;
        Some((params.columns, params.copies, params.chunk_bytes, params.remote_round_trip_ns))
    };
    if layout(is) != layout(wanted) {
        let message = "the members of an array can be modified, its layout cannot".to_owned();
        return refuse(message, format!("keep its layout and give other figures: {}", is.total.spec));
    }
    let manner = |storage: &Storage| {
        storage
            .total
            .initialization
            .as_ref()
            .map(|initialization| (initialization.kind.clone(), initialization.mib_per_s))
    };
    if manner(wanted).is_some_and(|asked| manner(is) != Some(asked)) {
        let message = "how a volume gets the blocks of its snapshot is chosen when it is made".to_owned();
        return refuse(message, "omit init=, or attach it as another volume".to_owned());
    }
    let (from, to) = (is.total.size_bytes, wanted.total.size_bytes);
    if to < from {
        let message =
            format!("a volume can only be made larger: it has {} GiB, and {} GiB was asked for", from >> 30, to >> 30);
        let each = if is.array.is_some() { " for each volume" } else { "" };
        return refuse(message, format!("keep its size: size={}{each}", size_key(is.member().size_bytes)));
    }
    if is.member().params().order != wanted.member().params().order {
        return refuse(
            format!(
                "{} answers waiting requests in another order, and the order cannot be modified",
                wanted.total.spec
            ),
            if wanted.total.spec.contains("order=") {
                "omit order=, or attach it as another volume".to_owned()
            } else {
                "attach it as another volume".to_owned()
            },
        );
    }
    Ok(())
}

/// The members of an array are volumes of their own to the provider, and are modified at the same time.
fn optimizing(storage: &Storage) -> Duration {
    let seconds = u128::from(storage.member().size_bytes) * u128::from(OPTIMIZING_PER_TIB.as_secs()) / u128::from(TIB);
    Duration::from_secs(u64::try_from(seconds).unwrap_or(u64::MAX)).min(OPTIMIZING_MAX)
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_provider_does_is_refused_with_the_rule() {
        for (is, wanted, part) in [
            ("gp3:size=100GiB", "gp3:size=50GiB", "can only be made larger: it has 100 GiB, and 50 GiB was asked for"),
            ("gp3", "gp3", "already"),
            ("4xgp3", "5xgp3", "its layout cannot"),
            ("4xgp3", "gp3:size=400GiB", "its layout cannot"),
            ("4xgp3:chunk=64KiB", "4xgp3:chunk=128KiB,iops=4000", "its layout cannot"),
            ("gp3", "gp3:multi_az=1ms", "its layout cannot"),
            ("gp3", "gp3:iops=4000,order=fifo", "order"),
            ("gp3", "gp3:iops=4000,init=lazy", "chosen when it is made"),
            ("gp3:init=lazy", "gp3:iops=4000,init=200MiB/s", "chosen when it is made"),
        ] {
            let [is, asked] = [is, wanted].map(|spec| Storage::parse(spec).expect("a volume"));
            let error = require_possible(&is, &asked).expect_err(wanted);
            assert!(error.message.contains(part), "{wanted}: {}", error.message);
        }
        for (is, wanted, remedy) in [
            ("gp3:size=100GiB", "gp3:size=50GiB", "keep its size: size=100GiB"),
            ("4xgp3:size=100GiB", "4xgp3:size=50GiB", "keep its size: size=100GiB for each volume"),
            ("gp3", "gp3:iops=4000,order=fifo", "omit order=, or attach it as another volume"),
            ("gp3", "null", "attach it as another volume"),
        ] {
            let [is, asked] = [is, wanted].map(|spec| Storage::parse(spec).expect("a volume"));
            assert_eq!(require_possible(&is, &asked).expect_err(wanted).remedy, remedy, "{wanted}");
        }
        for (is, wanted) in [
            ("gp3", "gp3:iops=4000"),
            ("gp3", "io2bx:iops=16000"),
            ("4xgp3", "4xgp3:size=200GiB"),
            ("gp3:init=lazy", "gp3:iops=4000"),
            ("gp3:init=lazy", "gp3:iops=4000,init=lazy"),
        ] {
            let [is, asked] = [is, wanted].map(|spec| Storage::parse(spec).expect("a volume"));
            require_possible(&is, &asked).expect(wanted);
        }
    }

    #[test]
    fn a_tebibyte_of_each_volume_is_optimized_in_six_hours_and_nothing_in_more_than_a_day() {
        for (spec, seconds) in [
            ("gp3:size=1TiB", 21_600),
            ("gp3:size=256GiB", 5_400),
            ("gp3:size=16TiB", OPTIMIZING_MAX.as_secs()),
            ("4xgp3:size=1TiB", 21_600),
        ] {
            let storage = Storage::parse(spec).expect("a volume");
            assert_eq!(optimizing(&storage).as_secs(), seconds, "{spec}");
        }
    }
}
