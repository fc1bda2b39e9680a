//! Divides a load among the threads that drive it: of one driver, or of one of several that share it.

use pgdyno_clock::Waiter;
use pgdyno_connection::{Fault, Server, Session};
use pgdyno_host as host;
use pgdyno_measure::Record;
use pgdyno_workload::{Arrivals, Identity, Protocol, Retries, Workload};

use crate::link::Link;
use crate::reconnect::Reconnect;
use crate::spec::DriveSpec;
use crate::worker::{Seat, Slot};

const NS_PER_MS: u64 = 1_000_000;

/// Divides clients and schedule among the threads; of each what it needs is there, but for the thread.
pub(crate) fn seats(
    spec: &DriveSpec,
    workload: &Workload,
    (protocol, retries): (Protocol, Retries),
    to: Option<&Server>,
    sessions: Vec<Session>,
) -> Result<Vec<Seat>, Fault> {
    let mut sessions = sessions.into_iter();
    let of = spec.share();
    let mut next = of.clients_before;
    let seat = |thread: u32| {
        let last = u64::from(spec.clients) * u64::from(thread + 1) / u64::from(spec.threads);
        let numbers = next..of.clients_before + last as u32;
        next = numbers.end;
        let part = numbers.len() as f64 / f64::from(of.clients_all);
        let number = of.threads_before + thread;
        let ahead = f64::from(of.threads_all - 1 - number) / f64::from(of.threads_all);
        let mut arrivals = Arrivals::new(spec.pattern(part), spec.seed, number).ahead(ahead).until(spec.end_ns());
        if let Some(late_max_ms) = spec.late_max_ms {
            arrivals = arrivals.late_max_ns(late_max_ms.saturating_mul(NS_PER_MS));
        }
        let slot = |number| {
            let session = sessions.next();
            let link = session.map(|session| Link::new(session, protocol, workload.statements().len()));
            let identity =
                Identity { seed: spec.seed, client: number, transactions_max: spec.transactions_max, retries };
            Slot::new(workload.client(identity), link)
        };
        Ok(Seat {
            waiter: Waiter::new().map_err(|error| host::Fault::of_kernel("sockets cannot be watched", &error))?,
            slots: numbers.map(slot).collect(),
            arrivals,
            reconnect: to.map(Reconnect::start).transpose()?,
            record: Record::new(workload.scripts().len(), workload.groups().texts.len(), 0),
        })
    };
    (0..spec.threads).map(seat).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use pgdyno_workload::Claim;

    use super::*;

    /// Of each thread the number of its clients, and when its transactions begin; idle clients need no server.
    fn threads(arrivals: &Value, clients: u32, threads: u32, share: &Value) -> Vec<(usize, Vec<Claim>)> {
        let document = json!({
            "workload": "idle", "clients": clients, "threads": threads, "share": share, "arrivals": arrivals,
            "duration_ms": 2000, "seed": 7,
        });
        let spec: DriveSpec = serde_json::from_value(document).expect("it is a specification");
        let workload = spec.workload().expect("it can be driven");
        let how = (spec.protocol(&workload).expect("one is known"), workload.retries(None));
        let made = seats(&spec, &workload, how, None, Vec::new()).expect("they are made");
        let of_thread = |seat: Seat| {
            let mut arrivals = seat.arrivals;
            let claims = std::iter::from_fn(|| Some(arrivals.claim(0))).take_while(|claim| *claim != Claim::None);
            (seat.slots.len(), claims.collect())
        };
        made.into_iter().map(of_thread).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn drivers_that_share_a_load_schedule_what_one_would(
            drivers in 1_u32..5,
            threads_each in 1_u32..4,
            per_thread in 1_u32..5,
            poisson in any::<bool>(),
        ) {
            let kind = if poisson { "poisson" } else { "fixed" };
            let arrivals = json!({kind: {"rate_per_s": 300.0}});
            let (threads_all, clients_each) = (drivers * threads_each, threads_each * per_thread);
            let clients_all = drivers * clients_each;
            let whole = threads(&arrivals, clients_all, threads_all, &Value::Null);
            let shares = (0..drivers).flat_map(|driver| {
                let share = json!({
                    "clients_before": driver * clients_each, "clients_all": clients_all,
                    "threads_before": driver * threads_each, "threads_all": threads_all,
                });
                threads(&arrivals, clients_each, threads_each, &share)
            });
            prop_assert!(whole.iter().any(|(_, claims)| !claims.is_empty()));
            prop_assert_eq!(shares.collect::<Vec<_>>(), whole);
        }
    }

    #[test]
    fn a_share_that_is_not_inside_the_load_is_refused() {
        for (clients_before, threads_before) in [(13, 0), (0, 4)] {
            let document = json!({
                "workload": "idle", "clients": 4, "duration_ms": 1000, "arrivals": {"think": {"ms": 1.0}},
                "share": {
                    "clients_before": clients_before, "clients_all": 16,
                    "threads_before": threads_before, "threads_all": 4,
                },
            });
            let spec: DriveSpec = serde_json::from_value(document).expect("it is a specification");
            let said = spec.workload().err().map(|fault| fault.message);
            assert_eq!(said.as_deref(), Some("this share of the load is not inside it"));
        }
    }
}
