//! From the specification of a workload to its clients.

use pgdyno_workload::{
    Builtin, Client, Groups, Identity, Mix, Purpose, Random, Retries, SqlState, Workload as Scripts,
};

use crate::error::DriveError;
use crate::idle::Idle;
use crate::spec::{DriveSpec, Protocol, ScriptSpec, WorkloadSpec};

/// What clients are made of.
pub(crate) struct Workload {
    /// Names of the scripts, by their number.
    pub scripts: Vec<String>,
    /// How many statements there are.
    pub statements: usize,
    /// How they are sent.
    pub protocol: Protocol,
    /// What they are counted as.
    pub groups: Groups,
    program: Option<Scripts>,
    seed: u64,
    transactions_max: Option<u64>,
    retries: Retries,
}

impl Workload {
    /// Refuses what cannot be driven; what is wrong with a script is said with line and column.
    pub(crate) fn new(spec: &DriveSpec) -> Result<Self, DriveError> {
        let program = match &spec.workload {
            WorkloadSpec::Idle => None,
            WorkloadSpec::Pgbench { scripts, scale } => Some(mix(scripts, *scale)?),
            WorkloadSpec::Sysbench(asked) => Some(Scripts::sysbench(asked.settings(spec.clients)?)),
        };
        let protocol = spec.sent_as()?;
        let needs_extended = program.as_ref().is_some_and(Scripts::needs_extended_protocol);
        if needs_extended && protocol == Protocol::Simple {
            return Err(DriveError::new(
                "a script has pipelines, and the simple protocol has none",
                "take extended or prepared",
            ));
        }
        let named = |program: &Scripts| program.scripts().iter().map(|script| script.name.clone()).collect();
        let none = Groups { texts: Vec::new(), classes: Vec::new(), of: Vec::new() };
        Ok(Self {
            scripts: program.as_ref().map_or_else(|| vec!["idle".to_owned()], named),
            statements: program.as_ref().map_or(0, |program| program.statements().len()),
            protocol,
            groups: program.as_ref().map_or(none, Scripts::groups),
            program,
            seed: spec.seed,
            transactions_max: spec.transactions_max,
            retries: spec.retries(),
        })
    }

    /// Whether clients need a server.
    pub(crate) fn connects(&self) -> bool {
        self.program.is_some()
    }

    /// The errors of a workload that works: they are counted, and the client goes on.
    pub(crate) fn forgiven(&self) -> Vec<SqlState> {
        let mut all = vec![SqlState::SERIALIZATION_FAILURE, SqlState::DEADLOCK_DETECTED];
        all.extend(self.retries.as_sysbench.then_some(SqlState::UNIQUE_VIOLATION));
        all
    }

    /// A client by its number.
    pub(crate) fn client(&self, number: u32) -> Box<dyn Client + Send> {
        match &self.program {
            None => Box::new(Idle::new(Random::derived(self.seed, Purpose::Think, number, 0))),
            Some(program) => program.client(Identity {
                seed: self.seed,
                client: number,
                transactions_max: self.transactions_max,
                retries: self.retries,
            }),
        }
    }
}

fn mix(scripts: &[ScriptSpec], scale: u32) -> Result<Scripts, DriveError> {
    if scripts.iter().all(|script| script.weight == 0) {
        return Err(DriveError::new("no script has a weight", "give at least one a weight above zero"));
    }
    let mut mix = Mix::default();
    for script in scripts {
        mix = match (&script.builtin, &script.text) {
            (Some(name), None) => {
                let Some(builtin) = Builtin::named(name) else {
                    let remedy = "take tpcb-like, simple-update or select-only";
                    return Err(DriveError::new(format!("there is no script {name}"), remedy));
                };
                mix.builtin(builtin, script.weight)
            }
            (None, Some(text)) => {
                let name = script.name.as_deref().unwrap_or("script");
                mix.script(name, text, script.weight)
                    .map_err(|error| DriveError::new(error.to_string(), "correct the script"))?
            }
            _ => return Err(DriveError::new("a script is either builtin or text", "give one of the two")),
        };
    }
    Ok(mix.define("scale", &scale.max(1).to_string()).build())
}
