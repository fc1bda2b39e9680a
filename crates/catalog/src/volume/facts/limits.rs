//! What a catalogue file says about limits: chosen by who buys, or following from the size, with or without a burst.

use serde::{Deserialize, Serialize};

use crate::fact::{Fact, Origin, ascending};
use crate::volume::facts::piecewise::Piecewise;

/// I/O units per second: `provisioned` or `by_gib`, never both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct IopsFacts {
    pub bucket_depth_ms: Fact<u64>,
    /// What can be chosen, by size.
    #[serde(default)]
    pub provisioned: Vec<ProvisionedIops>,
    /// What follows from the size; of reads alone where writes have a limit of their own.
    #[serde(default)]
    pub by_gib: Piecewise,
    /// Writes, where they have a limit of their own.
    #[serde(default)]
    pub write_by_gib: Piecewise,
    #[serde(default)]
    pub burst: Option<IopsBurst>,
}

/// The IOPS that can be chosen above a size in GiB.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProvisionedIops {
    pub above: u64,
    /// The least that can be asked for; it is allowed at every size.
    pub minimum: Fact<u64>,
    pub maximum: Fact<u64>,
    /// Used when no figure is given, or less where the size allows only less.
    pub default: Fact<u64>,
    pub maximum_per_gib: Fact<u64>,
}

/// A rate above the baseline, for as long as credits last.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct IopsBurst {
    /// The rate.
    pub by_gib: Piecewise,
    /// The most credits that are kept, in I/O units; without them the burst is no more than a statement.
    pub credits_by_gib: Piecewise,
}

/// MiB per second: `provisioned` up to `by_iops`, or `by_iops` alone, or `by_gib` alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ThroughputFacts {
    pub bucket_depth_ms: Fact<u64>,
    /// What can be chosen, by size.
    #[serde(default)]
    pub provisioned: Vec<ProvisionedThroughput>,
    /// What the IOPS allow, or, without a choice, what there is.
    #[serde(default)]
    pub by_iops: Piecewise,
    #[serde(default)]
    pub by_gib: Piecewise,
    #[serde(default)]
    pub burst: Option<ThroughputBurst>,
}

/// The throughput that can be chosen above a size in GiB.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProvisionedThroughput {
    pub above: u64,
    pub minimum_mib_per_s: Fact<u64>,
    pub maximum_mib_per_s: Fact<u64>,
    pub default_mib_per_s: Fact<u64>,
}

/// A rate above the baseline, for as long as credits last.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ThroughputBurst {
    /// The rate in MiB per second.
    pub by_gib: Piecewise,
    /// The most credits that are kept, in MiB.
    pub credits_mib_by_gib: Piecewise,
}

/// What holds above the greatest `above` below a size.
pub(crate) fn above<T>(pieces: &[T], size_bytes: u64, beginning: impl Fn(&T) -> u64) -> Option<&T> {
    let gib = u128::from(crate::units::GIB);
    pieces.iter().rev().find(|piece| u128::from(size_bytes) > u128::from(beginning(piece)) * gib)
}

impl IopsFacts {
    /// What can be chosen for a volume of this size; `None` if nothing can.
    pub fn choice(&self, size_bytes: u64) -> Option<&ProvisionedIops> {
        above(&self.provisioned, size_bytes, |piece| piece.above)
    }

    pub fn check(&self) -> Result<(), String> {
        self.by_gib.check("iops.by_gib")?;
        self.write_by_gib.check("iops.write_by_gib")?;
        if self.provisioned.is_empty() == self.by_gib.is_empty() {
            return Err("iops: either provisioned or by_gib says how many there are".to_owned());
        }
        if self.provisioned.first().is_some_and(|piece| piece.above > 0) {
            return Err("iops.provisioned begins above 0".to_owned());
        }
        for piece in &self.provisioned {
            ascending("iops", &[&piece.minimum, &piece.default, &piece.maximum])?;
            if piece.minimum.value == 0 || piece.maximum_per_gib.value == 0 {
                return Err("iops: a limit of zero never lets anything through".to_owned());
            }
        }
        if let Some(burst) = &self.burst {
            burst.by_gib.check("iops.burst.by_gib")?;
            burst.credits_by_gib.check("iops.burst.credits_by_gib")?;
            if self.by_gib.is_empty() {
                return Err("iops.burst is above a baseline that follows from the size".to_owned());
            }
        }
        Ok(())
    }

    pub fn origins(&self) -> Vec<Origin<'_>> {
        let mut all = vec![self.bucket_depth_ms.origin()];
        for piece in &self.provisioned {
            all.extend([&piece.minimum, &piece.maximum, &piece.default, &piece.maximum_per_gib].map(Fact::origin));
        }
        all.extend(self.by_gib.origins());
        all.extend(self.write_by_gib.origins());
        if let Some(burst) = &self.burst {
            all.extend(burst.by_gib.origins());
            all.extend(burst.credits_by_gib.origins());
        }
        all
    }
}

/// Above any volume.
const IOPS_MOST: u64 = 10_000_000;

/// The least number from 1 to `most` for which `holds` is true; `most` if there is none. `holds` must stay true once it is.
pub(crate) fn least(most: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (1, most);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

impl ThroughputFacts {
    /// What can be chosen for a volume of this size; `None` if nothing can.
    pub fn choice(&self, size_bytes: u64) -> Option<&ProvisionedThroughput> {
        above(&self.provisioned, size_bytes, |piece| piece.above)
    }

    /// The least IOPS that allow a throughput.
    pub fn iops_for(&self, mib_per_s: u64) -> u64 {
        least(IOPS_MOST, |iops| self.by_iops.at(iops, 1, 1).is_some_and(|allowed| allowed >= mib_per_s))
    }

    /// The least IOPS that bring so many bytes each second, where throughput follows from them.
    pub fn iops_for_bytes(&self, bytes_per_s: f64) -> u64 {
        let brings =
            |iops| self.by_iops.at(iops, 1, crate::units::MIB).is_some_and(|bytes| bytes as f64 >= bytes_per_s);
        least(IOPS_MOST, brings)
    }

    /// MiB/s per IOPS, as a decimal number.
    pub fn ratio_phrase(&self) -> String {
        let slope = self.by_iops.0.first().and_then(|piece| piece.slope.as_ref());
        let [rise, run] = slope.map_or([0, 1], |slope| slope.value);
        let millionths = rise * 1_000_000 / run;
        format!("{}.{:06}", millionths / 1_000_000, millionths % 1_000_000).trim_end_matches('0').to_owned()
    }

    pub fn check(&self, iops: Option<&IopsFacts>) -> Result<(), String> {
        self.by_iops.check("throughput.by_iops")?;
        self.by_gib.check("throughput.by_gib")?;
        if self.by_iops.is_empty() == self.by_gib.is_empty() {
            return Err("throughput: either by_iops or by_gib says how much there is".to_owned());
        }
        if !self.by_iops.is_empty() && iops.is_none() {
            return Err("throughput is bounded by IOPS, of which there is no limit".to_owned());
        }
        if self.by_iops.is_empty() && !self.provisioned.is_empty() {
            return Err("throughput: what is chosen is bounded by IOPS".to_owned());
        }
        for piece in &self.provisioned {
            ascending("throughput", &[&piece.minimum_mib_per_s, &piece.default_mib_per_s, &piece.maximum_mib_per_s])?;
            let size_bytes = (piece.above + 1) * crate::units::GIB;
            let least = iops.and_then(|iops| iops.choice(size_bytes)).map_or(0, |choice| choice.minimum.value);
            if self.by_iops.at(least, 1, 1).unwrap_or(0) < piece.default_mib_per_s.value {
                return Err("throughput: the default is more than the least IOPS carry".to_owned());
            }
        }
        if let Some(burst) = &self.burst {
            burst.by_gib.check("throughput.burst.by_gib")?;
            burst.credits_mib_by_gib.check("throughput.burst.credits_mib_by_gib")?;
            if self.by_gib.is_empty() {
                return Err("throughput.burst is above a baseline that follows from the size".to_owned());
            }
        }
        Ok(())
    }

    pub fn origins(&self) -> Vec<Origin<'_>> {
        let mut all = vec![self.bucket_depth_ms.origin()];
        for piece in &self.provisioned {
            all.extend(
                [&piece.minimum_mib_per_s, &piece.maximum_mib_per_s, &piece.default_mib_per_s].map(Fact::origin),
            );
        }
        all.extend(self.by_iops.origins());
        all.extend(self.by_gib.origins());
        if let Some(burst) = &self.burst {
            all.extend(burst.by_gib.origins());
            all.extend(burst.credits_mib_by_gib.origins());
        }
        all
    }
}
