//! Whether the database is that of the capture's begin: the first keys follow the last values of their sequences.

use serde::Serialize;

use super::uses::Use;

/// How the keys of a column follow the last value of its sequence in the database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Fit {
    /// Table and column.
    pub column: String,
    /// Values between the last one of the database and the first of the capture that no statement of it took: rows that
    /// production made before the capture and that the database does not have.
    pub missing: u64,
    /// Values that the sequence gave from its first known key to its last.
    pub given: u64,
    /// Statements whose answer has a key.
    pub returned: u64,
    /// Of these, those behind which nothing is new but a value that the sequence of the database has given lately: rows that
    /// production made during the capture and that the database has already.
    pub already: u64,
}

/// What else is known of a sequence's use.
pub(crate) struct Beside<'a> {
    /// The sequence's last value in the database.
    pub after: u64,
    /// When statements were due that may have taken values of any sequence.
    pub others: &'a [i64],
    /// The database is that of this time.
    pub from_us: i64,
    /// Values that sessions may have had when the sequence was read, and not used.
    pub cached: u64,
    /// By how much values that are new behind statements without a known key are below the sequence's last one.
    pub below: &'a [u64],
}

/// The fit of one column; none where no statement returns a key of it.
pub(crate) fn fit(column: &str, uses: &[Use], beside: &Beside) -> Option<Fit> {
    let returned = uses.iter().filter(|one| one.returned.is_some()).count() as u64;
    if returned == 0 {
        return None;
    }
    let all = (uses.len() + beside.others.len()) as u64;
    let already = beside.below.iter().filter(|below| **below < all).count() as u64;
    let (missing, given) = missing(uses, beside).unwrap_or((0, 0));
    Some(Fit { column: column.to_owned(), missing, given, returned, already })
}

/// What is missing before the first known key, and how many values there are from it to the last.
fn missing(uses: &[Use], beside: &Beside) -> Option<(u64, u64)> {
    let known = uses.iter().filter_map(|one| Some((one.key?, one)));
    let (first, maker) = known.clone().min_by_key(|(number, _)| *number)?;
    let last = known.map(|(number, _)| number).max()?;
    let is_before = |at_us: i64| beside.from_us <= at_us && at_us < maker.at.due_us;
    let before = uses.iter().filter(|one| is_before(one.at.due_us)).count()
        + beside.others.iter().filter(|at_us| is_before(**at_us)).count();
    let missing = first
        .saturating_sub(beside.after.saturating_add(1))
        .saturating_sub(beside.cached)
        .saturating_sub(before as u64);
    Some((missing, (last - first).saturating_add(1)))
}

#[cfg(test)]
mod tests {
    use super::super::uses::At;
    use super::*;

    fn taken(due_us: i64, key: Option<u64>) -> Use {
        let at = At { due_us, session: 0, call: 0 };
        Use { at, transaction: 1, ended_us: due_us, key, returned: Some("id".to_owned()) }
    }

    fn of(uses: &[Use], others: &[i64], cached: u64) -> Option<(u64, u64)> {
        let beside = Beside { after: 100, others, from_us: 0, cached, below: &[] };
        fit("orders.id", uses, &beside).map(|one| (one.missing, one.given))
    }

    #[test]
    fn first_keys_follow_the_last_value_or_rows_are_missing() {
        assert_eq!(of(&[taken(1, Some(101)), taken(2, Some(102))], &[], 0), Some((0, 2)));
        assert_eq!(of(&[taken(1, Some(5_001)), taken(2, Some(5_010))], &[], 0), Some((4_900, 10)));
        assert_eq!(of(&[taken(1, None)], &[], 0), Some((0, 0)));
        assert_eq!(of(&[], &[1], 0), None);
    }

    #[test]
    fn what_statements_of_the_capture_took_is_not_missing() {
        assert_eq!(of(&[taken(1, None), taken(2, Some(103))], &[1, 3], 0), Some((0, 1)));
        assert_eq!(of(&[taken(1, None), taken(2, Some(104))], &[1, 3], 0), Some((1, 1)));
        // Those of before the part that is sent are in the database.
        assert_eq!(of(&[taken(-1, None), taken(2, Some(103))], &[], 0), Some((2, 1)));
        assert_eq!(of(&[taken(2, Some(104))], &[], 3), Some((0, 1)));
    }

    #[test]
    fn rows_that_the_database_has_already_are_those_of_its_last_values() {
        let uses = [taken(1, None), taken(2, None), taken(3, Some(101))];
        let beside = Beside { after: 100, others: &[], from_us: 0, cached: 0, below: &[0, 2, 3, 40] };
        let found = fit("orders.id", &uses, &beside).unwrap();
        assert_eq!((found.already, found.returned), (2, 3), "older ones are rows that were looked at");
    }
}
