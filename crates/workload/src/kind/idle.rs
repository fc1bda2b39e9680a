//! Transactions without a statement: what they cost is the driver's own.

use crate::client::{Client, Statement};
use crate::error::RunError;
use crate::mixture::ScriptInfo;
use crate::program::{Program, Reply, Step};
use crate::random::Random;
use crate::session::Identity;
use crate::template::Template;
use crate::time::Nanos;
use crate::workload::{Clients, Kind};

/// Transactions that begin when they are due and are over at once.
pub(crate) struct Idle;

impl Kind for Idle {
    fn scripts(&self) -> Vec<ScriptInfo> {
        vec![ScriptInfo::new("idle", 1)]
    }

    fn statements(&self) -> Vec<Template> {
        Vec::new()
    }

    fn connects(&self) -> bool {
        false
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

    fn fail(&mut self, _message: &str) {}
}
