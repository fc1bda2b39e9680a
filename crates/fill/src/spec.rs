//! What to fill a server with: one JSON document on standard input.

use pgdyno_connection::{Fault, Server};
use pgdyno_dataset::{Refusal, Tables};
use serde::Deserialize;

/// An order to fill a server. It may hold a password: it is read from standard input and never written.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FillSpec {
    /// Where the server is.
    pub server: Server,
    /// Which tables.
    pub tables: Tables,
    /// What to do with them.
    #[serde(default)]
    pub action: Action,
    /// How many sessions work at a time, at most.
    #[serde(default = "one")]
    pub connections: u32,
    /// Whether several sessions write parts of one large table when there are fewer tables than sessions. Its rows are
    /// then not frozen as they are written, but by a vacuum afterwards.
    #[serde(default)]
    pub split: bool,
    /// In which way the rows are written.
    #[serde(default)]
    pub manner: Manner,
    /// Whether tables of these names that are there already are dropped first; otherwise they are an error.
    #[serde(default = "yes")]
    pub replace: bool,
    /// How often to say how far it is.
    #[serde(default = "second_ms")]
    pub interval_ms: u64,
    /// From which all that is random derives.
    #[serde(default = "one_seed")]
    pub seed: u64,
}

/// In which way rows are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Manner {
    /// Whole tables, whose rows are frozen; keys and indexes afterwards.
    #[default]
    Copy,
    /// Small batches with a commit each, as HammerDB loads these tables.
    Hammerdb,
}

/// What to do with the tables.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Make them.
    #[default]
    Fill,
    /// Remove them.
    Drop,
}

fn one() -> u32 {
    1
}

fn one_seed() -> u64 {
    1
}

fn yes() -> bool {
    true
}

fn second_ms() -> u64 {
    1000
}

impl FillSpec {
    /// Refuses what cannot be made.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        if self.connections == 0 || self.interval_ms == 0 {
            return Err(Fault::new("connections or interval_ms is zero", "give at least 1 of each"));
        }
        if self.manner == Manner::Hammerdb && self.tables.set().batches().is_none() {
            return Err(Fault::new("HammerDB does not load these tables", "omit the manner"));
        }
        self.tables.set().check().map_err(|Refusal { message, remedy }| Fault::new(message, remedy))
    }
}

/// An order with these keys beside a server that no test connects to.
#[cfg(test)]
pub(crate) fn order(keys: &str) -> serde_json::Result<FillSpec> {
    let server = r#""server": {"host": "/tmp", "port": 5432, "user": "u", "dbname": "d", "application_name": "fill",
        "connect_timeout_s": 10, "keepalive": {"enabled": true, "idle_s": 60, "interval_s": 15, "count": 8,
        "user_timeout_ms": 0}}"#;
    serde_json::from_str(&format!("{{{server}, {keys}}}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_replaced_and_not_split_unless_it_is_said() {
        let spec = order(r#""tables": {"pgbench": {"scale": 3}}"#).expect("it can be read");
        assert!(spec.check().is_ok() && spec.replace && !spec.split);
    }

    #[test]
    fn what_cannot_be_made_is_refused() {
        for keys in
            [r#""tables": {"pgbench": {"scale": 0}}"#, r#""tables": {"pgbench": {"scale": 1}}, "connections": 0"#]
        {
            assert!(order(keys).expect("it can be read").check().is_err(), "{keys}");
        }
    }
}
