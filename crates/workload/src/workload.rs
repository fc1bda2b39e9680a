//! A kind of workload, and what its clients have in common.

use serde::Deserialize;
use std::sync::Arc;

use crate::client::{Client, StatementId};
use crate::error::{Position, Refusal};
use crate::groups::Groups;
use crate::mixture::{Mixing, Mixture, ScriptInfo};
use crate::program::Program;
use crate::retries::Retries;
use crate::session::{Common, Identity, Session};
use crate::template::Template;

/// A kind of workload with its options: what its clients do.
///
/// Whoever drives a workload knows this trait and no kind. A kind is a folder (or file) below `kind` and a line in
/// [`WorkloadSpec`](crate::WorkloadSpec).
pub trait Kind: Send + Sync {
    /// The types of transaction; a [`Transaction`](crate::Transaction) names one by its index. One has a weight above 0.
    fn scripts(&self) -> Vec<ScriptInfo>;

    /// How they are mixed.
    fn mixing(&self) -> Mixing {
        Mixing::Drawn
    }

    /// All statements that clients send, by [`StatementId`].
    fn statements(&self) -> Vec<Template>;

    /// Whether clients need a server. Scripts that only sleep have no statement and are connected all the same.
    fn connects(&self) -> bool {
        true
    }

    /// How statistics are to group them.
    fn groups(&self) -> Groups {
        Groups::each(&self.statements())
    }

    /// The script and the place in it where a statement stands; nothing of statements that stand in no script.
    fn place_of(&self, _statement: StatementId) -> Option<(&str, Position)> {
        None
    }

    /// How statements are sent unless it is said.
    fn protocol(&self) -> Protocol {
        Protocol::Simple
    }

    /// Whether it can only be driven by the extended protocol, because a script has pipelines.
    fn needs_extended_protocol(&self) -> bool {
        false
    }

    /// Which failed transactions are tried again unless it is said.
    fn retries(&self) -> Retries {
        Retries::NONE
    }

    /// One client, by `clients.client(program, identity)`.
    fn client(&self, clients: &Clients, identity: Identity) -> Box<dyn Client + Send>;
}

/// How statements are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// As text, with the values in it.
    Simple,
    /// Parsed each time, with parameters.
    Extended,
    /// Parsed once on each connection.
    Prepared,
}

/// What makes clients of programs.
pub struct Clients(Arc<Common>);

impl Clients {
    /// A client that runs a program.
    pub fn client<P: Program + Send + 'static>(&self, program: P, identity: Identity) -> Box<dyn Client + Send> {
        Box::new(Session::new(program, Arc::clone(&self.0), identity))
    }
}

/// A workload that is ready for any number of clients.
pub struct Workload {
    kind: Box<dyn Kind>,
    scripts: Vec<ScriptInfo>,
    statements: Vec<Template>,
    groups: Groups,
    clients: Clients,
}

impl Workload {
    /// A workload in a world that is `dilation` times slower: pauses between transactions take so many times as long.
    ///
    /// # Panics
    /// Without a script of a weight above 0.
    pub fn new(kind: Box<dyn Kind>, dilation: u32) -> Self {
        let (scripts, mut statements, mut groups) = (kind.scripts(), kind.statements(), kind.groups());
        let mixture = Mixture::new(&scripts, kind.mixing(), dilation);
        let rollback = Template::new("ROLLBACK");
        let rollback_id = StatementId(statements.len() as u32);
        if kind.connects() {
            statements.push(rollback.clone());
            groups.push(&rollback);
        }
        let clients = Clients(Arc::new(Common { mixture, rollback, rollback_id }));
        Self { kind, scripts, statements, groups, clients }
    }

    /// The types of transaction; a [`Transaction`](crate::Transaction) names one by its index.
    pub fn scripts(&self) -> &[ScriptInfo] {
        &self.scripts
    }

    /// All statements that clients send, by [`StatementId`]; the last is the ROLLBACK after a failure.
    pub fn statements(&self) -> &[Template] {
        &self.statements
    }

    /// Whether clients need a server.
    pub fn connects(&self) -> bool {
        self.kind.connects()
    }

    /// How statistics are to group these statements.
    pub fn groups(&self) -> &Groups {
        &self.groups
    }

    /// A statement's text, as statistics have it.
    pub fn text_of(&self, statement: StatementId) -> &str {
        &self.groups.texts[self.groups.of[statement.0 as usize] as usize]
    }

    /// The script and the place in it where a statement stands; nothing of statements that stand in no script.
    pub fn place_of(&self, statement: StatementId) -> Option<(&str, Position)> {
        self.kind.place_of(statement)
    }

    /// How statements are sent: as was asked, else as the kind's original does.
    ///
    /// # Errors
    /// The simple protocol, for a script with pipelines.
    pub fn protocol(&self, asked: Option<Protocol>) -> Result<Protocol, Refusal> {
        let protocol = asked.unwrap_or_else(|| self.kind.protocol());
        if protocol == Protocol::Simple && self.kind.needs_extended_protocol() {
            let what = "a script has pipelines, and the simple protocol has none";
            return Err(Refusal::new(what, "take extended or prepared"));
        }
        Ok(protocol)
    }

    /// Which failed transactions are tried again: as often as was asked, else as the kind's original does.
    pub fn retries(&self, tries_max: Option<u32>) -> Retries {
        let own = self.kind.retries();
        Retries { tries_max: tries_max.unwrap_or(own.tries_max), ..own }
    }

    /// One client.
    pub fn client(&self, identity: Identity) -> Box<dyn Client + Send> {
        self.kind.client(&self.clients, identity)
    }
}
