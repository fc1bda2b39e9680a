//! A workload: its scripts, their weights, and the clients that run them.

use crate::client::{Client, StatementId};
use crate::error::ScriptError;
use crate::pgbench::Builtin;
use crate::script::{Compiler, Machine, Shared};
use crate::session::{Common, Identity, Session};
use crate::sysbench::{Event, Plan, Sysbench};
use crate::template::{Class, Template};
use crate::value::{Value, Variable};
use std::sync::Arc;

/// Scripts with weights, for any number of clients.
pub struct Workload {
    scripts: Vec<ScriptInfo>,
    kind: Kind,
    statements: Vec<Template>,
    common: Arc<Common>,
}

/// A script of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptInfo {
    /// The name, for its statistics.
    pub name: String,
    /// How often it runs, relative to the others.
    pub weight: u32,
}

/// The statements of a workload as statistics have them: those that differ by the number of their table alone are one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups {
    /// The text of each; where there are several tables, with `N` for their numbers.
    pub texts: Vec<String>,
    /// What each counts as.
    pub classes: Vec<Class>,
    /// The group of each statement, by [`StatementId`].
    pub of: Vec<u32>,
}

enum Kind {
    Scripts { shared: Arc<Shared>, definitions: Vec<(String, Variable)> },
    Sysbench(Arc<Plan>),
}

/// A mix of pgbench scripts in the making.
#[derive(Default)]
pub struct Mix {
    compiler: Compiler,
    scripts: Vec<ScriptInfo>,
    definitions: Vec<(String, Variable)>,
}

impl Mix {
    /// Adds a built-in script.
    #[must_use]
    pub fn builtin(mut self, script: Builtin, weight: u32) -> Self {
        let first = self.compiler.statements.len();
        self.compiler.add(script.name(), &script.text()).expect("the built-in scripts are sound");
        for (template, access) in self.compiler.statements[first..].iter_mut().zip(script.accesses()) {
            if let Some(access) = access {
                *template = std::mem::take(template).access(*access);
            }
        }
        self.scripts.push(ScriptInfo { name: script.name().to_owned(), weight });
        self
    }

    /// Adds a script of the user's.
    ///
    /// # Errors
    /// What is wrong with it first, with line and column.
    pub fn script(mut self, name: &str, text: &str, weight: u32) -> Result<Self, ScriptError> {
        self.compiler.add(name, text)?;
        self.scripts.push(ScriptInfo { name: name.to_owned(), weight });
        Ok(self)
    }

    /// Sets a variable for all clients, as pgbench's `--define` does: `scale` is one.
    #[must_use]
    pub fn define(mut self, name: &str, value: &str) -> Self {
        self.definitions.push((name.to_owned(), Variable::Text(value.as_bytes().to_vec())));
        self
    }

    /// The workload.
    ///
    /// # Panics
    /// Without a script of a weight above 0.
    pub fn build(self) -> Workload {
        let shared = Arc::new(Shared { compiled: self.compiler.compiled, statements: self.compiler.statements });
        let statements = shared.statements.clone();
        Workload::new(self.scripts, Kind::Scripts { shared, definitions: self.definitions }, statements)
    }
}

impl Workload {
    /// A test of sysbench.
    ///
    /// # Panics
    /// Without tables, rows, clients or statements.
    pub fn sysbench(settings: Sysbench) -> Self {
        let plan = Plan::new(settings);
        let statements = plan.statements().to_vec();
        let scripts = vec![ScriptInfo { name: settings.test.name().to_owned(), weight: 1 }];
        Self::new(scripts, Kind::Sysbench(Arc::new(plan)), statements)
    }

    fn new(scripts: Vec<ScriptInfo>, kind: Kind, mut statements: Vec<Template>) -> Self {
        let mut total = 0;
        let weights: Vec<u64> = scripts
            .iter()
            .map(|script| {
                total += u64::from(script.weight);
                total
            })
            .collect();
        assert!(total > 0, "a workload needs a script of a weight above 0");
        let rollback = Template::new("ROLLBACK");
        let rollback_id = StatementId(statements.len() as u32);
        statements.push(rollback.clone());
        Self { scripts, kind, statements, common: Arc::new(Common { weights, rollback, rollback_id }) }
    }

    /// The scripts; a [`Transaction`](crate::Transaction) names one by its index.
    pub fn scripts(&self) -> &[ScriptInfo] {
        &self.scripts
    }

    /// All statements that clients send, by [`StatementId`]; the last is the ROLLBACK after a failure.
    pub fn statements(&self) -> &[Template] {
        &self.statements
    }

    /// How statistics are to group these statements.
    pub fn groups(&self) -> Groups {
        let all = self.statements.len();
        let of_table = match &self.kind {
            Kind::Scripts { .. } => all - 1,
            Kind::Sysbench(plan) => plan.statements_of_table(),
        };
        let several = all - 1 > of_table;
        let text = |template: &Template| {
            let text = template.numbered();
            if several { text.replace("sbtest1", "sbtestN") } else { text.to_owned() }
        };
        let rollback = &self.statements[all - 1];
        let named = || self.statements[..of_table].iter().chain([rollback]);
        Groups {
            texts: named().map(text).collect(),
            classes: named().map(Template::class).collect(),
            of: (0..all - 1).map(|id| (id % of_table) as u32).chain([of_table as u32]).collect(),
        }
    }

    /// Whether it can only be driven by the extended protocol, because a script has pipelines.
    pub fn needs_extended_protocol(&self) -> bool {
        match &self.kind {
            Kind::Scripts { shared, .. } => shared.compiled.has_pipelines(),
            Kind::Sysbench(_) => false,
        }
    }

    /// One client.
    pub fn client(&self, identity: Identity) -> Box<dyn Client + Send> {
        let common = Arc::clone(&self.common);
        match &self.kind {
            Kind::Scripts { shared, definitions } => {
                let mut all = predefined(identity);
                all.extend_from_slice(definitions);
                let may_retry = identity.retries.tries_max != 1;
                Box::new(Session::new(Machine::new(Arc::clone(shared), &all, may_retry), common, identity))
            }
            Kind::Sysbench(plan) => {
                Box::new(Session::new(Event::new(Arc::clone(plan), identity.client), common, identity))
            }
        }
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
