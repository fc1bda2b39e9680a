//! TPC-C's transactions as a kind of workload.

use std::sync::Arc;

use serde::Deserialize;

use super::routine::Routine;
use super::settings::{Profile, Routines, Schema, Settings, WAREHOUSES_MAX};
use super::sql::{Prepared, statements};
use super::statements::Statements;
use super::template::{TYPES, calls};
use crate::arrivals::Think;
use crate::client::Client;
use crate::error::Refusal;
use crate::mixture::{Mixing, ScriptInfo};
use crate::session::Identity;
use crate::template::Template;
use crate::workload::{Clients, Kind, Protocol};

const SECOND_NS: u64 = 1_000_000_000;
/// Keying time and mean think time in seconds, in the order of the types (TPC-C 5.11, 5.2.5.7).
const PAUSES_S: [(u64, u64); 5] = [(18, 12), (3, 12), (2, 5), (2, 5), (2, 10)];
/// HammerDB 6.0's: Delivery and Order-Status have each other's.
const PAUSES_HAMMERDB_S: [(u64, u64); 5] = [(18, 12), (3, 12), (2, 10), (2, 5), (2, 5)];

/// Which transactions, on which tables.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TpccSpec {
    /// Whose laws hold.
    #[serde(default)]
    pub profile: Profile,
    /// How many warehouses there are.
    pub warehouses: u32,
    /// Where the statements are.
    #[serde(default)]
    pub routines: Routines,
    /// Whether each client takes several warehouses, so that all are in use, and not one.
    #[serde(default)]
    pub all_warehouses: bool,
    /// Whether users key in and think.
    #[serde(default)]
    pub keying: bool,
    /// Whether functions of the profile `hammerdb` get the last names that were drawn, which HammerDB's do not.
    #[serde(default)]
    pub names_match: bool,
    /// Whose tables and routines they are.
    #[serde(default)]
    pub schema: Schema,
}

/// The workload, for any number of clients.
pub(crate) struct Tpcc {
    settings: Arc<Settings>,
    sent: Sent,
}

/// What clients send.
enum Sent {
    /// A call for each transaction.
    Calls(Arc<Vec<Template>>),
    /// The statements of a transaction.
    Statements(Arc<Vec<Prepared>>),
}

impl TpccSpec {
    /// The workload, for so many clients in all.
    pub(crate) fn tpcc(&self, clients: u32) -> Result<Tpcc, Refusal> {
        if !(1..=WAREHOUSES_MAX).contains(&self.warehouses) {
            let what = format!("{} warehouses cannot be driven", self.warehouses);
            return Err(Refusal::new(what, format!("take 1 to {WAREHOUSES_MAX}")));
        }
        if self.profile == Profile::Spec && self.routines == Routines::Procedures {
            return Err(Refusal::new("the profile spec has no procedures", "take functions"));
        }
        if self.profile == Profile::Hammerdb && self.routines == Routines::Statements {
            return Err(Refusal::new(
                "the profile hammerdb has its statements in routines",
                "take functions or procedures",
            ));
        }
        if self.profile == Profile::Spec && self.names_match {
            return Err(Refusal::new("names always match in the profile spec", "omit names_match"));
        }
        let built = self.schema == Schema::Public;
        if built && self.profile == Profile::Spec {
            return Err(Refusal::new(
                "HammerDB has built no routines of the profile spec",
                "take the profile hammerdb",
            ));
        }
        let settings = Settings {
            profile: self.profile,
            routines: self.routines,
            warehouses: i64::from(self.warehouses),
            clients: i64::from(clients.max(1)),
            all_warehouses: self.all_warehouses,
            keying: self.keying,
            names_match: self.names_match,
            built,
        };
        let sent = match self.routines {
            Routines::Statements => Sent::Statements(Arc::new(statements())),
            Routines::Functions | Routines::Procedures => Sent::Calls(Arc::new(calls(&settings))),
        };
        Ok(Tpcc { settings: Arc::new(settings), sent })
    }
}

impl Kind for Tpcc {
    fn scripts(&self) -> Vec<ScriptInfo> {
        let pauses = if self.settings.profile == Profile::Spec { PAUSES_S } else { PAUSES_HAMMERDB_S };
        let script = |((name, weight), (keying_s, think_s)): ((&str, u32), (u64, u64))| {
            let mut script = ScriptInfo::new(name, weight);
            if self.settings.keying {
                script.keying = Think::Constant(keying_s * SECOND_NS);
                script.think = Think::Exponential(think_s * SECOND_NS);
            }
            script
        };
        TYPES.into_iter().zip(pauses).map(script).collect()
    }

    /// HammerDB draws each type by itself.
    fn mixing(&self) -> Mixing {
        if self.settings.profile == Profile::Spec { Mixing::Dealt } else { Mixing::Drawn }
    }

    fn statements(&self) -> Vec<Template> {
        match &self.sent {
            Sent::Calls(calls) => calls.to_vec(),
            Sent::Statements(statements) => statements.iter().map(|one| one.template.clone()).collect(),
        }
    }

    /// HammerDB prepares functions, and sends calls of procedures as text.
    fn protocol(&self) -> Protocol {
        if self.settings.routines == Routines::Procedures { Protocol::Simple } else { Protocol::Prepared }
    }

    fn client(&self, clients: &Clients, identity: Identity) -> Box<dyn Client + Send> {
        let (settings, Identity { seed, client, .. }) = (Arc::clone(&self.settings), identity);
        match &self.sent {
            Sent::Calls(calls) => clients.client(Routine::new(settings, Arc::clone(calls), seed, client), identity),
            Sent::Statements(all) => clients.client(Statements::new(settings, Arc::clone(all), seed, client), identity),
        }
    }
}
