//! Schedules: what is offered, what is late, and that everything is accounted for once.

use crate::host::{Host, drive};
use pgdyno_workload::*;
use proptest::prelude::*;

const SECOND: Nanos = 1_000_000_000;

fn fixed(segments: Vec<Segment>) -> Arrivals {
    Arrivals::new(Pattern::Open { spacing: Spacing::Fixed, segments }, 1, 0)
}

fn identity(transactions_max: Option<u64>) -> Identity {
    Identity { seed: 1, client: 0, transactions_max, retries: Retries::NONE }
}

#[test]
fn a_fixed_schedule_does_not_drift() {
    let mut arrivals = fixed(vec![Segment::constant(SECOND, 3_000.0)]);
    let mut last = Claim::None;
    (0..3_000_000).for_each(|_| last = arrivals.claim(0));
    assert_eq!(last, Claim::Begin(1_000 * SECOND), "the three millionth is due after exactly 1,000 s");
}

#[test]
fn threads_that_share_a_fixed_schedule_take_turns() {
    let mut all = Vec::new();
    for later in 0..4_u32 {
        let mut arrivals = fixed(vec![Segment::constant(SECOND, 100.0)]).ahead(f64::from(later) / 4.0);
        all.extend((0..5).map(|_| arrivals.claim(0)));
    }
    let even: Vec<Claim> = (1..=20).map(|place| Claim::Begin(place * SECOND / 400)).collect();
    assert!(even.iter().all(|claim| all.contains(claim)), "{all:?}");
}

#[test]
fn steps_and_ramps_offer_what_they_say() {
    let ramp = Segment { duration_ns: 10 * SECOND, rate_begin_per_s: 100.0, rate_end_per_s: 300.0 };
    let pause = Segment::constant(5 * SECOND, 0.0);
    let mut arrivals = fixed(vec![Segment::constant(SECOND, 50.0), ramp, pause, Segment::constant(SECOND, 10.0)]);
    let mut counts = [0; 20];
    while let Claim::Begin(at) = arrivals.claim(0) {
        if at >= 20 * SECOND {
            break;
        }
        counts[(at / SECOND) as usize] += 1;
    }
    // The arrival at the very end of a second belongs to the next one.
    assert_eq!(counts[0] + counts[1..11].iter().sum::<i32>() + counts[11], 50 + 2_000);
    assert!((counts[5] - 190i32).abs() <= 1, "{}", counts[5]);
    assert_eq!(counts[12..16].iter().sum::<i32>(), 0);
    assert!((counts[19] - 10).abs() <= 1);
}

#[test]
fn a_rate_that_ends_at_zero_ends_the_schedule() {
    let mut arrivals = fixed(vec![Segment::constant(SECOND, 2.0), Segment::constant(SECOND, 0.0)]);
    let claims: Vec<Claim> = (0..3).map(|_| arrivals.claim(0)).collect();
    assert_eq!(claims, [Claim::Begin(SECOND / 2), Claim::Begin(SECOND), Claim::None]);
    assert!(arrivals.is_exhausted());
}

#[test]
fn a_stall_leaves_a_backlog_and_not_a_gap() {
    // 5 statements a second are possible where 10 are offered: response times grow, service times do not.
    let workload = Mix::default().script("s", "\\sleep 200ms\nSELECT 1;", 1).unwrap().build();
    let mut arrivals = fixed(vec![Segment::constant(SECOND, 10.0)]).until(2 * SECOND + 1);
    let run = drive(&workload, &Host::default(), identity(None), &mut arrivals);
    let begun: Vec<_> = run.finished.iter().filter(|(_, t)| t.verdict == Verdict::Succeeded).collect();
    assert_eq!(begun.len(), run.finished.len());
    assert_eq!(begun.len() as u64 + arrivals.rest(), 20, "each scheduled transaction is counted once");
    assert_eq!((arrivals.claimed(), arrivals.rest()), (20, 0));
    assert!(begun.iter().all(|(end, t)| end - t.started == 200_000_000 + Host::STATEMENT_NS));
    let (end, last) = begun.last().unwrap();
    assert!(end - last.scheduled > SECOND, "the last one was due long before");
}

#[test]
fn what_is_too_late_is_skipped_and_counted() {
    let workload = Mix::default().script("s", "\\sleep 250ms\nSELECT 1;", 1).unwrap().build();
    let mut arrivals = fixed(vec![Segment::constant(SECOND, 10.0)]).late_max_ns(SECOND / 10).until(10 * SECOND + 1);
    let run = drive(&workload, &Host::default(), identity(None), &mut arrivals);
    let late = |(_, t): &&(Nanos, Transaction)| t.verdict == Verdict::Skipped(Skip::Late);
    assert_eq!(run.finished.len() as u64 + arrivals.rest(), 100);
    assert!(run.finished.iter().filter(late).count() > 50);
    let waited = run.finished.iter().filter(|(_, t)| t.tries > 0).map(|(_, t)| t.started - t.scheduled).max();
    assert!(waited.unwrap() <= SECOND / 10);
}

#[test]
fn thinking_comes_between_transactions_of_a_closed_loop() {
    let workload = Mix::default().script("s", "SELECT 1;", 1).unwrap().build();
    let mut arrivals = Arrivals::new(Pattern::Closed(Think::Constant(SECOND)), 1, 0);
    let run = drive(&workload, &Host::default(), identity(Some(3)), &mut arrivals);
    let starts: Vec<Nanos> = run.finished.iter().map(|(_, t)| t.started).collect();
    assert_eq!(starts, [0, SECOND + 100_000, 2 * SECOND + 200_000]);
    let mut arrivals = Arrivals::new(Pattern::Closed(Think::Exponential(SECOND)), 1, 0);
    let run = drive(&workload, &Host::default(), identity(Some(2_001)), &mut arrivals);
    let mean_s = run.finished[2_000].1.started as f64 / 2_000.0 / 1e9;
    // The mean of 2,000 exponential values has a deviation of 2.2 %.
    assert!((mean_s - 1.0).abs() < 0.09, "{mean_s}");
}

#[test]
fn after_the_end_nobody_thinks_any_more() {
    let workload = Mix::default().script("s", "SELECT 1;", 1).unwrap().build();
    let mut arrivals = Arrivals::new(Pattern::Closed(Think::Constant(60 * SECOND)), 1, 0).until(SECOND);
    let mut client = workload.client(identity(None));
    let done = Outcome::Succeeded { status: Status::Idle, answer: None };
    assert!(matches!(client.next(0, Outcome::Ready, &mut arrivals), Next::Send(_)));
    assert!(matches!(client.next(5, done, &mut arrivals), Next::Finished(_)));
    assert!(matches!(client.next(5, Outcome::Ready, &mut arrivals), Next::WaitUntil(_)));
    assert!(matches!(client.next(SECOND, Outcome::Ready, &mut arrivals), Next::Done));
}

#[test]
fn what_is_due_after_an_end_that_came_early_is_not_begun_and_was_not_scheduled() {
    let workload = Mix::default().script("s", "SELECT 1;", 1).unwrap().build();
    let mut arrivals = fixed(vec![Segment::constant(SECOND, 0.1)]).until(100 * SECOND);
    let mut client = workload.client(identity(None));
    assert!(matches!(client.next(0, Outcome::Ready, &mut arrivals), Next::WaitUntil(_)));
    assert_eq!(arrivals.claimed(), 1);
    arrivals = arrivals.until(SECOND);
    assert!(matches!(client.next(SECOND, Outcome::Ready, &mut arrivals), Next::Done));
    assert_eq!(arrivals.claimed(), 0);
}

#[test]
fn what_was_taken_in_time_and_could_not_begin_is_too_late_too() {
    let workload = Mix::default().script("s", "SELECT 1;", 1).unwrap().build();
    let mut arrivals = fixed(vec![Segment::constant(SECOND, 1.0)]).late_max_ns(SECOND / 10);
    let mut client = workload.client(identity(None));
    assert!(matches!(client.next(0, Outcome::Ready, &mut arrivals), Next::WaitUntil(SECOND)));
    // The session was lost meanwhile, and there is another one four seconds later.
    let Next::Finished(over) = client.next(5 * SECOND, Outcome::Ready, &mut arrivals) else { panic!("it is over") };
    assert_eq!((over.scheduled, over.tries, over.verdict), (SECOND, 0, Verdict::Skipped(Skip::Late)));
    assert!(matches!(client.next(5 * SECOND, Outcome::Ready, &mut arrivals), Next::Finished(_)), "that of 2 s");
}

#[test]
fn failures_are_counted_and_the_next_transaction_goes_on() {
    let workload = Mix::default().builtin(Builtin::TpcbLike, 1).build();
    let code = SqlState(*b"23514");
    let mut arrivals = Arrivals::new(Pattern::Closed(Think::None), 1, 0);
    let run = drive(&workload, &Host::failing(3, code), identity(Some(2)), &mut arrivals);
    assert_eq!(run.sent[4], "ROLLBACK");
    assert_eq!(run.finished[0].1.verdict, Verdict::Failed(Failure::Sql(code)));
    assert_eq!(run.finished[1].1.verdict, Verdict::Succeeded);
}

#[test]
fn a_lost_connection_fails_the_transaction_and_no_other() {
    let workload = Mix::default().script("s", "SELECT 1;", 1).unwrap().build();
    let mut client = workload.client(identity(Some(2)));
    let mut arrivals = Arrivals::new(Pattern::Closed(Think::None), 1, 0);
    assert!(matches!(client.next(0, Outcome::Ready, &mut arrivals), Next::Send(_)));
    let Next::Finished(transaction) = client.next(5, Outcome::Lost, &mut arrivals) else { panic!("it is over") };
    assert_eq!(transaction.verdict, Verdict::Failed(Failure::Lost));
    assert!(matches!(client.next(9, Outcome::Ready, &mut arrivals), Next::Send(_)));
}

#[test]
fn what_is_left_of_a_schedule_is_counted_at_once_however_much_it_is() {
    let days = DURATION_MAX_MS * 1_000_000;
    let steps = vec![Segment::constant(days / 2, RATE_MAX_PER_S), Segment::constant(days / 2, 1.0)];
    let mean = RATE_MAX_PER_S * days as f64 / 2e9 + days as f64 / 2e9;
    let mut even = fixed(steps.clone()).until(days);
    assert!((even.rest() as f64 - mean).abs() <= 2.0, "the last may be due at the end itself");
    assert_eq!((even.rest(), even.claim(0)), (0, Claim::None));
    let mut drawn = Arrivals::new(Pattern::Open { spacing: Spacing::Poisson, segments: steps }, 1, 0).until(days);
    let (count, sigma) = (drawn.rest() as f64, mean.sqrt());
    assert!((count - mean).abs() < 6.0 * sigma && count.fract() == 0.0, "{count} of {mean}");
    assert_eq!(drawn.claimed(), count as u64);
}

proptest! {
    #[test]
    fn what_is_left_is_as_much_as_would_be_claimed(
        rates in prop::collection::vec(0.0f64..5_000.0, 2..6), begun in 0usize..2_000, end_ms in 0u64..6_000, poisson: bool,
    ) {
        let segments = rates.windows(2).map(|pair| Segment {
            duration_ns: SECOND, rate_begin_per_s: pair[0], rate_end_per_s: pair[1],
        });
        let spacing = if poisson { Spacing::Poisson } else { Spacing::Fixed };
        let pattern = Pattern::Open { spacing, segments: segments.collect() };
        let mut one_by_one = Arrivals::new(pattern, 5, 1).ahead(0.25).until(end_ms * 1_000_000);
        for _ in 0..begun {
            one_by_one.claim(0);
        }
        let mut at_once = one_by_one.clone();
        let claims = std::iter::from_fn(|| Some(one_by_one.claim(0))).take_while(|claim| *claim != Claim::None);
        prop_assert_eq!(claims.count() as u64, at_once.rest());
        prop_assert_eq!(at_once.claimed(), one_by_one.claimed());
    }

    /// Scheduled = skipped + succeeded + failed, whatever the rate, the limit and the service time.
    #[test]
    fn every_scheduled_transaction_is_over_once(
        rate in 1.0f64..500.0, service_us in 1u64..50_000, late_ms in 0u64..200, poisson: bool, seed: u64
    ) {
        let text = format!("\\sleep {service_us} us\nSELECT 1;");
        let workload = Mix::default().script("s", &text, 1).unwrap().build();
        let spacing = if poisson { Spacing::Poisson } else { Spacing::Fixed };
        let pattern = Pattern::Open { spacing, segments: vec![Segment::constant(SECOND, rate)] };
        let arrivals = || Arrivals::new(pattern.clone(), seed, 0).late_max_ns(late_ms * 1_000_000).until(3 * SECOND);
        let mut scheduled = Vec::new();
        let mut all = arrivals();
        while let Claim::Begin(at) = all.claim(0) {
            scheduled.push(at);
        }
        let mut driven = arrivals();
        let run = drive(&workload, &Host::default(), identity(None), &mut driven);
        let mut over: Vec<Nanos> = run.finished.iter().map(|(_, transaction)| transaction.scheduled).collect();
        over.sort_unstable();
        prop_assert_eq!(&over[..], &scheduled[..over.len()]);
        prop_assert_eq!(over.len() as u64 + driven.rest(), scheduled.len() as u64);
        for (end, transaction) in &run.finished {
            prop_assert!(transaction.scheduled <= transaction.started && transaction.started <= *end);
        }
    }
}
