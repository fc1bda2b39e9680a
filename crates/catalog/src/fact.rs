//! A fact: a value that says where it comes from, when that was true, and how sure we are.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};

use crate::error::CatalogError;

/// A value with its origin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fact<T> {
    /// The value; its unit is in the name of the field that holds the fact.
    pub value: T,
    /// Key into the file's `[sources]`.
    pub source: String,
    /// Day on which the source was read or for which it says it holds, `YYYY-MM-DD`.
    #[serde(deserialize_with = "day")]
    pub date: String,
    /// How the value follows from the source.
    #[serde(default)]
    pub status: Status,
}

/// A file of facts as it stands in the program: its name in `catalog/`, and its text.
pub(crate) type FactsFile = (&'static str, &'static str);

/// Version of the files that [`read`] takes.
const SCHEMA_VERSION: u32 = 1;

#[derive(Deserialize)]
struct Versioned {
    schema_version: u32,
}

/// Reads the text of the file `name`.
///
/// # Errors
///
/// It is not TOML, of another version, or not as `T` is.
pub(crate) fn read<T: DeserializeOwned>(name: &str, text: &str) -> Result<T, CatalogError> {
    let broken = |problem: String| CatalogError { file: name.to_owned(), problem };
    let Versioned { schema_version } = toml::from_str(text).map_err(|error| broken(error.to_string()))?;
    if schema_version != SCHEMA_VERSION {
        return Err(broken(format!("schema_version {schema_version} is not {SCHEMA_VERSION}")));
    }
    toml::from_str(text).map_err(|error| broken(error.to_string()))
}

/// How a value follows from its source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The provider states it.
    #[default]
    Published,
    /// A third party measured it and published the measurement.
    Measured,
    /// Arithmetic on published or measured figures.
    Derived,
    /// Plausible, and not contradicted by what is known.
    Hypothesis,
    /// Remembered, without a source at hand.
    FromMemory,
    /// Not a fact about the world but a decision of this project, such as a default.
    Choice,
}

/// Source, date and status of a fact.
pub(crate) type Origin<'a> = (&'a str, &'a str, Status);

impl<T> Fact<T> {
    /// Where the value comes from, when that held, and how it follows from there.
    pub fn origin(&self) -> Origin<'_> {
        (&self.source, &self.date, self.status)
    }
}

/// Refuses a minimum, a default and a maximum that are not in this order; `what` names them in the error.
pub(crate) fn ascending(what: &str, facts: &[&Fact<u64>]) -> Result<(), String> {
    if facts.is_sorted_by(|a, b| a.value <= b.value) {
        Ok(())
    } else {
        Err(format!("{what}: minimum, default and maximum are not in this order"))
    }
}

/// Where facts come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Title, with the version or commit where there is one.
    pub title: String,
    /// Public address, where one is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// Reads a TOML local date. A time of day would be pretended precision.
pub(crate) fn day<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let moment = toml::value::Datetime::deserialize(deserializer)?;
    match (moment.date, moment.time) {
        (Some(date), None) => Ok(date.to_string()),
        _ => Err(serde::de::Error::custom("a fact's date is a day, such as 2026-11-21")),
    }
}
