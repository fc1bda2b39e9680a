//! Giving back what nobody reads of an image, and moving its blocks into the one that stands on it, or the other way round.
//!
//! Blocks are moved a piece at a time: written and synced in one layer, noted in its map, taken from the other's map, and only then
//! given back there. So each piece is in one of the layers at any instant, both are needed as before until the last piece has gone, and
//! no more than one piece is on the disk twice. Whatever is interrupted can be done again.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use pgdyno_host::{Context, Fault, Result};
use rustix::fs::{CWD, RenameFlags};

use super::block_map::BLOCK_BYTES;
use super::buffer::AlignedBuffer;
use super::image::{self, Meta, read_meta};
use super::layer::{Layer, open_map, sync_folder};
use super::lock::Alone;

/// Blocks of a word of the map: what is copied at once.
const WORD_BYTES: u64 = 64 * BLOCK_BYTES;
/// Words of a piece, 16 MiB: what is on the disk twice at most, and for how long somebody who opens an image may wait.
const PIECE_WORDS: usize = if cfg!(test) { 2 } else { 64 };
/// What must be free beside a piece: a volume that is used there goes on being written.
pub(crate) const RESERVE_BYTES: u64 = 64 << 20;

/// What became of an image that was to be merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Merged {
    /// It is gone.
    Gone,
    /// Somebody reads it, or the one that stands on it. What nobody reads of it was given back.
    InUse,
    /// There is less than [`RESERVE_BYTES`] beside it.
    NoRoom,
    /// Others stand on it too.
    Shared,
}

/// An image that can be changed.
struct Half<'a> {
    folder: &'a Path,
    meta: Meta,
    layer: Layer,
    map: File,
}

impl<'a> Half<'a> {
    fn open(folder: &'a Path) -> Result<Self> {
        let meta = read_meta(folder)?;
        let cannot = || format!("cannot change the image {}", folder.display());
        let layer = Layer::reopen(folder, meta.size_bytes).context(cannot, "see that the folder is writable")?;
        let map = open_map(folder).context(cannot, "see that the folder is writable")?;
        Ok(Self { folder, meta, layer, map })
    }

    /// Both halves without another reader, while the answer lives.
    fn alone_with(&self, other: &'a Self) -> Option<(Alone<'_>, Alone<'_>)> {
        Some((Alone::take(other.layer.data())?, Alone::take(self.layer.data())?))
    }
}

/// Merges `lower`, an image that nothing but `upper` needs, with that one, which stands on it: as far as they are not in use.
pub(crate) fn merge(lower: &Path, upper: &Path) -> Result<Merged> {
    let held = File::open(lower).context(|| format!("cannot open {}", lower.display()), "try it again")?;
    // From here on nobody comes to stand on it: who does holds it before, and notes for it what is made.
    let Some(_nobody_stands_on_it) = Alone::take(&held) else { return Ok(Merged::InUse) };
    if !image::stands_on(upper, lower) {
        let message = format!("{} does not stand on {}", upper.display(), lower.display());
        return Err(Fault::new(message, "merge an image with the one that stands on it"));
    }
    let cannot = || format!("cannot merge the image {}", lower.display());
    let noted = [image::ABOVE, image::SAVED].map(|list| image::noted(lower, list));
    let [above, saved] = noted.map(|list| list.context(cannot, "see that the folder can be read"));
    let (above, saved) = (above?, saved?);
    let is_upper = |other: &Path| {
        fs::canonicalize(other).is_ok_and(|other| fs::canonicalize(upper).is_ok_and(|upper| upper == other))
    };
    if above.iter().chain(&saved).any(|other| image::stands_on(other, lower) && !is_upper(other)) {
        return Ok(Merged::Shared);
    }
    let list = if saved.iter().any(|other| is_upper(other)) { image::SAVED } else { image::ABOVE };
    let (below, above) = (Half::open(lower)?, Half::open(upper)?);
    let merged = give_back(&below, &above).and_then(|()| join(&below, &above, list));
    merged.context(cannot, "free some space, and try it again")
}

/// Gives back the blocks of `below` that `above` has too: who reads `above` never looks there, whatever it has open.
fn give_back(below: &Half, above: &Half) -> io::Result<()> {
    let mut words = Vec::with_capacity(PIECE_WORDS);
    for (index, held) in below.layer.map().held_words() {
        let both = held & above.layer.map().bits(index);
        if both == 0 {
            continue;
        }
        for (offset, len) in runs(index, both) {
            step()?;
            below.layer.punch(offset, len)?;
            below.layer.map().set(offset, len, false);
        }
        words.push(index);
        if words.len() == PIECE_WORDS {
            below.layer.map().save_words(&below.map, &words)?;
            words.clear();
        }
    }
    below.layer.map().save_words(&below.map, &words)
}

/// Moves the blocks of the one that has fewer into the other, which is what is left. `list` is that on which the image below is told
/// what stands on it.
fn join(below: &Half, above: &Half, list: &str) -> io::Result<Merged> {
    let folders = (below.folder.parent(), above.folder.parent());
    let same_place = folders.0.is_some() && folders.0 == folders.1;
    // What was saved on the upper one is noted in its folder, which would become the other's.
    let exchangeable = same_place && image::noted(above.folder, image::SAVED)?.is_empty();
    let down = exchangeable && above.layer.map().held_blocks() < below.layer.map().held_blocks();
    if down && above.meta.size_bytes > below.meta.size_bytes {
        below.map.set_len(above.layer.map().file_bytes())?;
        below.layer.grow(above.meta.size_bytes)?;
        below.map.sync_all()?;
        below.layer.data().sync_all()?;
        // Before the first block goes to where the lower one had nothing.
        image::write_meta(below.folder, above.meta.size_bytes, below.meta.parent.as_deref())?;
    }
    let moved = if down { move_all(above, below)? } else { move_all(below, above)? };
    if moved != Merged::Gone {
        return Ok(moved);
    }
    let held = File::open(above.folder)?;
    let Some(_alone) = Alone::take(&held).zip(above.alone_with(below)) else { return Ok(Merged::InUse) };
    step()?;
    if let Some(parent) = &below.meta.parent {
        image::note(parent, list, above.folder)?;
    }
    step()?;
    if down {
        exchange(below, above)?;
    } else {
        image::write_meta(above.folder, above.meta.size_bytes, below.meta.parent.as_deref())?;
    }
    step()?;
    image::remove(below.folder)?;
    Ok(Merged::Gone)
}

/// Lets the lower one, which has everything, be the upper one.
fn exchange(below: &Half, above: &Half) -> io::Result<()> {
    for image in image::noted(above.folder, image::ABOVE)? {
        image::note(below.folder, image::ABOVE, &image)?;
    }
    step()?;
    rustix::fs::renameat_with(CWD, below.folder, CWD, above.folder, RenameFlags::EXCHANGE)?;
    above.folder.parent().map_or(Ok(()), sync_folder)?;
    step()?;
    match fs::remove_file(above.folder.join(image::SAVED)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Moves what `from` holds to `to`, a piece at a time.
fn move_all(from: &Half, to: &Half) -> io::Result<Merged> {
    let mut buffer = AlignedBuffer::new(WORD_BYTES as usize);
    let mut words = from.layer.map().held_words().peekable();
    while words.peek().is_some() {
        let Some(_alone) = from.alone_with(to) else { return Ok(Merged::InUse) };
        let on = rustix::fs::fstatvfs(to.layer.data())?;
        if on.f_bavail.saturating_mul(on.f_frsize) < RESERVE_BYTES + PIECE_WORDS as u64 * WORD_BYTES {
            return Ok(Merged::NoRoom);
        }
        let piece: Vec<(usize, u64)> = words.by_ref().take(PIECE_WORDS).collect();
        move_piece(from, to, &piece, &mut buffer)?;
    }
    Ok(Merged::Gone)
}

fn move_piece(from: &Half, to: &Half, piece: &[(usize, u64)], buffer: &mut [u8]) -> io::Result<()> {
    let before: Vec<u64> = piece.iter().map(|(index, _)| to.layer.map().bits(*index)).collect();
    if let Err(error) = copy(from, to, piece, buffer) {
        // What is not in the map takes no room.
        for ((index, held), before) in piece.iter().zip(before) {
            for (offset, len) in runs(*index, held & !before) {
                let _ = to.layer.punch(offset, len);
            }
        }
        return Err(error);
    }
    let words: Vec<usize> = piece.iter().map(|(index, _)| *index).collect();
    step()?;
    to.layer.data().sync_data()?;
    to.layer.map().save_words(&to.map, &words)?;
    step()?;
    to.map.sync_data()?;
    let moved = || piece.iter().flat_map(|(index, held)| runs(*index, *held));
    moved().for_each(|(offset, len)| from.layer.map().set(offset, len, false));
    from.layer.map().save_words(&from.map, &words)?;
    step()?;
    from.map.sync_data()?;
    for (offset, len) in moved() {
        from.layer.punch(offset, len)?;
    }
    step()
}

fn copy(from: &Half, to: &Half, piece: &[(usize, u64)], buffer: &mut [u8]) -> io::Result<()> {
    for (offset, len) in piece.iter().flat_map(|(index, held)| runs(*index, *held)) {
        step()?;
        let part = &mut buffer[..len as usize];
        from.layer.read(part, offset)?;
        if part.iter().all(|byte| *byte == 0) {
            to.layer.zero(offset, len, true)?;
        } else {
            to.layer.write(part, offset)?;
        }
    }
    Ok(())
}

/// Offset and length of each run of blocks in a word of a map.
fn runs(index: usize, word: u64) -> impl Iterator<Item = (u64, u64)> {
    let mut left = word;
    std::iter::from_fn(move || {
        (left != 0).then(|| {
            let first = left.trailing_zeros();
            let blocks = (left >> first).trailing_ones();
            left &= !(u64::MAX >> (64 - blocks) << first);
            ((index as u64 * 64 + u64::from(first)) * BLOCK_BYTES, u64::from(blocks) * BLOCK_BYTES)
        })
    })
}

/// An instant at which the process may be killed: the tests do that at each of them.
#[cfg(not(test))]
#[expect(clippy::unnecessary_wraps, reason = "it fails in tests")]
fn step() -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
use killing::step;
#[cfg(test)]
pub(super) use killing::{kill_after, piece_bytes};

#[cfg(test)]
mod killing {
    use std::cell::Cell;
    use std::io;

    use super::{PIECE_WORDS, WORD_BYTES};

    /// What is on the disk twice at most.
    pub(crate) fn piece_bytes() -> u64 {
        PIECE_WORDS as u64 * WORD_BYTES
    }

    thread_local! {
        static LEFT: Cell<Option<u64>> = const { Cell::new(None) };
    }

    /// After so many steps this thread's merges stop where they are; `None`: never.
    pub(crate) fn kill_after(steps: Option<u64>) {
        LEFT.set(steps);
    }

    pub(crate) fn step() -> io::Result<()> {
        match LEFT.get() {
            Some(0) => Err(io::Error::other("killed")),
            left => {
                LEFT.set(left.map(|left| left - 1));
                Ok(())
            }
        }
    }
}
