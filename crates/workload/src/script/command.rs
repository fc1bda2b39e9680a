//! A script that was read: commands with numbered variables and resolved jumps.

use super::expression::Expression;
use crate::error::Position;
use std::collections::BTreeMap;

/// One command and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Located {
    pub at: Position,
    pub command: Command,
}

/// What a script does. `\if` and its relatives became jumps, always forward, so every script ends.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Command {
    /// Send a statement, with these variables as its parameters.
    Sql { statement: u32, variables: Vec<usize>, keep: Option<Keep> },
    /// Set a variable.
    Set { variable: usize, expression: Expression },
    /// Wait.
    Sleep(Sleep),
    /// Go to this command.
    Jump(usize),
    /// Go to this command unless the condition holds.
    JumpUnless { condition: Expression, target: usize },
    /// From here on statements do not wait for their answers.
    StartPipeline,
    /// End a segment of the pipeline.
    SyncPipeline,
    /// End the pipeline, and wait for all answers.
    EndPipeline,
}

/// Which values of an answer become variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Keep {
    /// What stands before the column's name in the variable's.
    pub prefix: String,
    /// `\aset`: the last row of each result; otherwise `\gset`: the only row of the last.
    pub each: bool,
}

/// How long to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sleep {
    /// Always as long.
    Constant { ns: u64 },
    /// As many units as the variable says.
    Variable { variable: usize, unit_ns: u64 },
}

/// All scripts of a workload, with their common variables.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Compiled {
    pub scripts: Vec<Body>,
    pub variables: BTreeMap<String, usize>,
}

/// One script.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Body {
    pub name: String,
    pub commands: Vec<Located>,
    pub end: Position,
}

impl Compiled {
    /// Whether any script begins a pipeline.
    pub fn has_pipelines(&self) -> bool {
        let mut commands = self.scripts.iter().flat_map(|script| &script.commands);
        commands.any(|located| located.command == Command::StartPipeline)
    }
}
