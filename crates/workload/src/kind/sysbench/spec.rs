//! A test of sysbench as it is asked for: the options of 1.0.20 by their names, with their defaults.

use serde::Deserialize;

use super::oltp::Oltp;
use super::settings::{Sysbench, SysbenchTest};
use crate::error::Refusal;
use crate::keys::{SysbenchKeys, SysbenchShape};

/// The column `id` is an INTEGER.
const ROWS_MAX: u32 = i32::MAX as u32;
/// Each table has statements of its own, which every client prepares: beyond this they fill the memory.
const TABLES_MAX: u32 = 100_000;
/// A statement has at most 65,535 parameters, and a range is two.
const VALUES_MAX: u32 = 32_767;

/// One test and its options. Those of the tables (`auto_inc`, `create_secondary`) are the load's.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SysbenchSpec {
    /// A script of 1.0.20 without its `.lua`, or `legacy`.
    pub test: String,
    /// How many tables there are.
    pub tables: u32,
    /// How many rows each of them has (`--table-size`).
    pub rows: u32,
    /// Rows in a range.
    pub range_size: u32,
    /// Point queries in a transaction.
    pub point_selects: u32,
    /// Queries of a range's rows in a transaction.
    pub simple_ranges: u32,
    /// Queries of a range's sum in a transaction.
    pub sum_ranges: u32,
    /// Queries of a range's rows in order in a transaction.
    pub order_ranges: u32,
    /// Queries of a range's distinct rows in a transaction.
    pub distinct_ranges: u32,
    /// Whether there are queries of ranges at all.
    pub range_selects: bool,
    /// Changes of `k` in a transaction.
    pub index_updates: u32,
    /// Changes of `c` in a transaction.
    pub non_index_updates: u32,
    /// Rows that go and come again in a transaction.
    pub delete_inserts: u32,
    /// Whether to leave out BEGIN and COMMIT.
    pub skip_trx: bool,
    /// Values of `k` that `select_random_points` asks for.
    pub random_points: u32,
    /// Ranges of `k` that `select_random_ranges` asks for.
    pub number_of_ranges: u32,
    /// How far such a range goes beyond its first value.
    pub delta: u32,
    /// How ids are drawn.
    pub rand_type: SysbenchKeys,
    /// How many uniform values the bell of `gaussian` and `special` is made of.
    pub rand_spec_iter: u32,
    /// Of `special`: how much of the table its band is said to be, per cent.
    pub rand_spec_pct: u32,
    /// Of `special`: how many of the draws fall into the band, per cent.
    pub rand_spec_res: u32,
    /// Of `pareto`: the share of the rows that gets the others' share of the draws.
    pub rand_pareto_h: f64,
}

impl Default for SysbenchSpec {
    fn default() -> Self {
        let shape = SysbenchShape::DEFAULT;
        Self {
            test: String::new(),
            tables: 1,
            rows: 10_000,
            range_size: 100,
            point_selects: 10,
            simple_ranges: 1,
            sum_ranges: 1,
            order_ranges: 1,
            distinct_ranges: 1,
            range_selects: true,
            index_updates: 1,
            non_index_updates: 1,
            delete_inserts: 1,
            skip_trx: false,
            random_points: 10,
            number_of_ranges: 10,
            delta: 5,
            rand_type: SysbenchKeys::default(),
            rand_spec_iter: shape.iterations,
            rand_spec_pct: shape.band_percent,
            rand_spec_res: shape.band_draws_percent,
            rand_pareto_h: shape.pareto_h,
        }
    }
}

impl SysbenchSpec {
    /// The test, for so many clients in all.
    pub(crate) fn oltp(&self, clients: u32) -> Result<Oltp, Refusal> {
        self.settings(clients).map(Oltp::new)
    }

    /// Which test; one that is not there is refused with the names of those that are.
    fn named(&self) -> Result<SysbenchTest, Refusal> {
        SysbenchTest::named(&self.test).ok_or_else(|| {
            let names: Vec<_> = SysbenchTest::ALL.iter().map(|test| test.name()).collect();
            Refusal::new(format!("sysbench has no test {:?}", self.test), format!("take {}", names.join(", ")))
        })
    }

    /// As the workload has it; what cannot be driven is refused.
    fn settings(&self, clients: u32) -> Result<Sysbench, Refusal> {
        let test = self.named()?;
        let refuse = |what: String, remedy: &str| Err(Refusal::new(what, remedy));
        if !(1..=TABLES_MAX).contains(&self.tables) || !(1..=ROWS_MAX).contains(&self.rows) {
            let what = format!("{} tables of {} rows cannot be driven", self.tables, self.rows);
            return refuse(what, "take 1 to 100000 tables, and 1 to 2147483647 rows");
        }
        if test.is_on_k() && self.tables > 1 {
            return refuse(format!("{} has one table", test.name()), "let tables be 1, as sysbench wants it");
        }
        if self.random_points.max(self.number_of_ranges) > VALUES_MAX {
            return refuse("a statement asks for more than 32,767 values".to_owned(), "ask for fewer");
        }
        let percent = self.rand_spec_pct.max(self.rand_spec_res) <= 100;
        if self.rand_spec_iter == 0 || !percent || !(self.rand_pareto_h > 0.0 && self.rand_pareto_h < 1.0) {
            let remedy = "rand_spec_iter is at least 1, rand_spec_pct and rand_spec_res are per cent, rand_pareto_h is \
                          between 0 and 1";
            return refuse("the settings of rand_type are out of their ranges".to_owned(), remedy);
        }
        let settings = self.unchecked(test, clients);
        if settings.is_empty() {
            return refuse(format!("a transaction of {} has no statement", test.name()), "raise one of its counts");
        }
        Ok(settings)
    }

    fn unchecked(&self, test: SysbenchTest, clients: u32) -> Sysbench {
        let ranges = |count| if self.range_selects { count } else { 0 };
        Sysbench {
            test,
            tables: self.tables,
            table_size: i64::from(self.rows),
            keys: self.rand_type,
            shape: SysbenchShape {
                iterations: self.rand_spec_iter,
                band_percent: self.rand_spec_pct,
                band_draws_percent: self.rand_spec_res,
                pareto_h: self.rand_pareto_h,
            },
            clients,
            point_selects: self.point_selects,
            simple_ranges: ranges(self.simple_ranges),
            sum_ranges: ranges(self.sum_ranges),
            order_ranges: ranges(self.order_ranges),
            distinct_ranges: ranges(self.distinct_ranges),
            range_size: i64::from(self.range_size),
            index_updates: self.index_updates,
            non_index_updates: self.non_index_updates,
            delete_inserts: self.delete_inserts,
            random_points: self.random_points,
            number_of_ranges: self.number_of_ranges,
            delta: i64::from(self.delta),
            skip_trx: self.skip_trx,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> SysbenchSpec {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn what_is_not_said_is_as_in_sysbench() {
        for test in SysbenchTest::ALL {
            let asked = read(&format!(r#"{{"test": "{}"}}"#, test.name()));
            assert_eq!(asked.settings(4).unwrap(), Sysbench::new(test, 4));
        }
    }

    #[test]
    fn ranges_are_switched_off_together() {
        let asked = read(r#"{"test": "oltp_read_only", "range_selects": false, "rand_type": "uniform"}"#);
        let settings = asked.settings(1).unwrap();
        let ranges = [settings.simple_ranges, settings.sum_ranges, settings.order_ranges, settings.distinct_ranges];
        assert_eq!((ranges, settings.point_selects, settings.keys), ([0; 4], 10, SysbenchKeys::Uniform));
    }

    #[test]
    fn what_cannot_be_driven_is_refused() {
        for (json, word) in [
            (r#"{"test": "oltp"}"#, "oltp"),
            (r#"{"test": "legacy", "tables": 0}"#, "0 tables"),
            (r#"{"test": "legacy", "rows": 4000000000}"#, "4000000000"),
            (r#"{"test": "select_random_points", "tables": 2}"#, "one table"),
            (r#"{"test": "select_random_ranges", "number_of_ranges": 40000}"#, "32,767"),
            (r#"{"test": "oltp_update_index", "index_updates": 0}"#, "no statement"),
            (r#"{"test": "legacy", "rand_pareto_h": 1.0}"#, "rand_type"),
        ] {
            let error = read(json).settings(1).unwrap_err();
            assert!(error.message.contains(word), "{json}: {error}");
        }
        let unknown = serde_json::from_str::<SysbenchSpec>(r#"{"test": "legacy", "table_size": 1}"#);
        assert!(unknown.unwrap_err().to_string().contains("table_size"));
    }
}
