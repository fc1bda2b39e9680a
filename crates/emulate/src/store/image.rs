//! Images: folders with an immutable layer, and what each says about itself.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use pgdyno_host::{Fault, Result};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::layer::{Layer, open_data, replace, sync_folder};
use super::lock::Base;

const META: &str = "image.json";
/// Paths of images that volumes on this one were saved as, a JSON string a line. They are the user's, who may move them.
pub(crate) const SAVED: &str = "saved";
/// The same of snapshots of volumes on this one. They are not moved, so one that is not there is gone.
pub(crate) const ABOVE: &str = "above";
/// What such files have at most: two paths, and ten thousand.
const META_BYTES_MAX: u64 = 64 << 10;
const NOTED_BYTES_MAX: u64 = 64 << 20;
const REMEDY: &str = "name an image that `pgdyno volume detach --save-image` made";

/// What an image's folder says about it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Meta {
    version: u32,
    pub(crate) size_bytes: u64,
    pub(crate) parent: Option<PathBuf>,
}

/// Makes an image of the folder of a layer that is not written any more. `parent` is the image below.
pub(crate) fn write(folder: &Path, layer: &Layer, parent: Option<&Path>) -> io::Result<()> {
    layer.save_map(folder)?;
    write_meta(folder, layer.size_bytes(), parent)
}

/// Says anew what an image is.
pub(crate) fn write_meta(folder: &Path, size_bytes: u64, parent: Option<&Path>) -> io::Result<()> {
    let meta = Meta { version: 1, size_bytes, parent: parent.map(Path::to_path_buf) };
    let text = serde_json::to_vec_pretty(&meta)?;
    replace(folder, META, |mut file| file.write_all(&text))
}

/// The layers of an image and of all below, the oldest first, for a volume of `size_bytes`.
pub(crate) fn open_images(image: Option<&Path>, size_bytes: u64, direct: bool) -> Result<Vec<Layer>> {
    let (mut layers, mut seen) = (Vec::new(), BTreeSet::new());
    let mut next = image.map(Path::to_path_buf);
    while let (Some(folder), Some(image)) = (next, image) {
        if !seen.insert(folder.clone()) {
            return Err(damaged(image, io::Error::other("it stands on itself")));
        }
        let (layer, meta) = open(&folder, direct).map_err(|error| said_of(image, &folder, error))?;
        if meta.size_bytes > size_bytes {
            let held = meta.size_bytes;
            return Err(Fault::new(
                format!(
                    "the image {} is of a volume of {}, and this one has {}",
                    folder.display(),
                    in_words(held),
                    in_words(size_bytes)
                ),
                "ask for a volume at least as large as the image",
            )
            .coded("image.too_large", json!({"image": folder, "image_bytes": held, "volume_bytes": size_bytes})));
        }
        layers.push(layer);
        next = meta.parent;
    }
    layers.reverse();
    Ok(layers)
}

/// Holds the image that a layer is to stand on.
pub(crate) fn hold(folder: &Path) -> Result<Base> {
    Base::hold(folder).map_err(|error| unreadable(folder, error))
}

/// One image's layer, and what it says about itself. Neither changes while the layer is open.
pub(crate) fn open(folder: &Path, direct: bool) -> Result<(Layer, Meta)> {
    let data = open_data(folder, direct).map_err(|error| unreadable(folder, error))?;
    let meta = read_meta(folder)?;
    let layer = Layer::open(folder, data, meta.size_bytes).map_err(|error| unreadable(folder, error))?;
    Ok((layer, meta))
}

/// The error of a layer of `image`, which names that too.
fn said_of(image: &Path, folder: &Path, error: Fault) -> Fault {
    if folder == image || error.code != "image.missing" {
        return error;
    }
    Fault::new(
        format!(
            "the image {} stands on {}, which is not there: it has only what was written since",
            image.display(),
            folder.display()
        ),
        "put that one back where it was; without it the content is lost",
    )
    .coded("image.base.missing", json!({"image": image, "base": folder}))
}

pub(crate) fn read_meta(folder: &Path) -> Result<Meta> {
    let text = read_bounded(&folder.join(META), META_BYTES_MAX).map_err(|error| unreadable(folder, error))?;
    let meta: Meta = serde_json::from_slice(&text).map_err(|error| damaged(folder, error.into()))?;
    if meta.version != 1 {
        return Err(damaged(folder, io::Error::other(format!("version {} is not known", meta.version))));
    }
    Ok(meta)
}

fn unreadable(folder: &Path, error: io::Error) -> Fault {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            Fault::new(format!("{} is not an image: {error}", folder.display()), REMEDY)
                .coded("image.missing", json!({"image": folder}))
        }
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => damaged(folder, error),
        io::ErrorKind::TimedOut => Fault::new(format!("{} cannot be used: {error}", folder.display()), "try it again")
            .coded("image.busy", json!({"image": folder})),
        _ => Fault::of_host(format!("the image {} cannot be read: {error}", folder.display()), REMEDY)
            .coded("image.unreadable", json!({"image": folder})),
    }
}

/// The error of an image that the machine does not let us make.
pub(crate) fn unwritable(folder: &Path, error: &io::Error, remedy: &str) -> Fault {
    Fault::of_host(format!("cannot make the image {}: {error}", folder.display()), remedy)
        .coded("image.unwritable", json!({"image": folder}))
}

fn damaged(folder: &Path, error: io::Error) -> Fault {
    Fault::new(format!("the image {} is damaged: {error}", folder.display()), "make the image again")
        .coded("image.damaged", json!({"image": folder}))
}

fn read_bounded(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    File::open(path)?.take(most + 1).read_to_end(&mut text)?;
    if text.len() as u64 > most {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("{} is too long", path.display())));
    }
    Ok(text)
}

/// Notes in an image's folder, on the list `name`, that `image` is about to stand on it.
pub(crate) fn note(folder: &Path, name: &str, image: &Path) -> io::Result<()> {
    let mut images = noted(folder, name)?;
    if images.iter().any(|known| known == image) {
        return Ok(());
    }
    images.push(image.to_path_buf());
    let lines = images.iter().map(|image| Ok(serde_json::to_string(image)? + "\n"));
    let text = lines.collect::<io::Result<String>>()?;
    match replace(folder, name, |mut file| file.write_all(text.as_bytes())) {
        // Where nothing can be written nothing can be removed either.
        Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => Ok(()),
        other => other,
    }
}

/// The images that [`note`] has noted on a list.
pub(crate) fn noted(folder: &Path, name: &str) -> io::Result<Vec<PathBuf>> {
    let text = match read_bounded(&folder.join(name), NOTED_BYTES_MAX) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    Ok(lines.map(serde_json::from_slice).collect::<std::result::Result<_, _>>()?)
}

/// Whether `image` is one, another one than `folder`, and says that it stands on that.
pub(crate) fn stands_on(image: &Path, folder: &Path) -> bool {
    let parent = read_meta(image).ok().and_then(|meta| meta.parent).and_then(|parent| fs::canonicalize(parent).ok());
    let places = (fs::canonicalize(folder).ok(), fs::canonicalize(image).ok());
    parent.is_some() && parent == places.0 && places.0 != places.1
}

/// Removes an image's folder, durably.
pub(crate) fn remove(folder: &Path) -> io::Result<()> {
    fs::remove_dir_all(folder)?;
    folder.parent().map_or(Ok(()), sync_folder)
}

/// Refuses to save a volume that stands on an image which is gone: what was saved could not be read.
pub(crate) fn require_base(folder: &Path) -> Result<()> {
    read_meta(folder).map(drop).map_err(|error| {
        let message =
            format!("the volume stands on {}, so its content cannot be saved: {}", folder.display(), error.message);
        let remedy = "put that image back, or copy the files out of the volume and detach it without --save-image";
        Fault::new(message, remedy).coded("image.base.missing", json!({"base": folder}))
    })
}

/// In GiB or MiB where it is whole.
fn in_words(bytes: u64) -> String {
    match bytes {
        _ if bytes.is_multiple_of(1 << 30) => format!("{} GiB", bytes >> 30),
        _ if bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ => format!("{bytes} bytes"),
    }
}
