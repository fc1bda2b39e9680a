//! A piecewise linear function: IOPS by size, throughput by size or by IOPS.
//!
//! Providers publish rules such as "3 IOPS per GiB, at least 100, at most 16,000", with different rules for different
//! ranges. Each rule is one piece here. Arithmetic is in integers, and only the result is rounded.

use serde::{Deserialize, Serialize};

use crate::fact::{Fact, Origin};

/// Pieces in ascending order; each holds above its own `above`, up to and including the next piece's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Piecewise(pub Vec<Piece>);

/// One piece: `base + slope x axis`, within `minimum` and `maximum`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Piece {
    /// The axis value (GiB or IOPS) above which the piece holds.
    pub above: u64,
    #[serde(default)]
    pub base: Option<Fact<u64>>,
    /// Rise and run: `[3, 1]` is 3 per unit of the axis, `[40, 1024]` is 40 per 1,024 units.
    #[serde(default)]
    pub slope: Option<Fact<[u64; 2]>>,
    #[serde(default)]
    pub minimum: Option<Fact<u64>>,
    #[serde(default)]
    pub maximum: Option<Fact<u64>>,
}

impl Piecewise {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value at `axis / unit`, in `scale`-ths of the file's unit, rounded down; `None` where no piece holds.
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

    /// Refuses pieces that are out of order or incomplete; `what` names the function in the error.
    pub fn check(&self, what: &str) -> Result<(), String> {
        if !self.0.is_sorted_by(|a, b| a.above < b.above) {
            return Err(format!("{what}: pieces do not ascend"));
        }
        for piece in &self.0 {
            if piece.base.is_none() && piece.slope.is_none() {
                return Err(format!("{what}: a piece has neither base nor slope"));
            }
            if piece.slope.as_ref().is_some_and(|slope| slope.value[1] == 0) {
                return Err(format!("{what}: the second number of a slope must not be zero"));
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
            all.extend([&piece.base, &piece.minimum, &piece.maximum].into_iter().flatten().map(Fact::origin));
            all.extend(piece.slope.as_ref().map(Fact::origin));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piecewise(text: &str) -> Piecewise {
        #[derive(Deserialize)]
        struct File {
            pieces: Piecewise,
        }
        let text = text.replace('}', ", source = \"s\", date = 2026-11-21 }");
        toml::from_str::<File>(&text).unwrap().pieces
    }

    #[test]
    fn a_piece_holds_above_its_beginning_and_within_its_ends() {
        let pieces = piecewise(
            "
            [[pieces]]\nabove = 0\nslope = { value = [3, 1] }\nminimum = { value = 100 }
            [[pieces]]\nabove = 170\nbase = { value = 7 }\nslope = { value = [1, 4] }\nmaximum = { value = 60 }",
        );
        for (axis, value) in [(1, 100), (33, 100), (34, 102), (170, 510), (171, 49), (212, 60), (9_999, 60)] {
            assert_eq!(pieces.at(axis, 1, 1), Some(value), "at {axis}");
        }
        assert_eq!(pieces.at(0, 1, 1), None);
        assert_eq!(pieces.at(171, 1, 4), Some(28 + 171), "in quarters, before rounding");
        assert_eq!(pieces.at(341, 2, 1), Some(7 + 42), "170.5 is above 170");
    }

    #[test]
    fn broken_pieces_are_refused() {
        for (text, complaint) in [
            ("[[pieces]]\nabove = 0\nminimum = { value = 1 }", "neither base nor slope"),
            ("[[pieces]]\nabove = 0\nslope = { value = [1, 0] }", "must not be zero"),
            ("[[pieces]]\nabove = 5\nbase = { value = 1 }\n[[pieces]]\nabove = 5\nbase = { value = 1 }", "ascend"),
            (
                "[[pieces]]\nabove = 0\nbase = { value = 1 }\nminimum = { value = 3 }\nmaximum = { value = 2 }",
                "in this order",
            ),
        ] {
            assert!(piecewise(text).check("iops").unwrap_err().contains(complaint), "{text}");
        }
    }
}
