//! Which captured session takes the place of which.

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
    // Lanes whose last session ended lately; others can have no successor any more.
    let mut recent: Vec<usize> = Vec::new();
    for index in order {
        let session = &sessions[index];
        let last = |lane: usize| &sessions[*lanes[lane].sessions.last().expect("a lane has a session")];
        recent.retain(|lane| last(*lane).end_us + SUCCESSOR_US_MAX >= session.begin_us);
        let free = |lane: &usize| {
            let before = last(*lane);
            before.end_us <= session.begin_us
                && (&before.application, &before.user, &before.database, &before.host)
                    == (&session.application, &session.user, &session.database, &session.host)
        };
        match recent.iter().copied().filter(|lane| free(lane)).max_by_key(|lane| last(*lane).end_us) {
            Some(lane) => lanes[lane].sessions.push(index),
            None => {
                recent.push(lanes.len());
                lanes.push(Lane { sessions: vec![index] });
            }
        }
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
    fn a_session_that_is_not_chosen_is_in_no_lane() {
        let sessions = [session("a", 0, 10), session("b", 0, 10)];
        assert_eq!(lanes(&sessions, |one| one.user == "b"), [Lane { sessions: vec![1] }]);
    }
}
