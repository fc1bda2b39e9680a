//! dbgen's own answers to the 22 queries with the parameters of their validation, which are of scale 1 alone.

use std::sync::Arc;

use pgdyno_workload::Refusal;
use tpchgen::q_and_a::QueryAndAnswer;

use super::scale::Scale;
use crate::file::DataFile;
use crate::rows::Rows;

const NAMES: [&str; 22] = [
    "q1", "q2", "q3", "q4", "q5", "q6", "q7", "q8", "q9", "q10", "q11", "q12", "q13", "q14", "q15", "q16", "q17",
    "q18", "q19", "q20", "q21", "q22",
];
/// A line's length, about: they have from one column to ten.
const BYTES_PER_LINE: u64 = 100;

/// A file for each query: a line of columns' names, then a line for each row, values between `|`.
///
/// # Errors
/// Another scale than 1.
pub fn answers(scale: f64) -> Result<Vec<DataFile>, Refusal> {
    if Scale::new(scale)? != Scale::new(1.0)? {
        let what = format!("--scale: {scale} has no answers: those that are known are of scale 1");
        return Err(Refusal::new(what, "give --scale 1"));
    }
    let file = |(name, number)| -> Result<DataFile, Refusal> {
        let known = QueryAndAnswer::new(number, 1.0).map_err(|error| Refusal::new(error, "this is a bug in pgdyno"))?;
        let lines = known.answer().lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect();
        Ok(DataFile {
            name,
            suffix: "out".into(),
            head: None,
            bytes_per_row: BYTES_PER_LINE,
            rows: Arc::new(Lines(lines)),
        })
    };
    NAMES.into_iter().zip(1..).map(file).collect()
}

/// A line a unit.
#[derive(Debug)]
struct Lines(Vec<String>);

impl Rows for Lines {
    fn units(&self) -> u64 {
        self.0.len() as u64
    }

    fn write(&self, unit: u64, out: &mut Vec<u8>) -> u64 {
        out.extend_from_slice(self.0[unit as usize].as_bytes());
        out.push(b'\n');
        1
    }
}
