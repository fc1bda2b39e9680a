//! Rows of COPY that no log has, made by what the columns have: as many as production's server counted.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use pgdyno_capture::{Call, Ending, shape};
use pgdyno_workload::SplitMix;
use serde::Deserialize;

/// One COPY by the shape of its text.
#[derive(Deserialize)]
pub(crate) struct CopySpec {
    shape: String,
    /// Rows of one execution: a mean.
    rows: f64,
    columns: Vec<ColumnSpec>,
}

/// What a column gets.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum ColumnSpec {
    /// Values that the column has, each as often as its weight says beside the others', and this share of NULLs.
    Drawn { values: Vec<String>, weights: Vec<f64>, nulls: f64 },
    /// A number that no row has: from this one on.
    Number { next: u64 },
    /// A uuid that no row has.
    Uuid,
}

enum Column {
    Drawn { values: Vec<String>, sums: Vec<f64>, nulls: f64 },
    Number(AtomicU64),
    Uuid,
}

struct Copy {
    rows: f64,
    columns: Vec<Column>,
    /// Executions before this one.
    calls: AtomicU64,
}

/// The COPYs whose rows are made. The draws are by a seed and the number of the execution.
#[derive(Default)]
pub(crate) struct Copies {
    by_shape: HashMap<String, Copy>,
    seed: u64,
}

impl Copies {
    pub(crate) fn new(specs: Vec<CopySpec>, seed: u64) -> Self {
        let by_shape = specs.into_iter().map(|spec| (spec.shape.clone(), Copy::new(spec))).collect();
        Self { by_shape, seed }
    }

    /// Rows for a call; none if it is no COPY whose rows are made, or one that failed in production: rows that fail are not made.
    pub(crate) fn rows(&self, call: &Call) -> Option<Vec<u8>> {
        if self.by_shape.is_empty() || call.rows.is_some() || matches!(call.ending, Ending::Failed(_)) {
            return None;
        }
        let copy = self.by_shape.get(&shape(&call.text))?;
        let number = copy.calls.fetch_add(1, Ordering::Relaxed);
        let rows = copy.rows_until(number + 1) - copy.rows_until(number);
        // Mixed twice: states that are a step apart would draw the same values, one behind the other.
        let mut draws = SplitMix::new(SplitMix::new(self.seed ^ SplitMix::new(number).bits()).bits());
        let mut out = Vec::new();
        for _ in 0..rows {
            for (place, column) in copy.columns.iter().enumerate() {
                if place > 0 {
                    out.push(b'\t');
                }
                column.put(&mut draws, &mut out);
            }
            out.push(b'\n');
        }
        Some(out)
    }
}

impl Copy {
    fn new(spec: CopySpec) -> Self {
        let columns = spec.columns.into_iter().map(|column| match column {
            ColumnSpec::Drawn { values, weights, nulls } => {
                let mut sum = 0.0;
                let sums = weights.iter().map(|weight| {
                    sum += weight;
                    sum
                });
                Column::Drawn { sums: sums.collect(), values, nulls }
            }
            ColumnSpec::Number { next } => Column::Number(AtomicU64::new(next)),
            ColumnSpec::Uuid => Column::Uuid,
        });
        Self { rows: spec.rows, columns: columns.collect(), calls: AtomicU64::new(0) }
    }

    /// Rows of so many executions together.
    fn rows_until(&self, calls: u64) -> u64 {
        (self.rows * calls as f64).round() as u64
    }
}

impl Column {
    fn put(&self, draws: &mut SplitMix, out: &mut Vec<u8>) {
        match self {
            Self::Number(next) => out.extend_from_slice(next.fetch_add(1, Ordering::Relaxed).to_string().as_bytes()),
            Self::Uuid => out.extend_from_slice(uuid(draws).as_bytes()),
            Self::Drawn { values, sums, nulls } => {
                let whole = sums.last().copied().unwrap_or(0.0);
                if draws.unit() < *nulls || values.is_empty() {
                    out.extend_from_slice(b"\\N");
                    return;
                }
                let at = draws.unit() * whole;
                let place = sums.partition_point(|sum| *sum <= at).min(values.len() - 1);
                escape(values[place].as_bytes(), out);
            }
        }
    }
}

/// As COPY's text has it (PostgreSQL's documentation, "COPY", "Text Format").
fn escape(value: &[u8], out: &mut Vec<u8>) {
    for byte in value {
        match byte {
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            byte => out.push(*byte),
        }
    }
}

/// Random, as version 4 says.
fn uuid(draws: &mut SplitMix) -> String {
    let (high, low) = (draws.bits(), draws.bits());
    let high = (high & !0xf000) | 0x4000;
    let low = (low & !(3 << 62)) | (1 << 63);
    let text = format!("{high:016x}{low:016x}");
    [&text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..]].join("-")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::call;

    fn copies(rows: f64) -> Copies {
        let spec = json!([{"shape": "COPY t FROM STDIN", "rows": rows, "columns": [
            {"kind": "number", "next": 7},
            {"kind": "drawn", "values": ["a\tb", "c"], "weights": [3.0, 1.0], "nulls": 0.5},
            {"kind": "uuid"},
            {"kind": "drawn", "values": ["x"], "weights": [1.0], "nulls": 1.0},
        ]}]);
        Copies::new(serde_json::from_value(spec).unwrap(), 1)
    }

    #[test]
    fn as_many_rows_are_made_as_were_counted_with_the_values_that_there_are() {
        let (copies, call) = (copies(2.5), call("COPY t FROM STDIN", Ending::Done(1)));
        let made: Vec<String> = (0..400).map(|_| String::from_utf8(copies.rows(&call).unwrap()).unwrap()).collect();
        let rows: Vec<&str> = made.iter().flat_map(|text| text.lines()).collect();
        assert_eq!(rows.len(), 1000);
        assert!(made.iter().all(|text| (2..=3).contains(&text.lines().count())));
        let columns: Vec<Vec<&str>> = rows.iter().map(|row| row.split('\t').collect()).collect();
        let numbers: Vec<u64> = columns.iter().map(|row| row[0].parse().unwrap()).collect();
        assert_eq!(numbers, (7..1007).collect::<Vec<_>>());
        let count = |value: &str| columns.iter().filter(|row| row[1] == value).count();
        // Half are NULL, and three of four of the others are the first value: five standard deviations of 1,000 draws.
        assert!(count("\\N").abs_diff(500) < 80 && count("a\\tb").abs_diff(375) < 77, "{}", count("\\N"));
        assert_eq!(count("\\N") + count("a\\tb") + count("c"), 1000);
        let mut uuids: Vec<&str> = columns.iter().map(|row| row[2]).collect();
        assert!(uuids.iter().all(|one| one.len() == 36 && &one[14..15] == "4"));
        uuids.sort_unstable();
        uuids.dedup();
        assert_eq!(uuids.len(), 1000);
    }

    #[test]
    fn what_failed_and_what_is_not_known_is_not_made() {
        let copies = copies(1.0);
        assert!(copies.rows(&call("COPY t FROM STDIN", Ending::Failed(*b"23505"))).is_none());
        assert!(copies.rows(&call("COPY other FROM STDIN", Ending::Done(1))).is_none());
        let kept = Call { rows: Some(Vec::new()), ..call("COPY t FROM STDIN", Ending::Done(1)) };
        assert!(copies.rows(&kept).is_none(), "it has its own");
    }
}
