//! Images: folders with an immutable layer, and what each says about itself.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use pgdyno_host::{Context, Fault, Result};
use serde::{Deserialize, Serialize};

use super::layer::Layer;

const META: &str = "image.json";

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
    let meta = Meta { version: 1, size_bytes: layer.size_bytes(), parent: parent.map(Path::to_path_buf) };
    let unfinished = folder.join("image.new");
    fs::write(&unfinished, serde_json::to_vec_pretty(&meta)?)?;
    fs::rename(unfinished, folder.join(META))
}

/// The layers of an image and of all below, the oldest first, for a volume of `size_bytes`.
pub(crate) fn open_images(image: Option<&Path>, size_bytes: u64, direct: bool) -> Result<Vec<Layer>> {
    let mut layers = Vec::new();
    let mut next = image.map(Path::to_path_buf);
    while let Some(folder) = next {
        let meta = read_meta(&folder)?;
        if meta.size_bytes > size_bytes {
            return Err(Fault::new(
                format!("the image {} holds {} bytes, the volume {size_bytes}", folder.display(), meta.size_bytes),
                "ask for a volume at least as large as the image",
            ));
        }
        layers.push(
            Layer::open(&folder, meta.size_bytes, direct)
                .context(|| format!("cannot open the image {}", folder.display()), "make the image again")?,
        );
        next = meta.parent;
    }
    layers.reverse();
    Ok(layers)
}

pub(crate) fn read_meta(folder: &Path) -> Result<Meta> {
    let remedy = "name an image that `pgdyno volume detach --save-image` made";
    let text = fs::read(folder.join(META)).context(|| format!("{} is not an image", folder.display()), remedy)?;
    let meta: Meta = serde_json::from_slice(&text)
        .map_err(io::Error::from)
        .context(|| format!("{} is damaged", folder.join(META).display()), "make the image again")?;
    if meta.version != 1 {
        return Err(Fault::new(format!("image version {} is not known", meta.version), "make the image again"));
    }
    Ok(meta)
}
