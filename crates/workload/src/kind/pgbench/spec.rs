//! Scripts of pgbench as they are asked for.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::builtin::Builtin;
use super::mix::Mix;
use super::scripts::Scripts;
use crate::error::Refusal;

/// Scripts of pgbench.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PgbenchSpec {
    /// One or more, each chosen by its weight.
    pub scripts: Vec<ScriptSpec>,
    /// Scale factor of the tables.
    pub scale: u32,
    /// Values of variables, by name, as pgbench's `-D` gives them.
    #[serde(default)]
    pub variables: BTreeMap<String, String>,
}

/// One script.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptSpec {
    /// `tpcb-like`, `simple-update` or `select-only`.
    #[serde(default)]
    pub builtin: Option<String>,
    /// Or a script of the user's, in pgbench's language.
    #[serde(default)]
    pub text: Option<String>,
    /// What the statistics and errors of such a script call it.
    #[serde(default)]
    pub name: Option<String>,
    /// Its share beside the others.
    #[serde(default = "one")]
    pub weight: u32,
}

fn one() -> u32 {
    1
}

impl PgbenchSpec {
    /// The scripts, whose `\sleep` takes `dilation` times as long as they say. What is wrong with one is refused.
    pub(crate) fn scripts(&self, dilation: u32) -> Result<Scripts, Refusal> {
        if self.scripts.iter().all(|script| script.weight == 0) {
            return Err(Refusal::new("no script has a weight", "give at least one a weight above zero"));
        }
        let mix = self.scripts.iter().try_fold(Mix::default(), |mix, script| script.add_to(mix))?;
        let mix = mix.define("scale", &self.scale.max(1).to_string());
        let mix = self.variables.iter().fold(mix, |mix, (name, value)| mix.define(name, value));
        Ok(mix.dilated(dilation).compiled())
    }
}

impl ScriptSpec {
    fn add_to(&self, mix: Mix) -> Result<Mix, Refusal> {
        match (&self.builtin, &self.text) {
            (Some(name), None) => {
                let builtin = Builtin::named(name).ok_or_else(|| {
                    Refusal::new(format!("there is no script {name}"), "take tpcb-like, simple-update or select-only")
                })?;
                Ok(mix.builtin(builtin, self.weight))
            }
            (None, Some(text)) => mix
                .script(self.name.as_deref().unwrap_or("script"), text, self.weight)
                .map_err(|error| Refusal::new(error.to_string(), "correct the script")),
            _ => Err(Refusal::new("a script is either builtin or text", "give one of the two")),
        }
    }
}
