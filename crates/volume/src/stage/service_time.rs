//! How long the device itself takes, apart from any limit.
//!
//! Quantile tables by operation and size, in integers: the same draw gives the same nanoseconds on every machine.

use crate::io::{Io, Nanos, Op};
use crate::params::{QuantileRow, QuantileTable, ServiceTimeParams};

/// The stage: looks a draw up in the table of the operation.
#[derive(Clone, Debug)]
pub struct ServiceTime(ServiceTimeParams);

impl ServiceTime {
    /// Panics on a malformed table: catalogues and twins are checked when they are read.
    pub fn new(params: ServiceTimeParams) -> Self {
        for (name, table) in [("read", &params.read), ("write", &params.write)] {
            if let Some(rule) = table.broken_rule() {
                panic!("service time of {name}: {rule}");
            }
        }
        Self(params)
    }

    /// Nanoseconds of work for `io`, given 64 uniform bits.
    pub fn service_ns(&self, io: &Io, bits: u64) -> Nanos {
        let table = match io.op {
            Op::Read => &self.0.read,
            Op::Write => &self.0.write,
        };
        lookup(table, u64::from(io.len), bits)
    }
}

/// The time that a draw of 64 uniform bits gives a request of `len` bytes.
pub(crate) fn lookup(table: &QuantileTable, len: u64, bits: u64) -> Nanos {
    // A probability in units of 2^-32 ppm: fine enough for any table, and products stay within u64.
    let p = (bits >> 32) * 1_000_000;
    let above = table.probability_ppm.partition_point(|&ppm| u64::from(ppm) << 32 <= p);
    let segment = above.clamp(1, table.probability_ppm.len() - 1);
    let p_low = u64::from(table.probability_ppm[segment - 1]) << 32;
    let p_high = u64::from(table.probability_ppm[segment]) << 32;
    let at = |row: &QuantileRow| interpolate(p, p_low, p_high, row.service_ns[segment - 1], row.service_ns[segment]);

    let next = table.rows.partition_point(|row| row.size_bytes < len);
    if next == 0 {
        return at(&table.rows[0]);
    }
    let Some(high) = table.rows.get(next) else {
        return at(&table.rows[next - 1]);
    };
    let low = &table.rows[next - 1];
    interpolate(len, low.size_bytes, high.size_bytes, at(low), at(high))
}

/// Linear between (x0, y0) and (x1, y1) at x0 <= x <= x1; y may descend with x.
fn interpolate(x: u64, x0: u64, x1: u64, y0: u64, y1: u64) -> u64 {
    let part = |height: u64| (u128::from(height) * u128::from(x - x0) / u128::from(x1 - x0)) as u64;
    if y1 >= y0 { y0 + part(y1 - y0) } else { y0 - part(y0 - y1) }
}
