//! A kind of workload of a test's own: this file and one line, `Workload::new(Box::new(Toy), …)`, are all that it takes.

use crate::host::{Host, Run, drive};
use pgdyno_workload::*;

const SECOND_NS: Nanos = 1_000_000_000;
const TEXTS: [&str; 4] = ["BEGIN", "UPDATE stock SET sold = sold + 1", "COMMIT", "ROLLBACK"];

/// Orders, of which some are rolled back on purpose, and counts of the stock; dealt from a deck of four cards.
struct Toy;

impl Kind for Toy {
    fn scripts(&self) -> Vec<ScriptInfo> {
        let order = ScriptInfo {
            keying: Think::Constant(18 * SECOND_NS),
            think: Think::Constant(12 * SECOND_NS),
            ..ScriptInfo::new("order", 3)
        };
        vec![order, ScriptInfo { keying: Think::Constant(2 * SECOND_NS), ..ScriptInfo::new("count", 1) }]
    }

    fn mixing(&self) -> Mixing {
        Mixing::Dealt
    }

    fn statements(&self) -> Vec<Template> {
        TEXTS.map(Template::new).to_vec()
    }

    fn client(&self, clients: &Clients, identity: Identity) -> Box<dyn Client + Send> {
        clients.client(Trade { statements: self.statements(), left: Vec::new(), sent: 0, unwanted: false }, identity)
    }
}

struct Trade {
    statements: Vec<Template>,
    /// Statements that are still to be sent, the next one last.
    left: Vec<u32>,
    sent: u32,
    unwanted: bool,
}

impl Program for Trade {
    fn begin(&mut self, script: u32, mut random: Random, _again: bool) {
        self.unwanted = script == 0 && random.up_to(3) == 0;
        self.left = vec![if self.unwanted { 3 } else { 2 }, 1, 0];
    }

    fn step(&mut self, _now: Nanos, _reply: Reply<'_>) -> Step {
        match self.left.pop() {
            Some(next) => {
                self.sent = next;
                Step::Send
            }
            None if self.unwanted => Step::EndRolledBack,
            None => Step::End,
        }
    }

    fn statement(&self) -> Statement<'_> {
        Statement {
            id: StatementId(self.sent),
            template: &self.statements[self.sent as usize],
            parameters: Parameters::default(),
            keep: false,
            pipelined: false,
        }
    }

    fn error(&self) -> &RunError {
        unreachable!("it never aborts")
    }

    fn fail(&mut self, message: &str) {
        panic!("{message}");
    }
}

fn run(client: u32, dilation: u32, pattern: Pattern) -> Run {
    let identity = Identity { seed: 7, client, transactions_max: Some(400), retries: Retries::NONE };
    let workload = Workload::new(Box::new(Toy), dilation);
    drive(&workload, &Host::default(), identity, &mut Arrivals::new(pattern, 7, 0))
}

fn closed(client: u32, dilation: u32) -> Run {
    run(client, dilation, Pattern::Closed(Think::None))
}

fn dealt(run: &Run) -> Vec<u32> {
    run.finished.iter().map(|(_, done)| done.script).collect()
}

#[test]
fn each_client_deals_its_whole_deck_in_another_order_each_time() {
    let scripts = dealt(&closed(0, 1));
    assert_eq!(scripts.len(), 400);
    let mut places = [0; 4];
    for round in scripts.chunks(4) {
        assert_eq!(round.iter().sum::<u32>(), 1, "one card of four counts the stock: {round:?}");
        places[round.iter().position(|script| *script == 1).unwrap()] += 1;
    }
    // 25 are expected at each place; four standard deviations of 100 draws are 17.
    assert!(places.iter().all(|count| (8..=42).contains(count)), "{places:?}");
    assert_eq!(dealt(&closed(0, 1)), scripts);
    assert_ne!(dealt(&closed(1, 1)), scripts);
}

#[test]
fn pauses_are_those_of_the_types_and_in_no_latency() {
    for dilation in [1, 3] {
        let run = closed(0, dilation);
        let seconds = |script: u32| if script == 0 { (18, 12) } else { (2, 0) };
        let mut free_at = 0;
        for (index, (end, done)) in run.finished.iter().enumerate() {
            let think = index.checked_sub(1).map_or(0, |before| seconds(run.finished[before].1.script).1);
            let pause = (think + seconds(done.script).0) * SECOND_NS * u64::from(dilation);
            assert_eq!((done.scheduled, done.started), (free_at + pause, free_at + pause));
            assert_eq!(end - done.started, 3 * Host::STATEMENT_NS);
            free_at = *end;
        }
    }
}

#[test]
fn an_open_schedule_has_no_pauses() {
    let segments = vec![Segment::constant(4 * SECOND_NS, 100.0)];
    let run = run(0, 1, Pattern::Open { spacing: Spacing::Fixed, segments });
    assert!(run.finished.iter().all(|(end, done)| end - done.scheduled == 3 * Host::STATEMENT_NS));
}

#[test]
fn a_rollback_on_purpose_is_an_end_of_its_own() {
    let run = closed(0, 1);
    let unwanted = run.finished.iter().filter(|(_, done)| done.verdict == Verdict::RolledBack).count();
    let succeeded = run.finished.iter().filter(|(_, done)| done.verdict == Verdict::Succeeded).count();
    // A quarter of 300 orders; four standard deviations are 30.
    assert!((45..=105).contains(&unwanted), "{unwanted}");
    assert_eq!(unwanted + succeeded, 400);
    assert_eq!(run.sent.iter().filter(|sql| *sql == "ROLLBACK").count(), unwanted);
}

#[test]
fn statistics_know_its_types_and_statements() {
    let workload = Workload::new(Box::new(Toy), 1);
    let names: Vec<&str> = workload.scripts().iter().map(|script| script.name.as_str()).collect();
    assert_eq!((names, workload.connects()), (vec!["order", "count"], true));
    assert_eq!(workload.groups().texts, [&TEXTS[..], &["ROLLBACK"]].concat());
    assert_eq!(workload.protocol(None), Ok(Protocol::Simple));
}

#[test]
fn a_script_that_only_sleeps_is_connected_all_the_same() {
    let workload = Mix::default().script("s", "\\sleep 10 ms", 1).unwrap().build();
    assert!(workload.connects());
    assert_eq!(workload.groups().texts, ["ROLLBACK"]);
}

#[test]
fn idle_clients_take_transactions_and_send_nothing() {
    let workload = serde_json::from_str::<WorkloadSpec>("\"idle\"").unwrap().workload(1, 1).unwrap();
    assert!(!workload.connects() && workload.groups().texts.is_empty());
    let identity = Identity { seed: 1, client: 0, transactions_max: None, retries: Retries::NONE };
    let segments = vec![Segment::constant(SECOND_NS, 100.0)];
    let pattern = Pattern::Open { spacing: Spacing::Fixed, segments };
    let run = drive(&workload, &Host::default(), identity, &mut Arrivals::new(pattern, 1, 0).until(SECOND_NS));
    assert_eq!((run.sent.len(), run.finished.len()), (0, 99));
    assert!(run.finished.iter().all(|(end, done)| (*end, done.verdict) == (done.scheduled, Verdict::Succeeded)));
}

#[test]
fn an_order_of_a_kind_is_refused_with_its_reason() {
    for (asked, word) in [
        (r#"{"pgbench": {"scale": 1, "scripts": [{"builtin": "tpcb-like", "weight": 0}]}}"#, "no script has a weight"),
        (r#"{"pgbench": {"scale": 1, "scripts": [{"builtin": "tpcc"}]}}"#, "there is no script tpcc"),
        (r#"{"pgbench": {"scale": 1, "scripts": [{}]}}"#, "either builtin or text"),
        (r#"{"pgbench": {"scale": 1, "scripts": [{"text": "\\set", "name": "a.sql"}]}}"#, "a.sql:1:"),
        (r#"{"sysbench": {"test": "oltp"}}"#, "no test \"oltp\""),
    ] {
        let refusal = serde_json::from_str::<WorkloadSpec>(asked).unwrap().workload(1, 1).err().expect(asked);
        assert!(refusal.message.contains(word) && !refusal.remedy.is_empty(), "{asked}: {refusal}");
    }
    let unknown = serde_json::from_str::<WorkloadSpec>(r#"{"pgbench": {"scale": 1, "scripts": [], "size": 2}}"#);
    assert!(unknown.is_err_and(|error| error.to_string().contains("size")));
}
