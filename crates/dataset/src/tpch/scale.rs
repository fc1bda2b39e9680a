//! How much of TPC-H: dbgen's scale factor.

use pgdyno_workload::Refusal;

/// The least, dbgen's own: ten suppliers.
const THOUSANDTHS_MIN: u64 = 1;
/// 1.1 TB of files; more would be a mistake.
const THOUSANDTHS_MAX: u64 = 1_000_000;
/// How far from a thousandth a number may be that was meant to be one.
const ROUNDING: f64 = 1e-6;

/// A scale factor in whole thousandths, the only ones at which dbgen's numbers of rows are whole.
///
/// dbgen itself takes thousandths below 1 and whole numbers above; between those the rows are what its formulas give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    thousandths: u64,
}

impl Scale {
    /// The scale of a number as 0.01 or 100.
    ///
    /// # Errors
    /// A number outside 0.001 to 1,000, and one that is not a whole number of thousandths.
    pub fn new(scale: f64) -> Result<Self, Refusal> {
        let exact = scale * 1000.0;
        let refused = |why: &str| {
            Refusal::new(format!("--scale: {scale} {why}"), "give 0.001 to 1000 in steps of 0.001, as 0.01")
        };
        if !(exact >= THOUSANDTHS_MIN as f64 - ROUNDING && exact <= THOUSANDTHS_MAX as f64 + ROUNDING) {
            return Err(refused("is not between 0.001 and 1000"));
        }
        if (exact - exact.round()).abs() > ROUNDING {
            return Err(refused("is not a whole number of thousandths"));
        }
        Ok(Self { thousandths: exact.round() as u64 })
    }

    /// How many there are of what there is `base` times at scale 1; a multiple of 1,000.
    pub(super) fn count(self, base: u64) -> u64 {
        base * self.thousandths / 1000
    }

    /// How many orders a refresh function inserts or deletes: dbgen rounds down to tens, so that only scales that are multiples of
    /// 0.02 have the thousandth of clause 2.5.2.
    pub(super) fn orders_of_refresh(self) -> u64 {
        self.thousandths * 15 / 100 * 10
    }

    /// Whether the specification's formula for the four suppliers of a part gives some part the same one twice: it has a
    /// period, and there are few suppliers. Supplier `i` of a part is `i · (S/4 + q)` further on, where `q` is the part's
    /// number by `S` suppliers (clause 4.2.3).
    pub(super) fn repeats_suppliers(self) -> bool {
        let (suppliers, parts) = (self.count(10_000), self.count(200_000));
        let laps = 0..parts.div_ceil(suppliers);
        laps.into_iter().any(|lap| (1..4).any(|step| step * (suppliers / 4 + lap) % suppliers == 0))
    }

    /// For `tpchgen`, which multiplies and rounds down: the product of 150,000 and 0.009 is then 1349.9999999999998.
    ///
    /// The next larger number has products that are at or above the right ones, and below the next whole ones.
    pub(super) fn factor(self) -> f64 {
        (self.thousandths as f64 / 1000.0).next_up()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_scale_has_the_rows_that_dbgen_counts() {
        for thousandths in (1..=THOUSANDTHS_MAX).filter(|one| *one < 5_000 || one % 977 == 0 || one % 1000 == 0) {
            let scale = Scale::new(thousandths as f64 / 1000.0).unwrap();
            assert_eq!(scale, Scale { thousandths });
            for base in [1_000, 10_000, 150_000, 200_000, 1_500_000] {
                assert_eq!((base as f64 * scale.factor()) as u64, base * thousandths / 1000, "{base}, {thousandths}");
            }
        }
    }

    #[test]
    fn few_suppliers_are_given_twice() {
        // Looked up in dbgen's files.
        let found = (1..3_000).filter(|&thousandths| Scale { thousandths }.repeats_suppliers());
        assert_eq!(found.collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7, 9, 12, 15, 18, 21]);
    }

    #[test]
    fn a_scale_that_dbgen_cannot_have_is_refused() {
        for (scale, why) in [
            (0.0, "not between"),
            (-1.0, "not between"),
            (0.0009, "not between"),
            (1000.001, "not between"),
            (f64::NAN, "not between"),
            (f64::INFINITY, "not between"),
            (0.0015, "thousandths"),
            (999.9999, "thousandths"),
        ] {
            let refusal = Scale::new(scale).unwrap_err();
            assert!(refusal.message.starts_with("--scale: ") && refusal.message.contains(why), "{refusal}");
            assert!(refusal.remedy.contains("0.001 to 1000"), "{refusal}");
        }
    }
}
