//! How a log is read: what a device may leave of a write that was not durable, and what it does that no device should.

use std::fmt;
use std::str::FromStr;

/// Sizes at which a write can tear.
const PIECES: [u64; 4] = [512, 4096, 8192, 16384];

/// What may be left of one write that was not durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tearing {
    /// All of it or nothing.
    Whole,
    /// Its beginning, in pieces of so many bytes.
    Prefix(u64),
    /// Any of its pieces of so many bytes.
    Pieces(u64),
}

/// Torn-write prevention, in the two readings that AWS's text allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Prevention {
    /// None.
    None,
    /// A write of 4, 8 or 16 KiB that is aligned to its size is whole; any other tears.
    Strict,
    /// Every aligned 16 KiB of any write is whole.
    Units,
}

/// What a device does that it must not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lie {
    /// Nothing.
    None,
    /// One flush in so many does nothing.
    FlushIgnored(u64),
    /// A flush covers the older half of what was answered before it.
    FlushNarrow,
    /// What was answered before a flush is durable with the flush after it, and may be overtaken by what came between.
    FlushOvertaken,
    /// One write that was durable is not there.
    WriteLost,
    /// A flush covers only what was answered so many milliseconds before it, or more.
    FlushLate(u64),
    /// Of one write that was durable only the first half of its blocks is there, of one block none.
    WriteShort,
    /// One write that was durable reads as zeros.
    WriteZeros,
    /// One write that was durable is where another one should be.
    WriteMisdirected,
    /// Two blocks that were durable have each other's content.
    BlocksSwapped,
    /// One bit of what was durable is the other one.
    BitRot,
    /// The volumes after the first are cut so many milliseconds earlier.
    Apart(u64),
    /// All volumes are cut so many milliseconds before what is said.
    Behind(u64),
    /// A volume is copied block by block while it is used, in the so many milliseconds before the cut.
    Copied(u64),
}

/// How a log is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reading {
    /// How a write tears.
    pub tearing: Tearing,
    /// What does not tear.
    pub prevention: Prevention,
    /// What is wrong with the device.
    pub lie: Lie,
    /// The number of the only volume that it is wrong with; `None`: with all.
    pub only: Option<u8>,
}

impl Reading {
    /// What is wrong with a volume.
    pub(crate) fn lie_of(&self, volume: usize) -> Lie {
        if self.only.is_none_or(|only| usize::from(only) == volume) { self.lie } else { Lie::None }
    }

    /// The ends of the parts of a write that stay or go as one, in bytes from its beginning.
    pub fn parts(&self, offset: u64, len: u64) -> Vec<u64> {
        let piece = match self.tearing {
            Tearing::Whole => return vec![len],
            Tearing::Prefix(piece) | Tearing::Pieces(piece) => piece,
        };
        let end = offset + len;
        let unit = PIECES[3];
        match self.prevention {
            Prevention::Strict if PIECES[1..].contains(&len) && offset.is_multiple_of(len) => return vec![len],
            Prevention::None | Prevention::Strict => {}
            Prevention::Units => {
                let mut ends = Vec::new();
                let mut at = offset;
                while at < end {
                    let whole = at.is_multiple_of(unit) && at + unit <= end;
                    at = if whole { at + unit } else { end.min((at / piece + 1) * piece).min((at / unit + 1) * unit) };
                    ends.push(at - offset);
                }
                return ends;
            }
        }
        let first = (offset / piece + 1) * piece;
        let mut ends: Vec<u64> = (first..end).step_by(piece as usize).map(|at| at - offset).collect();
        ends.push(len);
        ends
    }
}

impl fmt::Display for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tearing {
            Tearing::Whole => write!(f, "whole")?,
            Tearing::Prefix(piece) => write!(f, "prefix-{piece}")?,
            Tearing::Pieces(piece) => write!(f, "pieces-{piece}")?,
        }
        match self.prevention {
            Prevention::None => {}
            Prevention::Strict => write!(f, "+strict")?,
            Prevention::Units => write!(f, "+units")?,
        }
        match self.lie {
            Lie::None => {}
            Lie::FlushIgnored(one_in) => write!(f, "+flush-ignored-{one_in}")?,
            Lie::FlushNarrow => write!(f, "+flush-narrow")?,
            Lie::FlushOvertaken => write!(f, "+flush-overtaken")?,
            Lie::FlushLate(ms) => write!(f, "+flush-late-{ms}")?,
            Lie::WriteLost => write!(f, "+write-lost")?,
            Lie::WriteShort => write!(f, "+write-short")?,
            Lie::WriteZeros => write!(f, "+write-zeros")?,
            Lie::WriteMisdirected => write!(f, "+write-misdirected")?,
            Lie::BlocksSwapped => write!(f, "+blocks-swapped")?,
            Lie::BitRot => write!(f, "+bit-rot")?,
            Lie::Apart(ms) => write!(f, "+apart-{ms}")?,
            Lie::Behind(ms) => write!(f, "+behind-{ms}")?,
            Lie::Copied(ms) => write!(f, "+copied-{ms}")?,
        }
        self.only.map_or(Ok(()), |volume| write!(f, "+only-{volume}"))
    }
}

impl FromStr for Reading {
    type Err = String;

    /// As it is displayed: `pieces-4096+strict`.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = text.split('+');
        let tearing = match words.next().unwrap_or_default() {
            "whole" => Some(Tearing::Whole),
            word => {
                let (kind, piece) = word.rsplit_once('-').unwrap_or_default();
                let piece = piece.parse().ok().filter(|piece| PIECES.contains(piece));
                match kind {
                    "prefix" => piece.map(Tearing::Prefix),
                    "pieces" => piece.map(Tearing::Pieces),
                    _ => None,
                }
            }
        };
        let mut found = Self {
            tearing: tearing.ok_or_else(|| format!("{text:?} does not begin with whole, prefix-N or pieces-N"))?,
            prevention: Prevention::None,
            lie: Lie::None,
            only: None,
        };
        for word in words {
            match word {
                "strict" => found.prevention = Prevention::Strict,
                "units" => found.prevention = Prevention::Units,
                _ if word.starts_with("only-") => {
                    let number = word.trim_start_matches("only-").parse();
                    found.only = Some(number.map_err(|_| format!("{text:?}: {word:?} names no volume"))?);
                }
                _ => found.lie = lie(word).ok_or_else(|| format!("{text:?}: {word:?} is not known"))?,
            }
        }
        Ok(found)
    }
}

fn lie(word: &str) -> Option<Lie> {
    let (kind, number) = word.rsplit_once('-')?;
    match (kind, number.parse().ok()) {
        ("flush-ignored", Some(one_in)) if one_in > 0 => Some(Lie::FlushIgnored(one_in)),
        ("apart", Some(ms)) => Some(Lie::Apart(ms)),
        ("behind", Some(ms)) => Some(Lie::Behind(ms)),
        ("copied", Some(ms)) => Some(Lie::Copied(ms)),
        ("flush-late", Some(ms)) => Some(Lie::FlushLate(ms)),
        ("flush", None) if number == "narrow" => Some(Lie::FlushNarrow),
        ("flush", None) if number == "overtaken" => Some(Lie::FlushOvertaken),
        ("write", None) if number == "lost" => Some(Lie::WriteLost),
        ("write", None) if number == "short" => Some(Lie::WriteShort),
        ("write", None) if number == "zeros" => Some(Lie::WriteZeros),
        ("write", None) if number == "misdirected" => Some(Lie::WriteMisdirected),
        ("blocks", None) if number == "swapped" => Some(Lie::BlocksSwapped),
        ("bit", None) if number == "rot" => Some(Lie::BitRot),
        _ => None,
    }
}
