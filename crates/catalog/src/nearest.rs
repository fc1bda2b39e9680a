//! The name that was probably meant.

/// The candidate nearest to `name`, unless more than half of it would have to change.
pub(crate) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_ascii_lowercase();
    if name.len() > LONGEST {
        return None;
    }
    let best =
        candidates.into_iter().map(|candidate| (edit_distance(&name, candidate), candidate)).min_by_key(|(d, _)| *d)?;
    Some(best).filter(|(distance, candidate)| is_near(*distance, candidate)).map(|(_, candidate)| candidate)
}

/// Up to `most` candidates that may have been meant, the nearest first.
pub(crate) fn nearest_few<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>, most: usize) -> Vec<&'a str> {
    let name = name.to_ascii_lowercase();
    if name.len() > LONGEST {
        return Vec::new();
    }
    let with_distance = candidates.into_iter().map(|candidate| (edit_distance(&name, candidate), candidate));
    let mut near: Vec<_> = with_distance.filter(|(distance, candidate)| is_near(*distance, candidate)).collect();
    near.sort_by_key(|(distance, _)| *distance);
    // One change more than the nearest needs is a guess, two are noise.
    let nearest = near.first().map_or(0, |(distance, _)| *distance);
    near.retain(|(distance, _)| *distance <= nearest + 1);
    near.into_iter().take(most).map(|(_, candidate)| candidate).collect()
}

/// Nothing longer is a slip of the finger, and the distance is quadratic.
const LONGEST: usize = 64;

fn is_near(distance: usize, candidate: &str) -> bool {
    2 * distance <= candidate.chars().count().max(2)
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

    #[test]
    fn the_nearest_come_first_and_the_far_ones_not_at_all() {
        let sizes = ["large", "xlarge", "2xlarge", "metal"];
        assert_eq!(nearest_few("3xlarge", sizes, 2), ["xlarge", "2xlarge"]);
        assert_eq!(nearest_few("metl", sizes, 3), ["metal"]);
        assert!(nearest_few("tiny", sizes, 3).is_empty());
    }
}
