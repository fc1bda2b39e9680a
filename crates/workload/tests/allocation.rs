//! A client does not allocate once it is warm: what it costs would be charged to the driver.

use pgdyno_workload::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Per thread, as tests run beside one another.
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: all calls go to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(workload: &Workload, retries: Retries) -> u64 {
    let identity = Identity { seed: 1, client: 0, transactions_max: Some(2_000), retries };
    let mut client = workload.client(identity);
    let mut arrivals = Arrivals::new(Pattern::Closed(Think::None), 1, 0);
    let mut text = Vec::with_capacity(1 << 16);
    let (mut outcome, mut before) = (Outcome::Ready, 0);
    let succeeded = Outcome::Succeeded { status: Status::Idle, answer: None };
    loop {
        outcome = match client.next(0, outcome, &mut arrivals) {
            Next::Send(statement) => {
                text.clear();
                statement.template.write_substituted(statement.parameters, &mut text);
                succeeded
            }
            Next::Done => return COUNT.get() - before,
            Next::Finished(transaction) => {
                if transaction.ordinal == 100 {
                    before = COUNT.get();
                }
                Outcome::Ready
            }
            other => panic!("{other:?}"),
        };
    }
}

/// Two types from a deck, which send nothing.
struct Dealt;

impl Kind for Dealt {
    fn scripts(&self) -> Vec<ScriptInfo> {
        vec![ScriptInfo::new("a", 20), ScriptInfo::new("b", 3)]
    }

    fn mixing(&self) -> Mixing {
        Mixing::Dealt
    }

    fn statements(&self) -> Vec<Template> {
        Vec::new()
    }

    fn client(&self, clients: &Clients, identity: Identity) -> Box<dyn Client + Send> {
        clients.client(Nothing, identity)
    }
}

struct Nothing;

impl Program for Nothing {
    fn begin(&mut self, _script: u32, _random: Random, _again: bool) {}

    fn step(&mut self, _now: Nanos, _reply: Reply<'_>) -> Step {
        Step::End
    }

    fn statement(&self) -> Statement<'_> {
        unreachable!("it sends nothing")
    }

    fn error(&self) -> &RunError {
        unreachable!("it never aborts")
    }

    fn fail(&mut self, message: &str) {
        panic!("{message}");
    }
}

#[test]
fn a_warm_client_does_not_allocate() {
    assert_eq!(allocations(&Workload::new(Box::new(Dealt), 1), Retries::NONE), 0, "a deck is shuffled in its place");
    let own = "\\set a random_zipfian(1, 1000, 1.5) / 3.0\n\\if :a > 10\nSELECT :a;\n\\else\nSELECT 1;\n\\endif\n";
    let mix = Mix::default().builtin(Builtin::TpcbLike, 1).builtin(Builtin::SelectOnly, 1).script("own", own, 1);
    let mix = mix.unwrap().define("scale", "10").build();
    assert_eq!(allocations(&mix, Retries { tries_max: 3, ..Retries::NONE }), 0);
    for test in SysbenchTest::ALL {
        let workload = Sysbench { tables: 4, ..Sysbench::new(test, 1) }.workload();
        assert_eq!(allocations(&workload, Retries::SYSBENCH), 0, "{}", test.name());
    }
}
