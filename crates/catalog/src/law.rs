//! A figure that follows from another one: IOPS from the size, throughput from the size or from the IOPS.
//!
//! Providers write such rules as "3 IOPS for each GiB, at least 100, at most 16,000", different ones for different
//! ranges. Here that is a list of pieces of straight lines with ends, in integers: nothing is rounded before the end.

use serde::{Deserialize, Serialize};

use crate::fact::Fact;
use crate::file::{Origin, origin};

/// Pieces, each for what is above its own beginning and not above the next one's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Law(pub Vec<Piece>);

/// One piece: `base + slope x axis`, within `minimum` and `maximum`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Piece {
    /// The axis value (GiB or IOPS) above which the piece holds.
    pub above: u64,
    #[serde(default)]
    pub base: Option<Fact<u64>>,
    /// So much for each so many of the axis: `[3, 1]` is 3 for each, `[40, 1024]` is 40 for each 1,024.
    #[serde(default)]
    pub slope: Option<Fact<[u64; 2]>>,
    #[serde(default)]
    pub minimum: Option<Fact<u64>>,
    #[serde(default)]
    pub maximum: Option<Fact<u64>>,
}

impl Law {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The law's value at `axis / unit`, in `scale`-ths of the file's unit, rounded down; `None` where no piece holds.
    pub fn at(&self, axis: u64, unit: u64, scale: u64) -> Option<u64> {
        let piece = self.piece(axis, unit)?;
        let [rise, run] = piece.slope.as_ref().map_or([0, 1], |slope| slope.value);
        let scaled = |fact: &Option<Fact<u64>>| fact.as_ref().map(|fact| u128::from(fact.value) * u128::from(scale));
        let sloped = u128::from(rise) * u128::from(axis) * u128::from(scale) / (u128::from(run) * u128::from(unit));
        let mut value = scaled(&piece.base).unwrap_or(0) + sloped;
        value = scaled(&piece.maximum).map_or(value, |maximum| value.min(maximum));
        value = scaled(&piece.minimum).map_or(value, |minimum| value.max(minimum));
        Some(u64::try_from(value).unwrap_or(u64::MAX))
    }

    /// The piece that holds at `axis / unit`.
    pub fn piece(&self, axis: u64, unit: u64) -> Option<&Piece> {
        let above = |piece: &&Piece| u128::from(axis) > u128::from(piece.above) * u128::from(unit);
        self.0.iter().rev().find(above)
    }

    /// What is wrong with the law, if anything.
    pub fn check(&self, what: &str) -> Result<(), String> {
        if !self.0.is_sorted_by(|a, b| a.above < b.above) {
            return Err(format!("{what}: pieces do not ascend"));
        }
        for piece in &self.0 {
            if piece.base.is_none() && piece.slope.is_none() {
                return Err(format!("{what}: a piece has neither base nor slope"));
            }
            if piece.slope.as_ref().is_some_and(|slope| slope.value[1] == 0) {
                return Err(format!("{what}: a slope is so much for each so many, and that is not zero"));
            }
            let ends = piece.minimum.as_ref().zip(piece.maximum.as_ref());
            if ends.is_some_and(|(minimum, maximum)| minimum.value > maximum.value) {
                return Err(format!("{what}: minimum and maximum are not in this order"));
            }
        }
        Ok(())
    }

    pub fn origins(&self) -> Vec<Origin<'_>> {
        let mut all = Vec::new();
        for piece in &self.0 {
            all.extend([&piece.base, &piece.minimum, &piece.maximum].into_iter().flatten().map(origin));
            all.extend(piece.slope.as_ref().map(origin));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn law(text: &str) -> Law {
        #[derive(Deserialize)]
        struct File {
            law: Law,
        }
        let text = text.replace('}', ", source = \"s\", date = 2026-11-21 }");
        toml::from_str::<File>(&text).unwrap().law
    }

    #[test]
    fn a_piece_holds_above_its_beginning_and_within_its_ends() {
        let law = law("
            [[law]]\nabove = 0\nslope = { value = [3, 1] }\nminimum = { value = 100 }
            [[law]]\nabove = 170\nbase = { value = 7 }\nslope = { value = [1, 4] }\nmaximum = { value = 60 }");
        for (axis, value) in [(1, 100), (33, 100), (34, 102), (170, 510), (171, 49), (212, 60), (9_999, 60)] {
            assert_eq!(law.at(axis, 1, 1), Some(value), "at {axis}");
        }
        assert_eq!(law.at(0, 1, 1), None);
        assert_eq!(law.at(171, 1, 4), Some(28 + 171), "in quarters, before rounding");
        assert_eq!(law.at(341, 2, 1), Some(7 + 42), "170.5 is above 170");
    }

    #[test]
    fn broken_laws_are_refused() {
        for (text, complaint) in [
            ("[[law]]\nabove = 0\nminimum = { value = 1 }", "neither base nor slope"),
            ("[[law]]\nabove = 0\nslope = { value = [1, 0] }", "not zero"),
            ("[[law]]\nabove = 5\nbase = { value = 1 }\n[[law]]\nabove = 5\nbase = { value = 1 }", "ascend"),
            (
                "[[law]]\nabove = 0\nbase = { value = 1 }\nminimum = { value = 3 }\nmaximum = { value = 2 }",
                "in this order",
            ),
        ] {
            assert!(law(text).check("iops").unwrap_err().contains(complaint), "{text}");
        }
    }
}
