//! Scripts on their way to a workload.

use std::sync::Arc;

use super::builtin::Builtin;
use super::scripts::Scripts;
use crate::error::ScriptError;
use crate::mixture::ScriptInfo;
use crate::script::{Compiler, Shared};
use crate::value::Variable;
use crate::workload::Workload;

/// A mix of pgbench scripts in the making.
#[derive(Default)]
pub struct Mix {
    compiler: Compiler,
    scripts: Vec<ScriptInfo>,
    definitions: Vec<(String, Variable)>,
    dilation: u32,
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
        self.scripts.push(ScriptInfo::new(script.name(), weight));
        self
    }

    /// Adds a script of the user's.
    ///
    /// # Errors
    /// What is wrong with it first, with line and column.
    pub fn script(mut self, name: &str, text: &str, weight: u32) -> Result<Self, ScriptError> {
        self.compiler.add(name, text)?;
        self.scripts.push(ScriptInfo::new(name, weight));
        Ok(self)
    }

    /// Sets a variable for all clients, as pgbench's `--define` does: `scale` is one.
    #[must_use]
    pub fn define(mut self, name: &str, value: &str) -> Self {
        self.definitions.push((name.to_owned(), Variable::Text(value.as_bytes().to_vec())));
        self
    }

    /// Makes `\sleep` so many times as long, for a world that is so many times slower; otherwise it is as long as it says.
    #[must_use]
    pub fn dilated(mut self, dilation: u32) -> Self {
        self.dilation = dilation;
        self
    }

    /// The workload.
    ///
    /// # Panics
    /// Without a script of a weight above 0.
    pub fn build(self) -> Workload {
        let dilation = self.dilation.max(1);
        Workload::new(Box::new(self.compiled()), dilation)
    }

    /// The scripts.
    pub(super) fn compiled(self) -> Scripts {
        let Compiler { compiled, statements } = self.compiler;
        let shared = Arc::new(Shared { compiled, statements, dilation: u64::from(self.dilation.max(1)) });
        Scripts { scripts: self.scripts, shared, definitions: self.definitions }
    }
}
