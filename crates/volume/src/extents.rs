//! Parts of a volume, and how they are written down.

use std::fmt;
use std::str::FromStr;

const KIB: u64 = 1024;

/// Parts of a volume in the order of their addresses, in whole KiB. As text `0+512,4096+1024`: where each begins and its length, in
/// KiB.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extents(Vec<(u64, u64)>);

impl Extents {
    /// Adds a part that begins behind all others; one that begins where the last one ends makes that longer. Panics when it
    /// begins before that, or is not in whole KiB.
    pub fn push(&mut self, offset: u64, len: u64) {
        assert!(offset.is_multiple_of(KIB) && len.is_multiple_of(KIB), "an extent is in whole KiB");
        match self.0.last_mut() {
            Some((last, last_len)) if *last + *last_len == offset => *last_len += len,
            last => {
                assert!(last.is_none_or(|(last, last_len)| *last + *last_len < offset), "extents ascend");
                self.0.push((offset, len));
            }
        }
    }

    /// First byte and bytes of each part.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0.iter().copied()
    }

    /// Bytes of all parts.
    pub fn bytes(&self) -> u64 {
        self.0.iter().map(|(_, len)| len).sum()
    }
}

impl fmt::Display for Extents {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (offset, len)) in self.0.iter().enumerate() {
            let separator = if i == 0 { "" } else { "," };
            write!(out, "{separator}{}+{}", offset / KIB, len / KIB)?;
        }
        Ok(())
    }
}

/// A text that is no list of extents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoExtents;

impl FromStr for Extents {
    type Err = NoExtents;

    fn from_str(text: &str) -> Result<Self, NoExtents> {
        let mut extents = Self::default();
        let mut end = 0;
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (offset, len) = part.split_once('+').ok_or(NoExtents)?;
            let bytes = |kib: &str| kib.parse::<u64>().ok().and_then(|kib| kib.checked_mul(KIB)).ok_or(NoExtents);
            let (offset, len) = (bytes(offset)?, bytes(len)?);
            if offset < end || len == 0 {
                return Err(NoExtents);
            }
            end = offset.checked_add(len).ok_or(NoExtents)?;
            extents.push(offset, len);
        }
        Ok(extents)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_are_written_and_read_and_what_touches_is_one() {
        let mut extents = Extents::default();
        for (offset, len) in [(0, 4096), (4096, 4096), (1 << 20, 1 << 30)] {
            extents.push(offset, len);
        }
        assert_eq!(extents.to_string(), "0+8,1024+1048576");
        assert_eq!(extents.to_string().parse(), Ok(extents.clone()));
        assert_eq!(extents.bytes(), 8192 + (1 << 30));
        assert_eq!("".parse(), Ok(Extents::default()));
    }

    #[test]
    fn what_is_no_list_of_extents_is_refused() {
        for text in ["8", "8+", "+8", "a+8", "8+8,4+4", "0+8,4+8", "0+0", "18446744073709551615+1"] {
            assert_eq!(text.parse::<Extents>(), Err(NoExtents), "{text}");
        }
    }
}
