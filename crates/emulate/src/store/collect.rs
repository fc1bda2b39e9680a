//! Removing the layers of deleted snapshots that nothing needs any more, and merging those that one other image needs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::image::{self, Meta, read_meta};
use super::layer::open_data_unheld;
use super::lock::Alone;
use super::merge::{Merged, merge};

/// What is to be collected.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Collection {
    /// Layers of snapshots that are not listed: images, or layers that never became one.
    pub unlisted: Vec<PathBuf>,
    /// The images that must stay as they are.
    pub needed: Vec<PathBuf>,
    /// Whether layers are merged; else only what nothing needs is removed.
    pub merge: bool,
    /// Only say what would be removed.
    pub dry_run: bool,
}

/// What became of a collection.
#[derive(Debug, Default, Serialize)]
pub struct Collected {
    /// Layers that are gone.
    pub removed: Vec<PathBuf>,
    /// Those that stay although they could go, and why.
    pub kept: Vec<Kept>,
}

/// An unlisted layer that stays.
#[derive(Debug, Serialize)]
pub struct Kept {
    /// Its folder.
    pub image: PathBuf,
    /// Why it stays.
    #[serde(flatten)]
    pub why: Why,
}

/// Why an unlisted layer stays.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum Why {
    /// Volumes read it. What nobody reads of it was given back.
    InUse,
    /// Several images stand on it.
    Shared,
    /// Images were saved of volumes on it, and are not where they were: removed, or moved and still standing on it.
    ImageMissing {
        /// Where they were.
        images: Vec<PathBuf>,
    },
    /// An image that may stand on it is damaged.
    Damaged {
        /// That one.
        by: PathBuf,
    },
    /// There is too little room to move its blocks.
    NoRoom,
    /// The machine refused.
    Failed {
        /// What it said.
        message: String,
    },
}

/// What an image's folder says about what is below.
enum Below {
    Nothing,
    Image(PathBuf),
    /// It is no image yet, or not any more: nothing can read it but a volume that has it open.
    Unfinished,
    Damaged,
}

/// The layers that are looked at, by their paths without symbolic links: what each stands on, and what stands on it.
#[derive(Default)]
struct Layers {
    below: BTreeMap<PathBuf, Below>,
    above: BTreeMap<PathBuf, BTreeSet<PathBuf>>,
    /// A damaged image of each folder of images that has one: what it stands on is not known.
    damaged: BTreeMap<PathBuf, PathBuf>,
}

/// Removes what nothing needs, from the top, and merges what one image needs with that image.
#[must_use]
pub fn collect(wanted: &Collection) -> Collected {
    let canonical = |folders: &[PathBuf]| -> Vec<PathBuf> {
        folders.iter().filter_map(|folder| fs::canonicalize(folder).ok()).collect()
    };
    let listed: BTreeSet<PathBuf> = canonical(&wanted.needed).into_iter().collect();
    let mut seen = listed.clone();
    let mut unlisted = canonical(&wanted.unlisted);
    unlisted.retain(|folder| seen.insert(folder.clone()));
    let mut layers = Layers::read(&listed, &unlisted);
    let mut collected = Collected::default();
    // Each that may have become the uppermost, the newest first.
    let (mut todo, mut done) = (unlisted.clone(), BTreeSet::new());
    while let Some(folder) = todo.pop() {
        if layers.above(&folder).next().is_some() || done.contains(&folder) {
            continue;
        }
        done.insert(folder.clone());
        let removed = match layers.why_needed(&folder) {
            Some(why) => Err(why),
            None => unheld(&folder, || layers.why_needed(&folder), wanted.dry_run),
        };
        match removed {
            Ok(()) => {
                todo.extend(layers.forget(&folder).filter(|below| unlisted.contains(below)));
                collected.removed.push(folder);
            }
            Err(why) => collected.kept.push(Kept { image: folder, why }),
        }
    }
    if wanted.merge && !wanted.dry_run {
        for folder in unlisted.into_iter().filter(|folder| !done.contains(folder)) {
            match layers.merge(&folder) {
                Ok(()) => collected.removed.push(folder),
                Err(why) => collected.kept.push(Kept { image: folder, why }),
            }
        }
    }
    collected
}

impl Layers {
    fn read(listed: &BTreeSet<PathBuf>, unlisted: &[PathBuf]) -> Self {
        let mut layers = Self::default();
        for folder in listed.iter().chain(unlisted) {
            layers.add(folder.clone(), below(folder));
        }
        for folder in unlisted {
            let noted = [image::SAVED, image::ABOVE].map(|list| image::noted(folder, list).unwrap_or_default());
            for other in noted.concat().iter().filter(|other| image::stands_on(other, folder)) {
                if let Ok(other) = fs::canonicalize(other) {
                    layers.above.entry(folder.clone()).or_default().insert(other);
                }
            }
        }
        let damaged = layers.below.iter().filter(|(folder, below)| {
            matches!(below, Below::Damaged) && (listed.contains(*folder) || layers.above(folder).next().is_some())
        });
        let place = |folder: &Path| folder.parent().unwrap_or(folder).to_path_buf();
        layers.damaged = damaged.map(|(folder, _)| (place(folder), folder.clone())).collect();
        layers
    }

    fn add(&mut self, folder: PathBuf, below: Below) {
        if let Below::Image(below) = &below
            && *below != folder
        {
            self.above.entry(below.clone()).or_default().insert(folder.clone());
        }
        self.below.insert(folder, below);
    }

    /// The image below that it does not stand on any more.
    fn forget(&mut self, folder: &Path) -> Option<PathBuf> {
        let Some(Below::Image(below)) = self.below.remove(folder) else { return None };
        self.above.entry(below.clone()).or_default().remove(folder);
        Some(below)
    }

    /// The images that stand on one.
    fn above(&self, folder: &Path) -> impl Iterator<Item = &PathBuf> {
        self.above.get(folder).into_iter().flatten()
    }

    /// Why one must stay as it is, whatever stands on it.
    fn why_needed(&self, folder: &Path) -> Option<Why> {
        if let Some(by) = folder.parent().and_then(|place| self.damaged.get(place)) {
            return Some(Why::Damaged { by: by.clone() });
        }
        match image::noted(folder, image::SAVED) {
            Err(error) => Some(Why::Failed { message: error.to_string() }),
            Ok(saved) => {
                let is_away = |saved: &PathBuf| !image::stands_on(saved, folder) && !is_same(saved, folder);
                let images: Vec<PathBuf> = saved.into_iter().filter(is_away).collect();
                (!images.is_empty()).then_some(Why::ImageMissing { images })
            }
        }
    }

    /// Merges one with what stands on it.
    fn merge(&mut self, folder: &Path) -> Result<(), Why> {
        if let Some(why) = self.why_needed(folder) {
            return Err(why);
        }
        let above: Vec<PathBuf> = self.above(folder).cloned().collect();
        let [upper] = <[PathBuf; 1]>::try_from(above).map_err(|_| Why::Shared)?;
        match merge(folder, &upper) {
            Ok(Merged::Gone) => {
                self.forget(folder);
                self.forget(&upper);
                self.add(upper.clone(), below(&upper));
                Ok(())
            }
            Ok(Merged::Shared) => Err(Why::Shared),
            Ok(Merged::InUse) => Err(Why::InUse),
            Ok(Merged::NoRoom) => Err(Why::NoRoom),
            Err(error) => Err(Why::Failed { message: error.message }),
        }
    }
}

fn below(folder: &Path) -> Below {
    match read_meta(folder) {
        Ok(Meta { parent: None, .. }) => Below::Nothing,
        Ok(Meta { parent: Some(parent), .. }) => Below::Image(fs::canonicalize(&parent).unwrap_or(parent)),
        Err(error) if error.code == "image.missing" => Below::Unfinished,
        Err(_) => Below::Damaged,
    }
}

fn is_same(one: &Path, other: &Path) -> bool {
    fs::canonicalize(one).is_ok_and(|one| one == other)
}

/// Removes a layer that nobody has open or stands on, unless it is needed by then.
fn unheld(folder: &Path, why_needed: impl Fn() -> Option<Why>, dry_run: bool) -> Result<(), Why> {
    let alone = || {
        let (held, data) = (File::open(folder)?, open_data_unheld(folder)?);
        let nobody = Alone::take(&held).zip(data.as_ref().map_or(Some(None), |data| Alone::take(data).map(Some)));
        let Some(_alone) = nobody else { return Ok(Some(Why::InUse)) };
        if dry_run {
            return Ok(None);
        }
        // Who stood on it a moment ago has noted what was made of that before letting it go.
        let mut noted = image::noted(folder, image::ABOVE)?;
        noted.extend(image::noted(folder, image::SAVED)?);
        let is_above = noted.iter().any(|other| image::stands_on(other, folder));
        let why = why_needed().or(is_above.then_some(Why::Shared));
        if why.is_none() {
            image::remove(folder)?;
        }
        Ok(why)
    };
    match alone() {
        Ok(None) => Ok(()),
        Ok(Some(why)) => Err(why),
        Err(error) => Err(Why::Failed { message: io::Error::to_string(&error) }),
    }
}
