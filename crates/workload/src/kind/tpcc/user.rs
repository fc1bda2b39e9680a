//! What every client has, whichever way its transactions are sent: the terminal that draws them, what it asks, what it counted.

use super::asked::Asked;
use super::draw::Terminal;
use super::settings::Settings;
use super::tally::Tally;
use crate::client::{Statement, StatementId};
use crate::error::{Position, RunError, ScriptError};
use crate::random::Random;
use crate::template::{ParameterBuffer, Template};
use std::sync::Arc;

/// One client's transaction, and what it counted of all.
pub(super) struct User {
    terminal: Terminal,
    /// The type of its transaction.
    pub script: u32,
    pub asked: Asked,
    pub tally: Tally,
    pub parameters: ParameterBuffer,
    pub error: RunError,
}

impl User {
    pub fn new(settings: Arc<Settings>, seed: u64, client: u32) -> Self {
        let at = Position { line: 1, column: 1 };
        Self {
            terminal: Terminal::new(settings, seed, client),
            script: 0,
            asked: Asked::default(),
            tally: Tally::default(),
            parameters: ParameterBuffer::default(),
            error: ScriptError { script: "tpcc".to_owned(), at, message: String::new() },
        }
    }

    /// Draws a transaction; one that is tried again is counted once.
    pub fn begin(&mut self, script: u32, mut random: Random, again: bool) {
        self.script = script;
        self.terminal.ask(script, &mut random, &mut self.asked);
        if !again {
            self.tally.count(script, &self.asked, &self.terminal);
        }
    }

    /// A statement with the parameters that were filled in.
    pub fn statement<'a>(&'a self, id: StatementId, template: &'a Template, keep: bool) -> Statement<'a> {
        Statement { id, template, parameters: self.parameters.get(), keep, pipelined: false }
    }
}
