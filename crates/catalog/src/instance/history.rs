//! What instance types were held to at an earlier time: `m5.xlarge@2018-12`. To repeat what was measured then.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;

use crate::error::CatalogError;
use crate::fact::Source;
use crate::instance::file::{EbsRow, Origin, SCHEMA_VERSION, read_ebs};

const FILES: [(&str, &str, &str, &str); 2] = [
    (
        "ec2-2018-05.toml",
        include_str!("../../../../catalog/instances/ec2-2018-05.toml"),
        "ec2-2018-05.csv",
        include_str!("../../../../catalog/instances/ec2-2018-05.csv"),
    ),
    (
        "ec2-2018-12.toml",
        include_str!("../../../../catalog/instances/ec2-2018-12.toml"),
        "ec2-2018-12.csv",
        include_str!("../../../../catalog/instances/ec2-2018-12.csv"),
    ),
];

const HEADER: &str = "name,ebs,baseline_mb_per_s,maximum_mb_per_s,baseline_iops,maximum_iops";

/// The limits of one month.
#[derive(Debug)]
pub(crate) struct History {
    /// `YYYY-MM`.
    pub as_of: String,
    /// The document that has them, and its date.
    pub source: String,
    pub date: String,
    pub rows: BTreeMap<&'static str, EbsRow>,
}

/// The file beside the table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct HistoryFile {
    schema_version: u32,
    as_of: String,
    rows: String,
    sources: BTreeMap<String, Source>,
    columns: BTreeMap<String, Origin>,
}

/// Every month that is on record, the earliest first; read once.
pub(crate) fn instance_history() -> Result<&'static [History], CatalogError> {
    static HISTORY: OnceLock<Result<Vec<History>, CatalogError>> = OnceLock::new();
    let read =
        || FILES.iter().map(|(name, head, rows_name, rows)| History::read(name, head, rows_name, rows)).collect();
    HISTORY.get_or_init(read).as_deref().map_err(Clone::clone)
}

impl History {
    fn read(name: &str, head: &str, rows_name: &str, rows: &'static str) -> Result<Self, CatalogError> {
        let broken = |file: &str, problem: String| CatalogError { file: format!("instances/{file}"), problem };
        let file: HistoryFile = toml::from_str(head).map_err(|error| broken(name, error.to_string()))?;
        let (source, date) = file.check(rows_name).map_err(|problem| broken(name, problem))?;
        let rows = read_rows(rows).map_err(|problem| broken(rows_name, problem))?;
        Ok(Self { as_of: file.as_of, source, date, rows })
    }
}

impl HistoryFile {
    /// Title of the document and its date, which all columns have in common.
    fn check(&self, rows_name: &str) -> Result<(String, String), String> {
        if self.schema_version != SCHEMA_VERSION {
            return Err(format!("schema_version {} is not {SCHEMA_VERSION}", self.schema_version));
        }
        if self.rows != rows_name {
            return Err(format!("rows is {:?} and not {rows_name:?}", self.rows));
        }
        let mut found = None;
        for column in HEADER.split(',').skip(1) {
            let origin = self.columns.get(column).ok_or(format!("column {column} has no source"))?;
            let source = self.sources.get(&origin.source);
            let title = &source.ok_or(format!("source {:?} is not in [sources]", origin.source))?.title;
            let one = (title.clone(), origin.date.clone());
            if found.get_or_insert_with(|| one.clone()) != &one {
                return Err(format!("column {column} is of another document or day than those before it"));
            }
        }
        let (title, date) = found.ok_or("there are no columns")?;
        if date.starts_with(&self.as_of) { Ok((title, date)) } else { Err(format!("{date} is not in {}", self.as_of)) }
    }
}

fn read_rows(text: &'static str) -> Result<BTreeMap<&'static str, EbsRow>, String> {
    let mut lines = text.lines();
    if lines.next() != Some(HEADER) {
        return Err(format!("the first line is not {HEADER}"));
    }
    let mut rows = BTreeMap::new();
    for (number, line) in lines.enumerate().map(|(i, line)| (i + 2, line)) {
        let fields: Vec<&str> = line.split(',').collect();
        let &[name, ebs, base_mb, max_mb, base_iops, max_iops] = fields.as_slice() else {
            return Err(format!("line {number}: {} fields are not 6", fields.len()));
        };
        let limits = read_ebs(ebs, [base_mb, max_mb, base_iops, max_iops]);
        let limits = limits.map_err(|problem| format!("line {number}: {problem}"))?;
        let limits = limits.ok_or(format!("line {number}: there is no limit"))?;
        if rows.insert(name, limits).is_some() {
            return Err(format!("line {number}: {name} is there twice"));
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instance::file::instance_catalog;

    #[test]
    fn every_type_of_then_is_a_type_of_today() {
        let today = &instance_catalog().unwrap().rows;
        for history in instance_history().unwrap() {
            for name in history.rows.keys() {
                assert!(today.iter().any(|row| row.name == *name), "{name} of {}", history.as_of);
            }
        }
        assert_eq!(instance_history().unwrap().iter().map(|one| one.rows.len()).collect::<Vec<_>>(), [51, 128]);
    }

    #[test]
    fn a_mistake_names_its_file_and_line() {
        let (name, head, rows_name, _) = FILES[0];
        for (row, complaint) in [
            ("m5.large,default,1,2,3", "5 fields are not 6"),
            ("m5.large,unsupported,,,,", "there is no limit"),
            ("m5.large,default,3,2,3,4", "not above its maximum"),
            ("m5.large,default,1,2,3,4\nm5.large,default,1,2,3,4", "line 3: m5.large is there twice"),
        ] {
            let text: &'static str = format!("{HEADER}\n{row}\n").leak();
            let error = History::read(name, head, rows_name, text).unwrap_err().to_string();
            assert!(error.contains(complaint) && error.contains(rows_name), "{row}: {error}");
        }
        for (from, to, complaint) in [
            ("maximum_iops = {", "most_iops = {", "maximum_iops has no source"),
            ("[sources.guide]", "[sources.book]", "guide"),
            ("as_of = \"2018-05\"", "as_of = \"2018-06\"", "2018-05-30 is not in 2018-06"),
            (
                "maximum_iops = { source = \"guide\", date = 2018-05-30",
                "maximum_iops = { source = \"guide\", date = 2018-05-29",
                "another document or day",
            ),
            ("rows = \"ec2-2018-05.csv\"", "rows = \"other.csv\"", "other.csv"),
            ("schema_version = 1", "schema_version = 2", "schema_version 2"),
        ] {
            let error = History::read(name, &head.replacen(from, to, 1), rows_name, HEADER).unwrap_err().to_string();
            assert!(error.contains(complaint), "{error}");
        }
    }
}
