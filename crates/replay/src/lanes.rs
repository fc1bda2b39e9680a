//! Which captured session takes the place of which.

use std::collections::{BTreeSet, HashMap};

use pgdyno_capture::SessionFacts;

/// A session that begins within this time of another's end, from the same application, user, database and host, is one of
/// the same pool and waits for it. So there are never more sessions than the application had, even if the server is slow.
const SUCCESSOR_US_MAX: i64 = 100_000;

/// The sessions of one place of a pool, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lane {
    pub sessions: Vec<usize>,
}

/// Puts those of the sessions that are `chosen` into lanes. A session goes to the place that was left last.
pub(crate) fn lanes(sessions: &[SessionFacts], chosen: impl Fn(&SessionFacts) -> bool) -> Vec<Lane> {
    let mut order: Vec<usize> = (0..sessions.len()).filter(|index| chosen(&sessions[*index])).collect();
    order.sort_by_key(|index| (sessions[*index].begin_us, *index));
    let mut lanes: Vec<Lane> = Vec::new();
    // Of each pool, when the last session of each of its lanes ended.
    let mut ends: HashMap<[&str; 4], BTreeSet<(i64, usize)>> = HashMap::new();
    for index in order {
        let session = &sessions[index];
        let pool = ends.entry([&session.application, &session.user, &session.database, &session.host]).or_default();
        let left = pool.range(..=(session.begin_us, usize::MAX)).next_back().copied();
        let lane = match left {
            Some((end_us, lane)) if end_us.saturating_add(SUCCESSOR_US_MAX) >= session.begin_us => {
                pool.remove(&(end_us, lane));
                lanes[lane].sessions.push(index);
                lane
            }
            _ => {
                lanes.push(Lane { sessions: vec![index] });
                lanes.len() - 1
            }
        };
        pool.insert((session.end_us, lane));
    }
    lanes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(user: &str, begin_ms: i64, end_ms: i64) -> SessionFacts {
        SessionFacts {
            user: user.to_owned(),
            begin_us: begin_ms * 1000,
            end_us: end_ms * 1000,
            calls: 1,
            ..SessionFacts::default()
        }
    }

    #[test]
    fn a_session_takes_the_place_that_one_of_its_kind_left_last() {
        let sessions = [
            session("a", 0, 1000),
            session("a", 0, 1050),
            session("b", 0, 1060),
            session("a", 1070, 2000),
            session("a", 1080, 2000),
            session("a", 2101, 3000),
        ];
        let found: Vec<Vec<usize>> = lanes(&sessions, |_| true).into_iter().map(|lane| lane.sessions).collect();
        assert_eq!(found, [vec![0, 4], vec![1, 3], vec![2], vec![5]]);
    }

    #[test]
    fn sessions_of_any_time_have_their_lanes() {
        let at = |begin_us, end_us| SessionFacts { begin_us, end_us, ..session("a", 0, 0) };
        let sessions = [at(i64::MIN, i64::MAX), at(i64::MIN, i64::MIN), at(i64::MAX, i64::MIN), at(0, i64::MAX)];
        let found: usize = lanes(&sessions, |_| true).iter().map(|lane| lane.sessions.len()).sum();
        assert_eq!(found, sessions.len());
    }

    #[test]
    fn a_session_that_is_not_chosen_is_in_no_lane() {
        let sessions = [session("a", 0, 10), session("b", 0, 10)];
        assert_eq!(lanes(&sessions, |one| one.user == "b"), [Lane { sessions: vec![1] }]);
    }
}
