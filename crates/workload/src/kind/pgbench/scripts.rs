//! Scripts that are compiled, for any number of clients.

use std::sync::Arc;

use crate::client::{Client, StatementId};
use crate::error::Position;
use crate::mixture::ScriptInfo;
use crate::script::{Command, Machine, Shared};
use crate::session::Identity;
use crate::template::Template;
use crate::value::{Value, Variable};
use crate::workload::{Clients, Kind};

/// Scripts with weights, and the variables that are set from outside.
pub struct Scripts {
    pub(super) scripts: Vec<ScriptInfo>,
    pub(super) shared: Arc<Shared>,
    pub(super) definitions: Vec<(String, Variable)>,
}

impl Kind for Scripts {
    fn scripts(&self) -> Vec<ScriptInfo> {
        self.scripts.clone()
    }

    fn statements(&self) -> Vec<Template> {
        self.shared.statements.clone()
    }

    fn place_of(&self, statement: StatementId) -> Option<(&str, Position)> {
        self.shared.compiled.scripts.iter().find_map(|body| {
            let at = body.commands.iter().find(
                |located| matches!(located.command, Command::Sql { statement: number, .. } if number == statement.0),
            )?;
            Some((body.name.as_str(), at.at))
        })
    }

    fn needs_extended_protocol(&self) -> bool {
        self.shared.compiled.has_pipelines()
    }

    fn client(&self, clients: &Clients, identity: Identity) -> Box<dyn Client + Send> {
        let mut all = predefined(identity);
        all.extend_from_slice(&self.definitions);
        let may_retry = identity.retries.tries_max != 1;
        clients.client(Machine::new(Arc::clone(&self.shared), &all, may_retry), identity)
    }
}

/// The variables that pgbench sets itself; `scale` is 1 unless it is defined.
fn predefined(identity: Identity) -> Vec<(String, Variable)> {
    // The same for all clients, so that hashes and permutations agree between them.
    let seed = identity.seed as i64;
    [("scale", 1), ("client_id", i64::from(identity.client)), ("random_seed", seed), ("default_seed", seed)]
        .map(|(name, value)| (name.to_owned(), Variable::Value(Value::Integer(value))))
        .into()
}
