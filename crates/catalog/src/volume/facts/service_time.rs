//! Service times: one shape per operation, stretched to each request size, multiplied out once to whole nanoseconds.
//!
//! `time = floor + (mean - floor) x excess`. The excess has mean 1, so `mean_ns` in the file is the mean of the table,
//! and scaling an operation is one edit of one list.

use pgdyno_volume::{QuantileRow, QuantileTable, ServiceTimeParams};
use serde::{Deserialize, Serialize};

use crate::fact::{Fact, Origin};

const PPM: u32 = 1_000_000;

/// How far the mean of a shape may be from 1, in millionths: what rounding its points to five digits leaves.
const SHAPE_MEAN_TOLERANCE_PPM: u128 = 100;

/// A type lends from another, which may lend from a third; more is a circle.
const LENDERS_MAX: usize = 4;

/// Tables of a type's own, and for an operation of which nothing is known those of another type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ServiceTimeFacts {
    /// The type that lends the tables that are not here.
    #[serde(default)]
    pub like: Option<Fact<String>>,
    /// Request sizes of the tables that are here, ascending.
    #[serde(default)]
    pub size_kib: Vec<u64>,
    #[serde(default)]
    pub read: Option<OperationFacts>,
    #[serde(default)]
    pub write: Option<OperationFacts>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OperationFacts {
    /// The least time, for each size.
    pub floor_ns: Fact<Vec<u64>>,
    /// The mean time, for each size.
    pub mean_ns: Fact<Vec<u64>>,
    /// The shape's probabilities, from 0 to 1,000,000.
    pub probability_ppm: Vec<u32>,
    /// The shape's quantiles: what is above the floor, in millionths of its own mean.
    pub excess_ppm: Fact<Vec<u64>>,
}

impl ServiceTimeFacts {
    /// What is wrong with the facts, if anything; whether the other type exists is not known here.
    pub fn check(&self) -> Result<(), String> {
        if self.like.is_some() && self.read.is_some() && self.write.is_some() {
            return Err("like: both tables are here, so there is nothing to lend".to_owned());
        }
        let here = self.read.is_some() || self.write.is_some();
        if here == self.size_kib.is_empty() || !self.size_kib.is_sorted_by(|a, b| a < b) {
            return Err("size_kib must be ascending, and not empty where there is a table".to_owned());
        }
        for (name, table) in [("read", &self.read), ("write", &self.write)] {
            match table {
                Some(table) => table.check(self.size_kib.len()).map_err(|problem| format!("{name}: {problem}"))?,
                None if self.like.is_none() => return Err("read and write: there is no table".to_owned()),
                None => {}
            }
        }
        Ok(())
    }

    /// The tables, or what is wrong with the facts.
    pub fn params<'a>(&'a self, named: impl Fn(&str) -> Option<&'a Self>) -> Result<ServiceTimeParams, String> {
        self.check()?;
        let read = self.lent(&named, |facts| facts.read.as_ref()).map_err(|problem| format!("read: {problem}"))?;
        let write = self.lent(&named, |facts| facts.write.as_ref()).map_err(|problem| format!("write: {problem}"))?;
        Ok(ServiceTimeParams { read, write })
    }

    /// The table of an operation: its own, or the lender's, who may have it from another.
    fn lent<'a>(
        &'a self,
        named: &impl Fn(&str) -> Option<&'a Self>,
        pick: impl Fn(&Self) -> Option<&OperationFacts>,
    ) -> Result<QuantileTable, String> {
        let mut owner = self;
        for _ in 0..LENDERS_MAX {
            if let Some(facts) = pick(owner) {
                return facts.table(&owner.size_kib);
            }
            let Some(like) = &owner.like else { break };
            owner = named(&like.value).ok_or_else(|| format!("like: there is no type {:?}", like.value))?;
        }
        Err("like: nobody has that table".to_owned())
    }

    pub fn origins(&self) -> Vec<Origin<'_>> {
        let mut all: Vec<Origin<'_>> = self.like.iter().map(Fact::origin).collect();
        for table in [&self.read, &self.write].into_iter().flatten() {
            all.extend([&table.floor_ns, &table.mean_ns].map(Fact::origin));
            all.push(table.excess_ppm.origin());
        }
        all
    }
}

impl OperationFacts {
    fn table(&self, size_kib: &[u64]) -> Result<QuantileTable, String> {
        self.check(size_kib.len())?;
        let levels = self.floor_ns.value.iter().zip(&self.mean_ns.value);
        let rows = size_kib.iter().zip(levels).map(|(&kib, (&floor_ns, &mean_ns))| QuantileRow {
            size_bytes: kib * 1024,
            service_ns: self.excess_ppm.value.iter().map(|&excess| stretch(floor_ns, mean_ns, excess)).collect(),
        });
        Ok(QuantileTable { probability_ppm: self.probability_ppm.clone(), rows: rows.collect() })
    }

    fn check(&self, sizes: usize) -> Result<(), String> {
        let (probability, excess) = (&self.probability_ppm, &self.excess_ppm.value);
        if probability.first() != Some(&0)
            || probability.last() != Some(&PPM)
            || !probability.is_sorted_by(|a, b| a < b)
        {
            return Err("probability_ppm must ascend from 0 to 1,000,000".to_owned());
        }
        if excess.len() != probability.len() || !excess.is_sorted() {
            return Err("excess_ppm must ascend and have one value for each probability".to_owned());
        }
        if self.floor_ns.value.len() != sizes || self.mean_ns.value.len() != sizes {
            return Err(format!("floor_ns and mean_ns must have {sizes} values, one for each size"));
        }
        if self.floor_ns.value.iter().zip(&self.mean_ns.value).any(|(floor, mean)| floor > mean) {
            return Err("floor_ns is above mean_ns".to_owned());
        }
        let off = shape_mean_ppm(probability, excess).abs_diff(u128::from(PPM));
        if off > SHAPE_MEAN_TOLERANCE_PPM {
            return Err(format!("the mean of the shape is {off} ppm away from 1"));
        }
        Ok(())
    }
}

/// One quantile in nanoseconds, rounded to the nearest. In 128 bits, so that no figure in a file can overflow it
/// unnoticed.
fn stretch(floor_ns: u64, mean_ns: u64, excess_ppm: u64) -> u64 {
    let ppm = u128::from(PPM);
    let above = (u128::from(mean_ns - floor_ns) * u128::from(excess_ppm) + ppm / 2) / ppm;
    u64::try_from(u128::from(floor_ns) + above).unwrap_or(u64::MAX)
}

/// Mean of a distribution given by quantiles with straight lines between them.
fn shape_mean_ppm(probability_ppm: &[u32], excess_ppm: &[u64]) -> u128 {
    let corners = |i: usize| u128::from(excess_ppm[i]) + u128::from(excess_ppm[i + 1]);
    let widths = probability_ppm.windows(2).map(|pair| u128::from(pair[1] - pair[0]));
    widths.enumerate().map(|(i, width)| width * corners(i)).sum::<u128>() / (2 * u128::from(PPM))
}
