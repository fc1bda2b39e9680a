//! The name that was probably meant.

/// The candidate nearest to `name`, unless more than half of it would have to change.
pub(crate) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_ascii_lowercase();
    // Nothing this long is a slip of the finger, and the distance is quadratic.
    if name.len() > 64 {
        return None;
    }
    let best =
        candidates.into_iter().map(|candidate| (edit_distance(&name, candidate), candidate)).min_by_key(|(d, _)| *d)?;
    let (distance, candidate) = best;
    (2 * distance <= candidate.chars().count().max(2)).then_some(candidate)
}

/// Least number of characters to insert, delete, replace or swap with the next one.
fn edit_distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut cost = vec![vec![0; to.len() + 1]; from.len() + 1];
    for i in 0..=from.len() {
        for j in 0..=to.len() {
            cost[i][j] = if i == 0 || j == 0 {
                i.max(j)
            } else {
                let replaced = cost[i - 1][j - 1] + usize::from(from[i - 1] != to[j - 1]);
                let swapped = i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1];
                let swap = if swapped { cost[i - 2][j - 2] + 1 } else { usize::MAX };
                replaced.min(cost[i - 1][j] + 1).min(cost[i][j - 1] + 1).min(swap)
            };
        }
    }
    cost[from.len()][to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_inserted_deleted_replaced_and_swapped_characters() {
        for (from, to, distance) in
            [("", "", 0), ("", "gp3", 3), ("gp3", "gp3", 0), ("gp2", "gp3", 1), ("g3", "gp3", 1), ("iosp", "iops", 1)]
        {
            assert_eq!(edit_distance(from, to), distance, "{from} to {to}");
            assert_eq!(edit_distance(to, from), distance, "{to} to {from}");
        }
    }

    #[test]
    fn nothing_is_offered_for_a_name_unlike_all() {
        assert_eq!(nearest("sise", ["size", "iops"]), Some("size"));
        assert_eq!(nearest("GP2", ["null", "gp3"]), Some("gp3"));
        assert_eq!(nearest("postgres", ["null", "gp3", "io2bx"]), None);
        assert_eq!(nearest(&"x".repeat(65), ["null"]), None);
    }
}
