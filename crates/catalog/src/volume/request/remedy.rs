//! From a refused request to specifications that are accepted.

use crate::volume::request::Request;
use crate::volume::request::rules::judge;

/// A fix may break the next rule (more throughput needs more IOPS, which need a larger volume); no chain is longer.
const LONGEST_CHAIN: usize = 8;

/// The candidates that are legal or can be made so, joined by " or ".
pub(crate) fn text(candidates: impl IntoIterator<Item = Request>) -> String {
    let mut remedies: Vec<String> = Vec::new();
    for legal in candidates.into_iter().filter_map(nearest_legal) {
        let remedy = legal.to_string();
        if !remedies.contains(&remedy) {
            remedies.push(remedy);
        }
    }
    remedies.join(" or ")
}

fn nearest_legal(mut request: Request) -> Option<Request> {
    for _ in 0..LONGEST_CHAIN {
        match judge(&request) {
            Ok(_) => return Some(request),
            Err(violation) => request = *violation.fixes.first()?,
        }
    }
    None
}
