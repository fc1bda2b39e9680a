//! A test of sysbench as a kind of workload.

use std::sync::Arc;

use super::event::Event;
use super::plan::Plan;
use super::settings::Sysbench;
use crate::client::Client;
use crate::groups::Groups;
use crate::mixture::ScriptInfo;
use crate::retries::Retries;
use crate::session::Identity;
use crate::template::{Class, Template};
use crate::workload::{Clients, Kind, Protocol, Workload};

/// One test, for any number of clients.
pub(crate) struct Oltp(Arc<Plan>);

impl Oltp {
    /// # Panics
    /// Without tables, rows, clients or statements.
    pub(crate) fn new(settings: Sysbench) -> Self {
        Self(Arc::new(Plan::new(settings)))
    }
}

impl Sysbench {
    /// The workload.
    ///
    /// # Panics
    /// Without tables, rows, clients or statements.
    pub fn workload(self) -> Workload {
        Workload::new(Box::new(Oltp::new(self)), 1)
    }
}

impl Kind for Oltp {
    fn scripts(&self) -> Vec<ScriptInfo> {
        vec![ScriptInfo::new(self.0.settings.test.name(), 1)]
    }

    fn statements(&self) -> Vec<Template> {
        self.0.statements().to_vec()
    }

    /// The statements of the first table stand for those of all.
    fn groups(&self) -> Groups {
        let (statements, of_table) = (self.0.statements(), self.0.statements_of_table());
        let several = statements.len() > of_table;
        let text = |template: &Template| {
            let text = template.numbered();
            if several { text.replace("sbtest1", "sbtestN") } else { text.to_owned() }
        };
        let named = &statements[..of_table];
        Groups {
            texts: named.iter().map(text).collect(),
            classes: named.iter().map(Template::class).collect::<Vec<Class>>(),
            of: (0..statements.len()).map(|id| (id % of_table) as u32).collect(),
        }
    }

    /// sysbench prepares, but for two scripts that cannot.
    fn protocol(&self) -> Protocol {
        if self.0.settings.test.sends_text() { Protocol::Simple } else { Protocol::Prepared }
    }

    fn retries(&self) -> Retries {
        Retries::SYSBENCH
    }

    fn client(&self, clients: &Clients, identity: Identity) -> Box<dyn Client + Send> {
        clients.client(Event::new(Arc::clone(&self.0), identity.client), identity)
    }
}
