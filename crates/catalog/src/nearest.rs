//! The name that was probably meant.

use strsim::osa_distance;

/// The candidate nearest to `name`, unless more than half of it would have to change.
pub(crate) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_ascii_lowercase();
    if name.len() > LONGEST {
        return None;
    }
    let best =
        candidates.into_iter().map(|candidate| (osa_distance(&name, candidate), candidate)).min_by_key(|(d, _)| *d)?;
    Some(best).filter(|(distance, candidate)| is_near(*distance, candidate)).map(|(_, candidate)| candidate)
}

/// Up to `most` candidates that may have been meant, the nearest first.
pub(crate) fn nearest_few<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>, most: usize) -> Vec<&'a str> {
    let name = name.to_ascii_lowercase();
    if name.len() > LONGEST {
        return Vec::new();
    }
    let with_distance = candidates.into_iter().map(|candidate| (osa_distance(&name, candidate), candidate));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_offered_for_a_name_unlike_all() {
        assert_eq!(nearest("iosp", ["size", "iops"]), Some("iops"), "two characters swapped are one change");
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
